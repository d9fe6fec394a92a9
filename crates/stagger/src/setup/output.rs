use core::convert::Infallible;
use core::time::Duration;

use crate::StopReason;
use crate::error::{Cause, Error, Rejected, Report};

/// What the call returns.
pub trait Mode {
    /// Whether the output includes the elapsed time, for which the clock is read before the first attempt.
    const TIMED: bool;
    /// How the output represents a call without an operation error.
    type Refusal;
    /// Storage for the last error during a sleep, in case the caller cancels.
    type Kept<E>: Keep<E>;

    /// Converts a rejection, if the call can be rejected at all.
    fn refusal(why: Rejected) -> Option<Self::Refusal>;
}

/// Builds the output from the end of a call.
pub trait Finish<T, E>: Mode {
    /// The type returned to the caller.
    type Output;

    /// Builds the output.
    fn finish(end: End<T, E, Self::Refusal>) -> Self::Output;
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
    Refused(R),
}

/// Storage for the last error.
pub trait Keep<E> {
    /// No error stored.
    const EMPTY: Self;

    /// Stores an error, replacing the previous one.
    fn put(&mut self, error: E);

    /// Takes the error out.
    fn take(&mut self) -> Option<E>;
}

impl<E> Keep<E> for () {
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

impl<E> Keep<E> for Option<E> {
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

impl Mode for Bare {
    const TIMED: bool = false;
    type Refusal = Infallible;
    type Kept<E> = ();

    fn refusal(_: Rejected) -> Option<Infallible> {
        None
    }
}

impl<T, E> Finish<T, E> for Bare {
    type Output = Result<T, E>;

    #[inline]
    fn finish(end: End<T, E, Infallible>) -> Result<T, E> {
        end.result.map_err(|(_, ending)| match ending {
            Ending::Failed(error) => error,
            Ending::Refused(never) => match never {},
        })
    }
}

macro_rules! timed {
    ($($(#[$doc:meta])* $mode:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $mode;

        impl Mode for $mode {
            const TIMED: bool = true;
            type Refusal = Rejected;
            type Kept<E> = Option<E>;

            fn refusal(why: Rejected) -> Option<Rejected> {
                Some(why)
            }
        }
    )*};
}

timed! {
    /// The output is [`Error<E>`].
    Explained
    /// The output is a [`Report`].
    Reported
    /// The output is the operation's own error, which can also represent a rejection.
    Own
}

impl<T, E> End<T, E, Rejected> {
    pub(crate) fn explained(self) -> Result<T, Error<E>> {
        self.result.map_err(|(stop, ending)| {
            let last = match ending {
                Ending::Failed(error) => Cause::Operation(error),
                Ending::Refused(why) => Cause::Rejected(why),
            };
            Error::new(stop, self.attempts, self.elapsed, last)
        })
    }
}

impl<T, E> Finish<T, E> for Explained {
    type Output = Result<T, Error<E>>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        end.explained()
    }
}

impl<T, E> Finish<T, E> for Reported {
    type Output = Report<T, E>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        Report { attempts: end.attempts, elapsed: end.elapsed, result: end.explained() }
    }
}

impl<T, E: From<Rejected>> Finish<T, E> for Own {
    type Output = Result<T, E>;

    fn finish(end: End<T, E, Rejected>) -> Self::Output {
        end.explained().map_err(Error::into_inner)
    }
}
