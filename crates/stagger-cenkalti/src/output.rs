//! What a call returns when it fails, and how it is cancelled.

use core::fmt;
use core::future::{Future, Pending};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger::text::Compact;
use stagger::{Cancel, StopReason};

/// The error of a [detailed](crate::Call::detailed) or [cancellable](crate::Call::cancelled_by) call that gave up.
///
/// It keeps the operation's last error: [`source`](core::error::Error::source) returns it, and
/// [`into_inner`](Self::into_inner) converts back to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error<E> {
    pub(crate) stop: StopReason,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
    pub(crate) last: E,
}

impl<E> Error<E> {
    /// Returns the reason why there was no further attempt: `Permanent`, `Exhausted` if the backoff ended, `Cancelled`,
    /// or `Nested` if the call was made inside an attempt of another call.
    pub const fn stop_reason(&self) -> StopReason {
        self.stop
    }

    /// Returns the number of attempts made, including the first.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns how long the call took, from its start to its end, on the clock of its timer.
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the operation's last error.
    pub const fn error(&self) -> &E {
        &self.last
    }

    /// Returns the operation's last error, consuming this one.
    pub fn into_inner(self) -> E {
        self.last
    }
}

/// `gave up after 5 attempts in 3.2s, every attempt was used`. The cause is the
/// [`source`](core::error::Error::source); `{:#}` appends it, in its own alternate form.
impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stop, attempts, elapsed, last } = self;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {attempts} attempt{plural} in {:.1}, {stop}", Compact(*elapsed))?;
        if f.alternate() { write!(f, ": {last:#}") } else { Ok(()) }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.last)
    }
}

/// The error that a call returns.
pub trait OutputMode {
    /// The error returned to the caller.
    type Error<E>;

    /// Whether the error has the elapsed time; if it has not, the clock is not read.
    const TIMED: bool;

    /// Converts the error of the call.
    fn error<E>(error: Error<E>) -> Self::Error<E>;
}

/// The output of a call without options: the operation's last error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bare;

pin_project! {
    /// The output of a detailed call: [`Error`](crate::Error). `N` cancels the call.
    #[derive(Clone, Copy, Debug)]
    pub struct Detailed<N> {
        #[pin]
        pub(crate) cancel: N,
    }
}

impl OutputMode for Bare {
    type Error<E> = E;
    const TIMED: bool = false;

    fn error<E>(error: Error<E>) -> E {
        error.last
    }
}

impl<N> OutputMode for Detailed<N> {
    type Error<E> = Error<E>;
    const TIMED: bool = true;

    fn error<E>(error: Error<E>) -> Error<E> {
        error
    }
}

/// Cancellation of an async call.
pub trait AsyncCancel: OutputMode {
    /// Returns whether the call is cancelled; after that it is not called again.
    fn poll_cancelled(self: Pin<&mut Self>, _: &mut Context<'_>) -> bool {
        false
    }
}

impl AsyncCancel for Bare {}

impl<N: Future> AsyncCancel for Detailed<N> {
    fn poll_cancelled(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        matches!(self.project().cancel.poll(cx), Poll::Ready(_))
    }
}

/// Cancellation of a blocking call.
pub trait BlockingCancel: OutputMode {
    /// Returns the handle to sleep on, if the call can be cancelled.
    fn handle(&self) -> Option<&Cancel> {
        None
    }
}

impl BlockingCancel for Bare {}

impl BlockingCancel for Detailed<Pending<()>> {}

impl BlockingCancel for Detailed<&Cancel> {
    fn handle(&self) -> Option<&Cancel> {
        Some(self.cancel)
    }
}
