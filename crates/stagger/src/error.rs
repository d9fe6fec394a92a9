use core::fmt;
use core::time::Duration;

use crate::text::Compact;
use crate::{BreakerOpen, StopReason};

/// Why a call was given up, and the error that it ended with.
///
/// It never replaces the caller's own error: [`source`](core::error::Error::source) is that error, and
/// [`into_inner`](RetryResultExt::into_inner) gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error<E> {
    stop: StopReason,
    attempts: u32,
    elapsed: Duration,
    last: Cause<E>,
}

/// How a call ended that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause<E> {
    /// The operation's last error.
    Operation(E),
    /// There is no error of the operation's: it was not called, or not brought to its end.
    Rejected(Rejected),
}

/// What ended an attempt, or prevented it, besides the operation itself.
///
/// An error type that has `From<Rejected>` can take its place: see [`RetryResultExt::into_inner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejected {
    /// The circuit breaker is open.
    BreakerOpen(BreakerOpen),
    /// The attempt took longer than its timeout, or the deadline came.
    TimedOut,
    /// The caller cancelled.
    Cancelled,
    /// The connection was lost, and is not to be had again: see [`Reconnect`](crate::reconnect::Reconnect).
    Lost,
}

impl<E> Error<E> {
    pub(crate) const fn new(stop: StopReason, attempts: u32, elapsed: Duration, last: Cause<E>) -> Self {
        Self { stop, attempts, elapsed, last }
    }

    /// Why there was no further attempt.
    pub const fn stop_reason(&self) -> StopReason {
        self.stop
    }

    /// How many attempts were made, the first included.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long the call took, from its start to its end.
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// How it ended.
    pub const fn cause(&self) -> &Cause<E> {
        &self.last
    }

    /// How it ended.
    pub fn into_cause(self) -> Cause<E> {
        self.last
    }

    /// The operation's last error, if it had one.
    pub const fn error(&self) -> Option<&E> {
        match &self.last {
            Cause::Operation(error) => Some(error),
            Cause::Rejected(_) => None,
        }
    }

    /// The operation's last error, or what `refused` makes of a refusal.
    pub fn into_inner_or(self, refused: impl FnOnce(Rejected) -> E) -> E {
        match self.last {
            Cause::Operation(error) => error,
            Cause::Rejected(why) => refused(why),
        }
    }

    /// The operation's last error.
    pub fn into_inner(self) -> E
    where
        E: From<Rejected>,
    {
        self.into_inner_or(E::from)
    }
}

/// Back from [`Error<E>`] to the caller's own `E`.
pub trait RetryResultExt<T, E> {
    /// The operation's last error, where `E` can also say that the call was refused.
    ///
    /// # Errors
    /// The operation's own.
    fn into_inner(self) -> Result<T, E>
    where
        E: From<Rejected>;

    /// The operation's last error, or what `refused` makes of a refusal.
    ///
    /// # Errors
    /// The operation's own.
    fn into_inner_or(self, refused: impl FnOnce(Rejected) -> E) -> Result<T, E>;
}

impl<T, E> RetryResultExt<T, E> for Result<T, Error<E>> {
    fn into_inner(self) -> Result<T, E>
    where
        E: From<Rejected>,
    {
        self.map_err(Error::into_inner)
    }

    fn into_inner_or(self, refused: impl FnOnce(Rejected) -> E) -> Result<T, E> {
        self.map_err(|error| error.into_inner_or(refused))
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
            Cause::Rejected(refused) => Some(refused),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BreakerOpen(open) => open.fmt(f),
            Self::TimedOut => f.write_str("the attempt ran out of time"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::Lost => f.write_str("the connection was lost"),
        }
    }
}

impl core::error::Error for Rejected {}

impl From<Rejected> for std::io::Error {
    fn from(refused: Rejected) -> Self {
        use std::io::ErrorKind;
        let kind = match refused {
            Rejected::TimedOut => ErrorKind::TimedOut,
            Rejected::Lost => ErrorKind::ConnectionAborted,
            Rejected::BreakerOpen(_) | Rejected::Cancelled => ErrorKind::Other,
        };
        Self::new(kind, refused)
    }
}

/// What came of a call, with what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Report<T, E> {
    /// The value, or the last error with the reason why there was no further attempt.
    pub result: Result<T, Error<E>>,
    /// How many attempts were made, the first included.
    pub attempts: u32,
    /// How long the call took, from its start to its end.
    pub elapsed: Duration,
}

impl<T, E> Report<T, E> {
    /// Why there was no further attempt; `None` if the call succeeded.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.result.as_ref().err().map(Error::stop_reason)
    }
}
