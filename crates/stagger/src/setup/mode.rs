use core::convert::Infallible;
use core::time::Duration;

use crate::StopReason;
use crate::error::{Cause, Error, Rejected, Report};

/// What the caller gets.
pub trait Mode {
    /// Whether it tells the elapsed time, for which the clock is read before attempt 1.
    const TIMED: bool;
    /// How it says that there is no error of the operation's.
    type Refusal;
    /// Where the last error waits during a sleep, for a caller who cancels.
    type Kept<E>: Keep<E>;

    /// A refusal, where one can happen at all.
    fn refusal(why: Rejected) -> Option<Self::Refusal>;
}

/// What the caller gets for this value and this error.
pub trait Finish<T, E>: Mode {
    /// It.
    type Output;

    /// Makes it.
    fn finish(end: End<T, E, Self::Refusal>) -> Self::Output;
}

/// The end of a call.
#[derive(Debug)]
pub struct End<T, E, R> {
    pub(crate) result: Result<T, (StopReason, Ending<E, R>)>,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
}

/// How a call ended that did not succeed.
#[derive(Debug)]
pub(crate) enum Ending<E, R> {
    /// With the operation's error.
    Failed(E),
    /// Without one.
    Refused(R),
}

/// Where an error waits.
pub trait Keep<E> {
    /// With nothing in it.
    const EMPTY: Self;

    /// Puts one in, in place of the one before.
    fn put(&mut self, error: E);

    /// Takes it out.
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

/// The operation's own error, bare. Nothing can refuse such a call.
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
    /// [`Error<E>`].
    Explained
    /// [`Report`].
    Reported
    /// The operation's own error, which can also say that the call was refused.
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
