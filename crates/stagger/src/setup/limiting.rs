use core::time::Duration;

use crate::Instant;

/// What limits an attempt.
pub trait Limiting {
    /// Whether there can be a limit at all.
    const LIMITS: bool;

    /// When the whole call ends.
    fn deadline(&self) -> Option<Instant>;

    /// How long one attempt may take.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
}

/// Whether an attempt is the last that the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsLast {
    /// It is.
    Yes,
    /// Another may follow.
    No,
}

/// Nothing does.
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
    /// Whether nothing is limited, as it happens.
    pub(crate) const fn are_none(&self) -> bool {
        self.deadline.is_none() && self.timeout.is_none()
    }
}

impl From<Unlimited> for Limits {
    fn from(_: Unlimited) -> Self {
        Self::default()
    }
}

/// Whether the timeout of an attempt holds for the last one too.
///
/// A timeout makes room for another attempt. When there is none left, cutting the last one short only turns a late
/// answer into no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastAttempt {
    /// It holds for every attempt. The default.
    #[default]
    Timed,
    /// The last attempt may take as long as the deadline allows.
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
