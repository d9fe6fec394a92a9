use core::convert::Infallible;
use core::time::Duration;

use crate::StopReason;
use crate::error::{Cause, Error, Rejected, Report};

/// The kind of output that a call returns.
pub trait OutputMode {
    /// Whether the output includes the elapsed time, for which the clock is read before the first attempt.
    const TIMED: bool;
    /// The representation of a call without an operation error.
    type Rejection;
    /// Storage for the last error during a sleep, in case the caller cancels.
    type LastError<E>: ErrorSlot<E>;

    /// Converts a rejection, if the call can be rejected at all.
    fn rejection(why: Rejected) -> Option<Self::Rejection>;
}

/// Builds the output from the end of a call.
pub trait Finish<T, E>: OutputMode {
    /// The type returned to the caller.
    type Output;

    /// Builds the output.
    fn finish(end: End<T, E, Self::Rejection>) -> Self::Output;
}

/// The end of a call.
#[derive(Debug)]
pub struct End<T, E, R> {
    pub(crate) result: Result<T, (StopReason, Ending<E, R>)>,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
}

/// The end of a failed call.
#[derive(Debug)]
pub(crate) enum Ending<E, R> {
    /// The operation's error.
    Failed(E),
    /// A rejection, without an operation error.
    Rejected(R),
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
    const TIMED: bool = false;
    type Rejection = Infallible;
    type LastError<E> = ();

    fn rejection(_: Rejected) -> Option<Infallible> {
        None
    }
}

impl<T, E> Finish<T, E> for Bare {
    type Output = Result<T, E>;

    #[inline]
    fn finish(end: End<T, E, Infallible>) -> Result<T, E> {
        end.result.map_err(|(_, ending)| match ending {
            Ending::Failed(error) => error,
            Ending::Rejected(never) => match never {},
        })
    }
}

macro_rules! timed {
    ($($(#[$doc:meta])* $mode:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $mode;

        impl OutputMode for $mode {
            const TIMED: bool = true;
            type Rejection = Rejected;
            type LastError<E> = Option<E>;

            fn rejection(why: Rejected) -> Option<Rejected> {
                Some(why)
            }
        }
    )*};
}

timed! {
    /// The output is [`Error<E>`].
    Detailed
    /// The output is a [`Report`].
    Reported
    /// The output is the operation's own error, which can also represent a rejection.
    InnerError
}

impl<T, E> End<T, E, Rejected> {
    pub(crate) fn detailed(self) -> Result<T, Error<E>> {
        self.result.map_err(|(stop, ending)| {
            let last = match ending {
                Ending::Failed(error) => Cause::Operation(error),
                Ending::Rejected(why) => Cause::Rejected(why),
            };
            Error::new(stop, self.attempts, self.elapsed, last)
        })
    }
}

impl<T, E> Finish<T, E> for Detailed {
    type Output = Result<T, Error<E>>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        end.detailed()
    }
}

impl<T, E> Finish<T, E> for Reported {
    type Output = Report<T, E>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        Report { attempts: end.attempts, elapsed: end.elapsed, result: end.detailed() }
    }
}

impl<T, E: From<Rejected>> Finish<T, E> for InnerError {
    type Output = Result<T, E>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        end.detailed().map_err(Error::into_inner)
    }
}
