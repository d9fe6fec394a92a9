//! The words of a guard: settings as text.

use core::time::Duration;

use stagger_core::Ratio;
use stagger_core::text::{nearest, parse_number};
use stagger_report::parse;

/// The settings of one guard, as text. The guard takes out those that it has.
#[derive(Debug)]
pub(super) struct Words<'a> {
    keyword: &'static str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    /// Splits settings at their spaces.
    pub(super) fn parse(keyword: &'static str, text: &'a str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for word in split(text, char::is_whitespace)?.into_iter().filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if value.is_empty() {
                return Err(format!("{keyword}: `{name}` has no value; write it as {name}=VALUE"));
            }
            if pairs.iter().any(|(known, _)| *known == name) {
                return Err(format!("{keyword}: `{name}` is set twice; keep one of them"));
            }
            pairs.push((name, value));
        }
        Ok(Self { keyword, pairs })
    }

    /// Takes out a setting and parses it; returns `None` if it was not given.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(at) = self.pairs.iter().position(|(known, _)| *known == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        parse(value).map(Some).map_err(|error| self.wrong(&format!("{name}: {error}")))
    }

    /// Passes a setting to the setter of a builder, if it was given.
    pub(super) fn apply<B, T>(
        &mut self,
        builder: B,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
        set: impl FnOnce(B, T) -> B,
    ) -> Result<B, String> {
        Ok(match self.take(name, parse)? {
            Some(value) => set(builder, value),
            None => builder,
        })
    }

    /// Returns an error about this guard.
    pub(super) fn wrong(&self, problem: &str) -> String {
        format!("{}: {problem}", self.keyword)
    }

    /// Checks that no setting is left over.
    pub(super) fn finish(&self, known: &[&str]) -> Result<(), String> {
        let Some((name, _)) = self.pairs.first() else {
            return Ok(());
        };
        let remedy = match (nearest(name, known.iter().copied()), known) {
            (Some(nearest), _) => format!("did you mean `{nearest}`?"),
            (None, []) => format!("{} has no settings", self.keyword),
            (None, [one]) => format!("use {one}"),
            (None, [rest @ .., last]) => format!("use {} or {last}", rest.join(", ")),
        };
        Err(self.wrong(&format!("`{name}` is not a setting; {remedy}")))
    }
}

/// Splits text at separators outside of parentheses, and trims the parts.
pub(super) fn split(text: &str, is_separator: impl Fn(char) -> bool) -> Result<Vec<&str>, String> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("`)` closes nothing; remove it")?,
            c if depth == 0 && is_separator(c) => {
                parts.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("`(` is not closed; add `)`".to_owned());
    }
    parts.push(text[from..].trim());
    Ok(parts)
}

/// Parses a whole number of 0 or more.
pub(super) fn count(text: &str) -> Result<u32, String> {
    match parse_number(text) {
        Ok(number) if number.fract() == 0.0 && number <= f64::from(u32::MAX) => Ok(number as u32),
        _ => Err(format!("`{text}` is not a whole number; expected one like 0, 500 or 10k")),
    }
}

/// Parses a share such as 10% or 0.1; it may be above 1.
pub(crate) fn ratio(text: &str) -> Result<Ratio, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(percent) => (percent, 1e4),
        None => (text, 1e6),
    };
    match parse_number(number).map(|number| (number * whole).round()) {
        Ok(millionths) if millionths <= f64::from(u32::MAX) => Ok(Ratio::millionths(millionths as u32)),
        _ => Err(format!("`{text}` is not a share; expected a form like 10% or 0.1")),
    }
}

/// Parses a number of tokens in a time, such as 50/s, 30/min or 10/500ms.
pub(super) fn refill(text: &str) -> Result<(u32, Duration), String> {
    let wrong = || format!("`{text}` is not a number of tokens in a time; expected a form like 50/s or 10/500ms");
    let (tokens, per) = text.split_once('/').ok_or_else(wrong)?;
    let per = match per {
        "s" => Duration::from_secs(1),
        "m" | "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        length => parse::duration(length).map_err(|_| wrong())?,
    };
    Ok((count(tokens).map_err(|_| wrong())?, per))
}
