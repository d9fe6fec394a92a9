//! The error of a call, its cause, and the report of a call that may have succeeded.

use core::fmt;
use core::time::Duration;

use stagger_core::StopReason;
use stagger_core::text::Compact;

use super::boxed::BoxedError;
use super::chain::{Fact, leave_fact};
use super::rejected::Rejected;

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

impl<E> Cause<E> {
    /// Returns the last error of a call that was stopped from outside, or else why it was stopped.
    pub(crate) fn last_or(last: Option<E>, rejected: Rejected) -> Self {
        match last {
            Some(error) => Self::Operation(error),
            None => Self::Rejected(rejected),
        }
    }
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

    /// Boxes the operation's error, for `?` into `anyhow::Error`, `eyre::Report` or `Box<dyn Error>`: an `Error` around
    /// one of these does not implement `std::error::Error`, but around a [`BoxedError`] it does.
    #[must_use]
    pub fn boxed(self) -> Error<BoxedError>
    where
        E: Into<Box<dyn core::error::Error + Send + Sync>> + 'static,
    {
        let last = match self.last {
            Cause::Operation(error) => Cause::Operation(BoxedError::new(error)),
            Cause::Rejected(rejected) => Cause::Rejected(rejected),
        };
        Error { stop: self.stop, attempts: self.attempts, elapsed: self.elapsed, last }
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

    /// Returns the value, or the error with the operation's error boxed; see [`Error::boxed`].
    ///
    /// # Errors
    /// Returns the error, which `?` converts to `anyhow::Error`, `eyre::Report` and `Box<dyn Error>`.
    fn boxed(self) -> Result<T, Error<BoxedError>>
    where
        E: Into<Box<dyn core::error::Error + Send + Sync>> + 'static;
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

    fn boxed(self) -> Result<T, Error<BoxedError>>
    where
        E: Into<Box<dyn core::error::Error + Send + Sync>> + 'static,
    {
        self.map_err(Error::boxed)
    }
}

/// `gave up after 5 attempts in 3.2s, every attempt was used`. The cause is the [`source`](core::error::Error::source);
/// `{:#}` appends it, in its own alternate form. [`display_chain`](crate::display_chain) prints the sources of every
/// error type.
impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{plural} in {:.1}, ", self.attempts, Compact(self.elapsed))?;
        match (&self.last, self.stop) {
            // The source says the same, and for how long.
            (Cause::Rejected(Rejected::ByGuard { .. }), StopReason::Guard(_)) => f.write_str("rejected")?,
            (_, stop) => stop.fmt(f)?,
        }
        match &self.last {
            _ if !f.alternate() => Ok(()),
            Cause::Operation(error) => write!(f, ": {error:#}"),
            Cause::Rejected(rejected) => write!(f, ": {rejected}"),
        }
    }
}

/// An error of an operation that implements `std::error::Error`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `std::error::Error`, and neither does `stagger::Error<{Self}>`",
    label = "call `.boxed()` on the result first, with `use stagger::RetryResultExt as _`",
    note = "`.boxed()` makes an `Error<BoxedError>` of it, which does"
)]
pub trait SourceError: core::error::Error + 'static {}

#[diagnostic::do_not_recommend]
impl<E: core::error::Error + 'static> SourceError for E {}

impl<E: SourceError> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        leave_fact(Fact::Stop(self.stop));
        let error: &(dyn core::error::Error + 'static) = match &self.last {
            Cause::Operation(error) => error,
            Cause::Rejected(rejected) => rejected,
        };
        // The error in the box, not the box, so that it can be downcast to.
        match error.downcast_ref::<BoxedError>() {
            Some(boxed) => Some(&**boxed),
            None => Some(error),
        }
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
