//! What a call returns.

use core::time::Duration;

use stagger_core::StopReason;

use crate::error::call_error::{Cause, Error, Report};
use crate::error::rejected::Rejected;

/// The kind of output that a call returns.
pub trait OutputMode {
    /// Storage for the last error during a sleep, in case the call ends without another.
    type LastError<E>: ErrorSlot<E>;
    /// This output if it can represent a rejection, or else [`Detailed`].
    type Rejectable: OutputMode;
}

/// Builds the output from the end of a call.
#[diagnostic::on_unimplemented(
    message = "`{E}` cannot represent a call that was rejected, because it does not implement `From<Rejected>`",
    label = "the output cannot be a `Result<_, {E}>`",
    note = "implement `From<stagger::Rejected>` for `{E}`, or leave out `.with_inner_error()`: the error is then a \
            `stagger::Error<{E}>`"
)]
pub trait Finish<T, E>: OutputMode {
    /// The type returned to the caller.
    type Output;

    /// Builds the output of a call that succeeded.
    fn success(value: T, ended: impl FnOnce() -> Ended) -> Self::Output;

    /// Builds the output of a call that failed. Returns `None` if the output cannot represent a rejection, because
    /// nothing can reject such a call.
    fn failure(cause: Cause<E>, stop: StopReason, ended: impl FnOnce() -> Ended) -> Option<Self::Output>;
}

/// Facts about a call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
}

impl Ended {
    pub(crate) const fn error<E>(self, cause: Cause<E>, stop: StopReason) -> Error<E> {
        Error::new(stop, self.attempts, self.elapsed, cause)
    }
}

/// Storage for the last error.
pub trait ErrorSlot<E> {
    /// No error stored.
    const EMPTY: Self;

    /// Stores an error, replacing the previous one.
    fn put(&mut self, error: E);

    /// Takes the error out.
    fn take(&mut self) -> Option<E>;
}

impl<E> ErrorSlot<E> for () {
    const EMPTY: Self = ();

    #[inline]
    fn put(&mut self, error: E) {
        drop(error);
    }

    #[inline]
    fn take(&mut self) -> Option<E> {
        None
    }
}

impl<E> ErrorSlot<E> for Option<E> {
    const EMPTY: Self = None;

    fn put(&mut self, error: E) {
        *self = Some(error);
    }

    fn take(&mut self) -> Self {
        self.take()
    }
}

/// The operation's own error. Nothing can reject such a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare;

impl OutputMode for Bare {
    type LastError<E> = ();
    type Rejectable = Detailed;
}

#[diagnostic::do_not_recommend]
impl<T, E> Finish<T, E> for Bare {
    type Output = Result<T, E>;

    #[inline]
    fn success(value: T, _: impl FnOnce() -> Ended) -> Result<T, E> {
        Ok(value)
    }

    #[inline]
    fn failure(cause: Cause<E>, _: StopReason, _: impl FnOnce() -> Ended) -> Option<Result<T, E>> {
        match cause {
            Cause::Operation(error) => Some(Err(error)),
            Cause::Rejected(_) => None,
        }
    }
}

/// The output is [`Error<E>`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Detailed;

impl OutputMode for Detailed {
    type LastError<E> = Option<E>;
    type Rejectable = Self;
}

#[diagnostic::do_not_recommend]
impl<T, E> Finish<T, E> for Detailed {
    type Output = Result<T, Error<E>>;

    fn success(value: T, _: impl FnOnce() -> Ended) -> Self::Output {
        Ok(value)
    }

    fn failure(cause: Cause<E>, stop: StopReason, ended: impl FnOnce() -> Ended) -> Option<Self::Output> {
        Some(Err(ended().error(cause, stop)))
    }
}

/// The output is a [`Report`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Reported;

impl OutputMode for Reported {
    type LastError<E> = Option<E>;
    type Rejectable = Self;
}

#[diagnostic::do_not_recommend]
impl<T, E> Finish<T, E> for Reported {
    type Output = Report<T, E>;

    fn success(value: T, ended: impl FnOnce() -> Ended) -> Self::Output {
        let Ended { attempts, elapsed } = ended();
        Report { result: Ok(value), attempts, elapsed }
    }

    fn failure(cause: Cause<E>, stop: StopReason, ended: impl FnOnce() -> Ended) -> Option<Self::Output> {
        let ended = ended();
        Some(Report { result: Err(ended.error(cause, stop)), attempts: ended.attempts, elapsed: ended.elapsed })
    }
}

/// The output is the operation's own error, which can also represent a rejection.
#[derive(Clone, Copy, Debug, Default)]
pub struct InnerError;

impl OutputMode for InnerError {
    type LastError<E> = Option<E>;
    type Rejectable = Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Rejected>> Finish<T, E> for InnerError {
    type Output = Result<T, E>;

    fn success(value: T, _: impl FnOnce() -> Ended) -> Self::Output {
        Ok(value)
    }

    fn failure(cause: Cause<E>, _: StopReason, _: impl FnOnce() -> Ended) -> Option<Self::Output> {
        Some(Err(match cause {
            Cause::Operation(error) => error,
            Cause::Rejected(rejected) => E::from(rejected),
        }))
    }
}
