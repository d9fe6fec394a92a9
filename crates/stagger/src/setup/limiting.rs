use core::time::Duration;

use crate::Instant;

/// The time limits of a call.
pub trait Limiting {
    /// Whether there can be a limit at all.
    const LIMITS: bool;

    /// Returns the deadline of the call.
    fn deadline(&self) -> Option<Instant>;

    /// Returns the timeout of an attempt.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
}

/// Whether an attempt is the last one that the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsLast {
    /// The last attempt.
    Yes,
    /// Another attempt may follow.
    No,
}

/// A call without time limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Limiting for Unlimited {
    const LIMITS: bool = false;

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }

    #[inline]
    fn timeout(&self, _: IsLast) -> Option<Duration> {
        None
    }
}

/// A deadline for the call, a timeout for each attempt, or both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub(crate) deadline: Option<Instant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last: LastAttempt,
}

impl Limits {
    /// Returns whether neither limit is set.
    pub(crate) const fn are_none(&self) -> bool {
        self.deadline.is_none() && self.timeout.is_none()
    }
}

impl From<Unlimited> for Limits {
    fn from(_: Unlimited) -> Self {
        Self::default()
    }
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

impl Limiting for Limits {
    const LIMITS: bool = true;

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn timeout(&self, last: IsLast) -> Option<Duration> {
        match (last, self.last) {
            (IsLast::Yes, LastAttempt::Untimed) => None,
            _ => self.timeout,
        }
    }
}
