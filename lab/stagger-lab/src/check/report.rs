//! The report of the findings.

use std::collections::HashSet;

use stagger_core::Policy;
use stagger_lint::{Finding, Severity};
use stagger_report::page::delays;
use stagger_report::report::{self, Named, Part, Report};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::RenderOptions;

use super::files::{Detail, parts as file_parts};
use super::json;
use super::result::{CheckResult, LogResult, PolicyResult};

/// Returns the report. Lines of files are drawn with these options.
pub(super) fn report(checked: &CheckResult, detail: Detail, options: RenderOptions) -> Result<Report, CliError> {
    let mut parts = Vec::new();
    for policy in &checked.policies {
        parts.extend(policy_parts(policy));
    }
    let mut explained = HashSet::new();
    for file in &checked.files {
        parts.extend(file_parts(file, &mut explained, detail, options));
    }
    parts.extend(checked.log.iter().flat_map(log_parts));
    let mut remarks = Vec::new();
    if checked.known > 0 {
        remarks.push(format!("{} of the baseline not shown", counted(checked.known, "finding")));
    }
    if checked.without_context {
        let text = "no deployment context given; --for, --clients, --capacity and the other context flags enable more \
                    rules";
        remarks.push(text.to_owned());
    }
    let counts = counts(checked);
    if !counts.is_empty() {
        parts.push(Part::Summary(format!("{counts}; for details: stagger check --explain CODE")));
    }
    parts.extend(remarks.iter().map(|remark| Part::Summary(format!("note: {remark}"))));
    Ok(Report {
        heading: "Retries, checked",
        scenario: subjects(checked),
        answer: [answer(checked, &counts)].into_iter().chain(remarks).collect(),
        parts,
        document: json::document(checked)?,
        ..Report::default()
    })
}

/// Returns the numbers of warnings and notes; empty if there are none.
fn counts(checked: &CheckResult) -> String {
    let count = |severity| checked.findings().filter(|finding| finding.rule().severity() == severity).count();
    let counts = [(count(Severity::Warning), "warning"), (count(Severity::Note), "note")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(count, what));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns what was found, in a sentence: how much, and what comes first.
fn answer(checked: &CheckResult, counts: &str) -> String {
    let worst = |severity| checked.findings().find(|finding| finding.rule().severity() == severity);
    match worst(Severity::Warning).or_else(|| worst(Severity::Note)) {
        Some(first) => format!("{counts}: first of all, {}", first.rule().title()),
        None => match checked.log.as_ref().and_then(LogResult::too_few) {
            Some(few) => few.to_string(),
            None => "No findings".to_owned(),
        },
    }
}

/// Names what was checked.
fn subjects(checked: &CheckResult) -> String {
    let policies = checked.policies.iter().map(PolicyResult::label);
    let files = checked.files.iter().map(|file| format!("{}, {}", file.name, file.kind));
    let log = checked.log.iter().map(|log| log.name.clone());
    policies.chain(files).chain(log).collect::<Vec<_>>().join("; ")
}

/// Returns the parts of a policy: its delays, and those of the fixed one beside them, with the findings.
fn policy_parts(checked: &PolicyResult) -> Vec<Part> {
    let fixed = if checked.findings.is_empty() { None } else { checked.fixed.as_ref() };
    let mut pictures: Vec<(&str, &Policy)> = vec![("as it is", &checked.policy)];
    pictures.extend(fixed.map(|policy| ("fixed", policy)));
    let text = checked.policy.to_string();
    let named = |name: &str, policy: &Policy| {
        Part::Policies("", vec![Named { name: name.to_owned(), policy: policy.to_string(), guards: None }])
    };
    // If the argument was a whole policy rather than a name, only its canonical form is printed.
    let name = checked.name.as_ref().filter(|name| !name.contains([' ', '=']) && **name != text);
    let mut parts = vec![
        Part::Heading(checked.label()),
        Part::Pictures(delays(&pictures)),
        named(name.map_or("", String::as_str), &checked.policy),
    ];
    if let Some(profile) = checked.connection {
        parts.push(Part::Text(format!("checked as --for reconnecting: {} is for connections", profile.name())));
    }
    parts.extend(findings(&checked.findings));
    parts.extend(fixed.map(|policy| named("fixed", policy)));
    parts
}

fn log_parts(checked: &LogResult) -> Vec<Part> {
    let log = &checked.log;
    let mut clients: Vec<&str> = log.entries.iter().filter_map(|entry| entry.client.as_deref()).collect();
    clients.sort_unstable();
    clients.dedup();
    let of = match clients.len() {
        0 => String::new(),
        count => format!(" of {}", counted(count, "client")),
    };
    let skipped = match log.skipped_hints {
        0 => String::new(),
        count => format!(
            "; {} skipped because a server hint determined {}",
            counted(count, "delay"),
            if count == 1 { "it" } else { "them" }
        ),
    };
    let delays = counted(log.entries.len(), "delay");
    let policy = match (&checked.policy, log.policies.len()) {
        (Some(policy), _) => format!("compared with: {policy}"),
        (None, 0) => "not compared with a policy; give one to check whether these are its delays".to_owned(),
        (None, count) => format!("not compared with a policy: the log names {count}; give one of them"),
    };
    let mut parts = vec![
        Part::Heading(checked.name.clone()),
        Part::Text(format!("{}: {delays}{of}{skipped}", checked.name)),
        Part::Text(policy),
    ];
    match checked.too_few() {
        Some(few) => parts.push(Part::Text(few.to_string())),
        None => parts.extend(findings(&checked.findings)),
    }
    parts
}

fn findings(findings: &[Finding]) -> Vec<Part> {
    match findings {
        [] => vec![Part::Text("no findings".to_owned())],
        _ => findings.iter().map(|found| Part::Finding(shown(found, true))).collect(),
    }
}

/// Returns a finding without its place, with the reason for its rule if `explains`.
pub(super) fn shown(found: &Finding, explains: bool) -> report::Finding {
    let rule = found.rule();
    report::Finding {
        is_warning: rule.severity() == Severity::Warning,
        code: rule.code().to_owned(),
        title: rule.title().to_owned(),
        facts: found.facts().to_vec(),
        why: if explains { Some(rule.rationale().to_owned()) } else { None },
        help: found.suggestion().to_string(),
        ..report::Finding::default()
    }
}

pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
