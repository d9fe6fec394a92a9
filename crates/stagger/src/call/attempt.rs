use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::Policy;

/// The attempt that an operation is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// The policy's limit on attempts, if there is one.
    pub max: Option<NonZeroU32>,
    /// Time limit of the attempt: what is left until the deadline, and at most the timeout. Never zero. `None` if there
    /// is no limit.
    ///
    /// An async attempt is dropped at the limit. A blocking attempt cannot be interrupted: pass the limit on to what it
    /// calls.
    pub time_limit: Option<Duration>,
}

impl Attempt {
    /// Returns whether no other attempt follows if this one fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.max.is_some_and(|max| self.number >= max.get())
    }

    /// Creates the first attempt of a call without options.
    #[inline]
    pub(crate) const fn first(policy: &Policy) -> Self {
        Self { number: 1, max: policy.max_attempts(), time_limit: None }
    }
}
