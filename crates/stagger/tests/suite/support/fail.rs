use core::fmt;

use stagger::{Outcome, Rejected};

/// An error that carries its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fail(pub(crate) Outcome);

impl Fail {
    pub(crate) const TRANSIENT: Self = Self(Outcome::TRANSIENT);

    /// Returns the outcome, for use as a classifier.
    pub(crate) const fn outcome(&self) -> Outcome {
        self.0
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl core::error::Error for Fail {}

impl From<Rejected> for Fail {
    fn from(_: Rejected) -> Self {
        Self(Outcome::Cancelled)
    }
}
