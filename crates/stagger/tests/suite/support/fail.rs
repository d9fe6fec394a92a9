use core::fmt;

use stagger::{Outcome, Refused};

/// An error that says what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fail(pub(crate) Outcome);

impl Fail {
    pub(crate) const TRANSIENT: Self = Self(Outcome::TRANSIENT);

    /// The rule for it.
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

impl From<Refused> for Fail {
    fn from(_: Refused) -> Self {
        Self(Outcome::Cancelled)
    }
}
