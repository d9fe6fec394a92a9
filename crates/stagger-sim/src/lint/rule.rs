use core::fmt;

use super::analysis::PolicyAnalysis;
use super::change::Change;
use super::rules::{ALL, OF_LOGS};

/// What a rule looks for, and why it matters.
pub struct Rule {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) more: &'static str,
    /// What it finds in a policy; nothing for the rules about logs.
    pub(super) check: fn(&PolicyAnalysis<'_>) -> Option<Diagnosis>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// It is not what is recommended, and may be what is meant.
    Note,
    /// It makes a bad minute worse.
    Warning,
}

impl Severity {
    /// `warning` or `note`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
        }
    }
}

impl Rule {
    /// Every rule, by code: first those about policies (`S…`), then those about logs (`L…`).
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.into_iter().chain(OF_LOGS)
    }

    /// The rule with this code or name, in either case of letters.
    #[must_use]
    pub fn find(text: &str) -> Option<&'static Self> {
        Self::all().find(|rule| rule.code.eq_ignore_ascii_case(text) || rule.name.eq_ignore_ascii_case(text))
    }

    /// Its code, like `S001`. It never changes, and is never given to another rule.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// Its name in words, like `no-jitter`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// What it finds, in a few words.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Why that matters, in one sentence.
    #[must_use]
    pub const fn rationale(&self) -> &'static str {
        self.why
    }

    /// When exactly it speaks, what to do, and where that is known from.
    #[must_use]
    pub const fn details(&self) -> &'static str {
        self.more
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("code", &self.code).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A code belongs to one rule only.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

/// What a rule has found in a policy.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    pub(super) facts: Vec<String>,
    /// Changes of the policy, the best first. They are tried before they are told.
    pub(super) changes: Vec<Change>,
    /// A change that takes so much away that it is only told where no other helps.
    pub(super) last_resort: Option<Change>,
    /// What helps besides, or instead.
    pub(super) advice: Option<String>,
}

impl Diagnosis {
    pub(super) fn new(fact: impl Into<String>) -> Self {
        Self { facts: vec![fact.into()], ..Self::default() }
    }

    pub(super) fn and(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn and_if_some(mut self, fact: Option<String>) -> Self {
        self.facts.extend(fact);
        self
    }

    /// A change that may mend it, if none before does.
    pub(super) fn suggest(mut self, change: impl Into<Change>) -> Self {
        self.changes.push(change.into());
        self
    }

    pub(super) fn suggest_last_resort(mut self, change: impl Into<Change>) -> Self {
        self.last_resort = Some(change.into());
        self
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
