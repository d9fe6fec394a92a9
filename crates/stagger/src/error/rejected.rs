//! Rejections: attempts that were prevented, or ended by something other than the operation.

use core::fmt;
use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::text::Compact;

use super::chain::{Fact, leave_fact};

/// Why an attempt was prevented or ended by something other than the operation.
///
/// An error type that implements `From<Rejected>` can represent it: see
/// [`RetryResultExt::into_inner`](crate::RetryResultExt::into_inner).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// The client's own [guard](crate::guard::Guard) of this name did not let the attempt start.
    ByGuard {
        /// The name of the guard, such as `breaker`.
        guard: &'static str,
        /// In how long an attempt could start, as far as is known. A retry around this call treats it as a hint.
        retry_in: Duration,
    },
    /// The attempt exceeded its timeout or the deadline.
    TimedOut,
    /// The deadline had passed before the attempt.
    DeadlinePassed,
    /// The caller cancelled the call.
    Cancelled,
    /// The connection was lost and is not reestablished: see [`Reconnect`](crate::reconnect::Reconnect).
    Lost,
}

impl Rejected {
    /// Returns in how long an attempt could start, as far as is known.
    pub(crate) const fn retry_in(self) -> Option<Duration> {
        match self {
            Self::ByGuard { retry_in, .. } => Some(retry_in),
            Self::TimedOut | Self::DeadlinePassed | Self::Cancelled | Self::Lost => None,
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByGuard { guard, .. } if StopReason::Guard(guard) == StopReason::TOO_MANY_GUARDS => {
                StopReason::TOO_MANY_GUARDS.fmt(f)
            }
            Self::ByGuard { guard: "breaker", retry_in } => {
                write!(f, "this client's own circuit breaker is open for another {:.1}", Compact(*retry_in))
            }
            Self::ByGuard { guard: "quiet", retry_in } => {
                let left = Compact(*retry_in);
                write!(f, "the server asked this client to pause, and the pause lasts another {left:.1}")
            }
            Self::ByGuard { guard, retry_in } => {
                write!(f, "this client's own {guard} has no turn for another {:.1}", Compact(*retry_in))
            }
            Self::TimedOut => f.write_str("the attempt exceeded its time limit"),
            Self::DeadlinePassed => f.write_str("the deadline had passed before the attempt"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Lost => f.write_str("the connection was lost"),
        }
    }
}

impl core::error::Error for Rejected {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        // Also found behind a type that is transparent for this error, such as that of reqwest's middleware.
        match self {
            Self::Cancelled => leave_fact(Fact::Stop(StopReason::Cancelled)),
            Self::ByGuard { guard, .. } => leave_fact(Fact::Stop(StopReason::Guard(guard))),
            Self::DeadlinePassed => leave_fact(Fact::Stop(StopReason::Elapsed)),
            Self::TimedOut | Self::Lost => {}
        }
        None
    }
}

impl From<Rejected> for std::io::Error {
    fn from(rejected: Rejected) -> Self {
        use std::io::ErrorKind;
        let kind = match rejected {
            Rejected::TimedOut | Rejected::DeadlinePassed => ErrorKind::TimedOut,
            Rejected::Lost => ErrorKind::ConnectionAborted,
            Rejected::ByGuard { .. } | Rejected::Cancelled => ErrorKind::Other,
        };
        Self::new(kind, rejected)
    }
}
