use core::time::Duration;

use stagger_config::{Entry, EntryKind, Format, Limit, Setting, Span};
use stagger_core::text::Compact;

use crate::analysis::{brief, from_to};
use crate::file::{Edit, FileFinding, Fix, Place};
use crate::{Finding, Rule};

/// A finding in a configuration, before its fix has been tried.
pub(super) struct Draft {
    pub(super) rule: &'static Rule,
    pub(super) path: String,
    pub(super) span: Span,
    facts: Vec<String>,
    advice: String,
    fix: Option<Fix>,
    key: String,
}

impl Draft {
    pub(super) fn new(rule: &'static Rule, path: &str, span: Span) -> Self {
        let key = format!("{} {path}", rule.code());
        Self { rule, path: path.to_owned(), span, facts: Vec::new(), advice: String::new(), fix: None, key }
    }

    /// Returns the rule and the path.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn fact(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn facts(mut self, facts: impl IntoIterator<Item = String>) -> Self {
        self.facts.extend(facts);
        self
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Sets what the file should say, and the edits that write it.
    pub(super) fn edits(mut self, text: impl Into<String>, edits: Vec<Edit>) -> Self {
        let text = text.into();
        self.fix = if text.is_empty() && edits.is_empty() { None } else { Some(Fix { text, edits }) };
        self
    }

    /// Sets advice, text and edits.
    pub(super) fn remedy(self, remedy: Remedy) -> Self {
        self.advise(remedy.advice).edits(remedy.text, remedy.edits)
    }

    pub(super) fn finding(&self) -> Option<FileFinding> {
        let finding = Finding::with_advice(self.rule, self.facts.clone(), &self.advice)?;
        Some(FileFinding { finding, path: self.path.clone(), place: Some(place(self.span)), fix: self.fix.clone() })
    }
}

/// What the file should say, in words, and the edits that write it.
#[derive(Default)]
pub(super) struct Remedy {
    pub(super) text: String,
    pub(super) advice: String,
    pub(super) edits: Vec<Edit>,
}

/// Returns a place of the reader as one of the lint.
pub(super) const fn place(span: Span) -> Place {
    Place::new((span.start.line, span.start.column), (span.end.line, span.end.column))
}

/// Delays that are shown before "and so on".
const SHOWN: u32 = 3;

/// Says what the system does: its attempts, its delays, and its limits of time.
pub(super) fn does(entry: &Entry) -> String {
    let settings = &entry.settings;
    let attempts = match settings.attempts.map(|attempts| attempts.value) {
        Some(Limit::At(1)) => "makes 1 attempt".to_owned(),
        Some(Limit::At(attempts)) => format!("makes up to {attempts} {}", what(entry.kind)),
        Some(Limit::None) => format!("makes {} without limit", what(entry.kind)),
        Some(Limit::Unknown) => format!("makes a number of {} that is not known", what(entry.kind)),
        None => format!("does not say how many {} it makes", what(entry.kind)),
    };
    let system = match entry.format {
        Format::Grpc => "gRPC".to_owned(),
        format => format.to_string(),
    };
    let mut parts = vec![format!("{system} {attempts}")];
    parts.extend(delays(entry));
    if let Some(limit) = limit(settings.attempt_timeout) {
        parts.push(format!("each of at most {limit}"));
    }
    if let Some(limit) = limit(settings.timeout) {
        parts.push(format!("all within {limit}"));
    }
    parts.join(", ")
}

const fn what(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Restart => "starts",
        _ => "attempts",
    }
}

fn limit(setting: Option<Setting<Limit<Duration>>>) -> Option<String> {
    Some(Compact(setting?.value.at()?).to_string())
}

fn delays(entry: &Entry) -> Option<String> {
    let policy = entry.policy()?;
    let retries = match policy.max_attempts() {
        Some(attempts) => attempts.get() - 1,
        None => u32::MAX,
    };
    let bounds: Vec<_> = (1..=SHOWN.min(retries)).map_while(|retry| policy.bounds(retry)).collect();
    let (first, last) = (bounds.first()?, bounds.last()?);
    if last.1.is_zero() {
        return Some("at once".to_owned());
    }
    let next = if retries > SHOWN { policy.bounds(SHOWN + 1) } else { None };
    if bounds.iter().chain(&next).all(|bound| bound == first) {
        return Some(format!("{} apart", from_to(*first)));
    }
    let shown: Vec<_> = bounds.iter().map(|bounds| from_to(*bounds)).collect();
    let mut text = format!("after {}", shown.join(", "));
    if next.is_some() {
        text += " and so on";
        if let Some(cap) = policy.cap() {
            text += &format!(" up to {}", brief(cap));
        }
    }
    Some(text)
}
