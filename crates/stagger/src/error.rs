use core::fmt;
use core::time::Duration;

use crate::text::Compact;
use crate::{BreakerOpen, StopReason};

/// The error of a call that gave up: the reason to stop, the number of attempts, the elapsed time and the cause.
///
/// It never replaces the operation's error: [`source`](core::error::Error::source) returns that error, and
/// [`into_inner`](RetryResultExt::into_inner) converts back to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error<E> {
    stop: StopReason,
    attempts: u32,
    elapsed: Duration,
    last: Cause<E>,
}

/// The cause of a failed call: an error of its operation, or a rejection.
///
/// Exhaustive: a call either has an error of its operation, or it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause<E> {
    /// The operation's last error.
    Operation(E),
    /// The operation returned no error: it was not called, or did not complete.
    Rejected(Rejected),
}

/// Why an attempt was prevented or ended by something other than the operation.
///
/// An error type that implements `From<Rejected>` can represent it: see [`RetryResultExt::into_inner`].
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

impl<E> Error<E> {
    pub(crate) const fn new(stop: StopReason, attempts: u32, elapsed: Duration, last: Cause<E>) -> Self {
        Self { stop, attempts, elapsed, last }
    }

    /// Returns the reason why there was no further attempt.
    pub const fn stop_reason(&self) -> StopReason {
        self.stop
    }

    /// Returns the number of attempts made, including the first.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long the call took, from its start to its end.
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns what made the call fail.
    pub const fn cause(&self) -> &Cause<E> {
        &self.last
    }

    /// Returns what made the call fail, consuming the error.
    pub fn into_cause(self) -> Cause<E> {
        self.last
    }

    /// Returns the operation's last error, if there is one.
    pub const fn error(&self) -> Option<&E> {
        match &self.last {
            Cause::Operation(error) => Some(error),
            Cause::Rejected(_) => None,
        }
    }

    /// Returns the operation's last error, or converts the rejection with `rejected`.
    pub fn into_inner_or(self, rejected: impl FnOnce(Rejected) -> E) -> E {
        match self.last {
            Cause::Operation(error) => error,
            Cause::Rejected(reason) => rejected(reason),
        }
    }

    /// Returns the operation's last error, or the rejection converted to `E`.
    pub fn into_inner(self) -> E
    where
        E: From<Rejected>,
    {
        self.into_inner_or(E::from)
    }
}

/// Conversion from [`Error<E>`] back to the operation's own `E`.
pub trait RetryResultExt<T, E> {
    /// Returns the value, or the operation's last error; a rejection is converted to `E`.
    ///
    /// # Errors
    /// Returns the operation's error.
    fn into_inner(self) -> Result<T, E>
    where
        E: From<Rejected>;

    /// Returns the value, or the operation's last error; a rejection is converted with `rejected`.
    ///
    /// # Errors
    /// Returns the operation's error.
    fn into_inner_or(self, rejected: impl FnOnce(Rejected) -> E) -> Result<T, E>;
}

impl<T, E> RetryResultExt<T, E> for Result<T, Error<E>> {
    fn into_inner(self) -> Result<T, E>
    where
        E: From<Rejected>,
    {
        self.map_err(Error::into_inner)
    }

    fn into_inner_or(self, rejected: impl FnOnce(Rejected) -> E) -> Result<T, E> {
        self.map_err(|error| error.into_inner_or(rejected))
    }
}

/// `gave up after 5 attempts in 3.2s, every attempt was used: connection refused`.
impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{plural} in {:.1}", self.attempts, Compact(self.elapsed))?;
        match (&self.last, self.stop) {
            // These causes say what the reason says, and more.
            (Cause::Rejected(Rejected::BreakerOpen(_)), StopReason::Breaker)
            | (Cause::Rejected(Rejected::Cancelled), StopReason::Cancelled) => f.write_str(": ")?,
            (_, stop) => write!(f, ", {stop}: ")?,
        }
        match &self.last {
            Cause::Operation(error) => error.fmt(f),
            Cause::Rejected(rejected) => rejected.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.last {
            Cause::Operation(error) => Some(error),
            Cause::Rejected(rejected) => Some(rejected),
        }
    }
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

/// The result of a call, with the number of attempts and the elapsed time.
///
/// Complete: a plain record that the caller may take apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report<T, E> {
    /// The value, or the last error with the reason to stop.
    pub result: Result<T, Error<E>>,
    /// Number of attempts made, including the first.
    pub attempts: u32,
    /// Time from the start of the call to its end.
    pub elapsed: Duration,
}

impl<T, E> Report<T, E> {
    /// Returns the reason why there was no further attempt, or `None` if the call succeeded.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.result.as_ref().err().map(Error::stop_reason)
    }
}
