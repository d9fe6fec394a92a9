//! The policy and the guards of an edge in a file.

use core::ops::Range;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::sync::Arc;

use serde::Deserialize;
use stagger_core::budget::Tokens;
use stagger_core::text::Outside;
use stagger_core::{Policy, Ratio, Seed};
use toml::de::ValueDeserializer;

use super::table::{Entry, Reader, Table, Unit};
use crate::outage::ProcessGuards;

/// The longest policy file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1_024;

/// Takes out the policy of an edge: a name, a line, a table, or `@FILE`.
pub(super) fn edge_policy(table: &mut Table<'_>, reader: &Reader<'_>) -> Option<Policy> {
    let path = format!("{}policy.", table.path);
    let entry = table.take("policy");
    let (base, at) = match &entry {
        Some(entry) => (base_policy(entry, table, reader)?, entry.at),
        None => (ONE_ATTEMPT, table.at),
    };
    let policy = changed(base, &path, reader).map_err(|error| table.problem(at..at, error)).ok()?;
    for (key, unit, value) in numbers(&policy) {
        reader.number(format!("{path}{key}"), unit, value);
    }
    Some(policy)
}

/// Reads a policy as the file has it, before its numbers are replaced.
fn base_policy(entry: &Entry<'_>, table: &Table<'_>, reader: &Reader<'_>) -> Option<Policy> {
    let span = entry.value.span();
    let (span, problem) = match entry.value.get_ref().as_str() {
        Some(text) => match named(text, reader) {
            Ok(policy) => return Some(policy),
            Err(problem) => (span, problem),
        },
        None => match Policy::deserialize(ValueDeserializer::from(entry.value.clone())) {
            Ok(policy) => return Some(policy),
            Err(error) => (position(&error, span), error.message().to_owned()),
        },
    };
    table.problem(span, format!("policy: {problem}"));
    None
}

const ONE_ATTEMPT: Policy = stagger_core::policy!(zero().max_attempts(1));

fn position(error: &toml::de::Error, whole: Range<usize>) -> Range<usize> {
    error.span().filter(|span| !span.is_empty()).unwrap_or(whole)
}

/// Reads a policy by its name or line, or from the file that it names.
fn named(text: &str, reader: &Reader<'_>) -> Result<Policy, String> {
    let Some(name) = text.strip_prefix('@') else {
        return text.parse().map_err(|error: stagger_core::text::ParseError| error.to_string());
    };
    let Some(directory) = reader.directory else {
        return Err(format!("{text} is a file, and the system is not read from one; write the policy itself"));
    };
    let text = read_beside(directory, name)?;
    let shown = Outside(name);
    // One line of the policy language has no `=` after its first word; a table has.
    let first = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default();
    let is_table = text.trim_start()[first.len()..].trim_start().starts_with('=') || text.trim_start().starts_with('#');
    if is_table {
        return toml::from_str(&text).map_err(|error| format!("in {shown}: {}", error.message()));
    }
    text.trim().parse().map_err(|error: stagger_core::text::ParseError| format!("in {shown}: {error}"))
}

/// Reads a file in the directory of the system, or below it. The file of a system may come from anybody, so it names no
/// others: not by a link either, and nothing that is not a regular file, such as a device that has no end.
fn read_beside(directory: &Path, name: &str) -> Result<String, String> {
    let shown = Outside(name);
    if Path::new(name).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("{shown} is not in the directory of the system; put the policy beside it"));
    }
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let unreadable = |error: io::Error| format!("cannot read {shown}: {error}");
    let (here, path) = (here.canonicalize().map_err(unreadable)?, here.join(name).canonicalize().map_err(unreadable)?);
    if !path.starts_with(&here) {
        return Err(format!("{shown} leads out of the directory of the system; put the policy beside it"));
    }
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(format!("{shown} is not a file; name one with a policy"));
    }
    let mut text = String::new();
    // The size that a file system tells need not be what arrives.
    File::open(&path).map_err(unreadable)?.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{shown} is longer than {MAX_BYTES} bytes; name a file with one policy"));
    }
    Ok(text)
}

/// Returns the policy with the values that replace its own.
fn changed(policy: Policy, path: &str, reader: &Reader<'_>) -> Result<Policy, String> {
    let mut given = reader.values.iter().filter_map(|(name, value)| Some((name.strip_prefix(path)?, value))).peekable();
    if given.peek().is_none() {
        return Ok(policy);
    }
    let mut builder = policy.to_builder();
    for (name, value) in given {
        builder = builder.set(name, value).map_err(|error| error.to_string())?;
    }
    builder.build().map_err(|error| error.to_string())
}

/// Returns the settings of a policy that are numbers.
fn numbers(policy: &Policy) -> Vec<(&'static str, Unit, f64)> {
    let attempts = policy.max_attempts().map(|most| ("max-attempts", Unit::Count, f64::from(most.get())));
    let base = Some(policy.base()).filter(|base| !base.is_zero());
    let lengths = [("base", base), ("cap", policy.cap()), ("max-elapsed", policy.max_elapsed())];
    let lengths = lengths.into_iter().filter_map(|(key, length)| Some((key, Unit::Seconds, length?.as_secs_f64())));
    attempts.into_iter().chain(lengths).collect()
}

type NewGuards = Arc<dyn Fn(Seed) -> ProcessGuards + Send + Sync>;

/// Takes out the guards of an edge: a bucket of tokens that successes fill.
pub(super) fn edge_guards(table: &mut Table<'_>) -> Option<NewGuards> {
    let mut budget = table.table("budget")?;
    let (tokens, refund) = (budget.count("tokens", 10), budget.share("refund", 0.1));
    let at = budget.at;
    budget.finish();
    let refund = Ratio::millionths((refund * 1e6).round() as u32);
    let builder = Tokens::builder().capacity(tokens).cost(1).fractional_reward(refund);
    match builder.build() {
        Err(error) => {
            table.problem(at..at, format!("budget: {error}"));
            None
        }
        // The settings are valid, as has been seen.
        Ok(_) => Some(Arc::new(move |_| match builder.build() {
            Ok(tokens) => ProcessGuards::none().budget(tokens),
            Err(_) => ProcessGuards::none(),
        })),
    }
}
