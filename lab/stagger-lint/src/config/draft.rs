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
        self.fix = (!text.is_empty() || !edits.is_empty()).then_some(Fix { text, edits });
        self
    }

    pub(super) fn finding(&self) -> Option<FileFinding> {
        let finding = Finding::with_advice(self.rule, self.facts.clone(), &self.advice)?;
        Some(FileFinding { finding, path: self.path.clone(), place: Some(place(self.span)), fix: self.fix.clone() })
    }
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
        None => format!("does not say how many {} it makes", what(entry.kind)),
    };
    let delays = delays(entry).into_iter();
    let each = limit(settings.attempt_timeout).map(|limit| format!("each of at most {limit}"));
    let all = limit(settings.timeout).map(|limit| format!("all within {limit}"));
    let system = match entry.format {
        Format::Grpc => "gRPC".to_owned(),
        format => format.to_string(),
    };
    let parts = [format!("{system} {attempts}")].into_iter().chain(delays).chain(each).chain(all);
    parts.collect::<Vec<_>>().join(", ")
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
    let retries = policy.max_attempts().map_or(u32::MAX, |attempts| attempts.get() - 1);
    let bounds: Vec<_> = (1..=SHOWN.min(retries)).map_while(|retry| policy.bounds(retry)).collect();
    let (first, last) = (bounds.first()?, bounds.last()?);
    if last.1.is_zero() {
        return Some("at once".to_owned());
    }
    let next = policy.bounds(SHOWN + 1).filter(|_| retries > SHOWN);
    if bounds.iter().chain(&next).all(|bound| bound == first) {
        return Some(format!("{} apart", from_to(*first)));
    }
    let shown: Vec<_> = bounds.iter().map(|bounds| from_to(*bounds)).collect();
    let shown = shown.join(", ");
    let cap = policy.cap().map_or(String::new(), |cap| format!(" up to {}", brief(cap)));
    Some(if next.is_some() { format!("after {shown} and so on{cap}") } else { format!("after {shown}") })
}
