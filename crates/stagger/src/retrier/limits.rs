use core::time::Duration;

use stagger_core::Instant;

/// The time limits of a call: a deadline for all of it, and a timeout for each attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) deadline: Option<Instant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last: LastAttempt,
}

impl Limits {
    /// No limits.
    pub(crate) const NONE: Self = Self { deadline: None, timeout: None, last: LastAttempt::Timed };

    /// Returns the timeout of an attempt.
    #[inline]
    pub(crate) const fn timeout(&self, is_last: IsLast) -> Option<Duration> {
        match (is_last, self.last) {
            (IsLast::Yes, LastAttempt::Untimed) => None,
            _ => self.timeout,
        }
    }
}

/// Whether an attempt is the last one that the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsLast {
    /// The last attempt.
    Yes,
    /// Another attempt may follow.
    No,
}

/// Whether the timeout of an attempt also applies to the last one.
///
/// A timeout leaves time for another attempt. When there is no other, cutting off the last attempt only turns a late
/// response into no response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastAttempt {
    /// The timeout applies to every attempt. The default.
    #[default]
    Timed,
    /// The last attempt is limited by the deadline only.
    Untimed,
}
