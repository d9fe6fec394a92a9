use stagger_config::Span;

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
