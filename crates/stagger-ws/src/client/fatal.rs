use core::error::Error;
use core::fmt;

use stagger::Stop;

use super::ConnectionError;

/// Nothing more is tried: what went wrong last is not going to pass, or the policy's limits are used up.
///
/// [`source`](Error::source) is what went wrong last.
#[derive(Clone, Debug)]
pub struct Fatal {
    stop_reason: Stop,
    cause: ConnectionError,
    attempts: u32,
}

impl Fatal {
    pub(super) const fn new(stop_reason: Stop, cause: ConnectionError, attempts: u32) -> Self {
        Self { stop_reason, cause, attempts }
    }

    /// This side has ended it.
    pub(super) const fn closed_locally() -> Self {
        Self::new(Stop::Cancelled, ConnectionError::ClosedLocally, 0)
    }

    /// Why there is no further attempt: [`Stop::Permanent`] if another one would fail in the same way.
    #[must_use]
    pub const fn stop_reason(&self) -> Stop {
        self.stop_reason
    }

    /// What went wrong last.
    #[must_use]
    pub const fn cause(&self) -> &ConnectionError {
        &self.cause
    }

    /// The attempts that were made since the last connection that had been healthy.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{s}: {}: {}", self.attempts, self.stop_reason, self.cause)
    }
}

impl Error for Fatal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
