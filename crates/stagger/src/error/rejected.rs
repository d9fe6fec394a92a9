use core::fmt;

use stagger_core::BreakerOpen;

/// Why an attempt was prevented or ended by something other than the operation.
///
/// An error type that implements `From<Rejected>` can represent it: see [`RetryResultExt::into_inner`](crate::RetryResultExt::into_inner).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// The circuit breaker is open.
    BreakerOpen(BreakerOpen),
    /// The attempt exceeded its timeout or the deadline.
    TimedOut,
    /// The deadline had passed before the attempt.
    DeadlinePassed,
    /// The caller cancelled the call.
    Cancelled,
    /// The connection was lost and is not reestablished: see [`Reconnect`](crate::reconnect::Reconnect).
    Lost,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BreakerOpen(open) => open.fmt(f),
            Self::TimedOut => f.write_str("the attempt exceeded its time limit"),
            Self::DeadlinePassed => f.write_str("the deadline had passed before the attempt"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Lost => f.write_str("the connection was lost"),
        }
    }
}

impl core::error::Error for Rejected {}

impl From<Rejected> for std::io::Error {
    fn from(rejected: Rejected) -> Self {
        use std::io::ErrorKind;
        let kind = match rejected {
            Rejected::TimedOut | Rejected::DeadlinePassed => ErrorKind::TimedOut,
            Rejected::Lost => ErrorKind::ConnectionAborted,
            Rejected::BreakerOpen(_) | Rejected::Cancelled => ErrorKind::Other,
        };
        Self::new(kind, rejected)
    }
}
