//! What a call returns when it fails, and how it is cancelled.

use core::future::{Future, Pending};
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;
use stagger::Cancel;

use crate::error::Error;

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
