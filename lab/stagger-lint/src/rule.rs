use core::fmt;

use crate::analysis::PolicyAnalysis;
use crate::change::Change;

/// A rule: what it checks, and why it matters.
pub struct Rule {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    pub(super) title: &'static str,
    pub(super) rationale: &'static str,
    pub(super) details: &'static str,
    /// Checks a policy; returns `None` for rules for logs, systems and configurations.
    pub(super) check: fn(&PolicyAnalysis<'_>) -> Option<Diagnosis>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Deviates from the recommendation, and may be intended.
    Note,
    /// Makes an outage worse.
    Warning,
}

impl Severity {
    /// Returns `warning` or `note`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
        }
    }
}

impl Rule {
    /// Returns the code, like `S001`. It never changes and is never reused.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the name, like `no-jitter`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the severity.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns a short description of the problem.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// Returns why the problem matters, in one sentence.
    #[must_use]
    pub const fn rationale(&self) -> &'static str {
        self.rationale
    }

    /// Returns when exactly the rule applies, what to do about it, and the sources.
    #[must_use]
    pub const fn details(&self) -> &'static str {
        self.details
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("code", &self.code).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Rules are equal if their codes are.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

pub(super) type FurtherFact = fn(&PolicyAnalysis<'_>) -> Option<String>;
pub(super) type Simulation = fn(&PolicyAnalysis<'_>) -> Option<Diagnosis>;

/// What a rule has found in a policy, before suggestions are verified.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    pub(super) facts: Vec<String>,
    /// A further fact, which takes long to compute: only for findings that are reported, and not while suggestions are
    /// tried.
    pub(super) when_reported: Option<FurtherFact>,
    /// A simulation that decides whether the finding is reported, and with which facts and advice. It has no changes.
    pub(super) simulation: Option<Simulation>,
    /// Changes of the policy, the best first. They are verified before they are suggested.
    pub(super) changes: Vec<Change>,
    /// A drastic change, suggested only if no other helps.
    pub(super) last_resort: Option<Change>,
    pub(super) advice: Option<String>,
}

impl Diagnosis {
    pub(super) fn new(fact: impl Into<String>) -> Self {
        Self { facts: vec![fact.into()], ..Self::default() }
    }

    pub(super) fn and(mut self, fact: String) -> Self {
        self.facts.push(fact);
        self
    }

    /// Adds a change to try if the ones before do not help.
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
