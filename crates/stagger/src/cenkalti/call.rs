use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::permanent::UnwrapPermanent;
use crate::future::Uncancelled;
use crate::rule::Plain as Unmarking;
use crate::setup::{Bare, Detailed};
use crate::{Marked, time::Clock};

/// A call that will be retried, as returned by [`retry`](super::retry) and its variants.
///
/// In async code it is awaited, or spawned after `into_future()`; in blocking code it is [`run`](Self::run). The type
/// parameters track the configured options; they are inferred.
#[must_use = "nothing is called before it is awaited, or run"]
pub struct Call<F, E, B, P, W, T, M, N> {
    pub(super) operation: F,
    pub(super) backoff: B,
    pub(super) reader: P,
    pub(super) notify: W,
    pub(super) timer: T,
    pub(super) cancel: N,
    pub(super) output: PhantomData<fn() -> (E, M)>,
}

/// A call without options.
pub(super) type Plain<F, E, B, T> = Call<F, E, B, UnwrapPermanent, Silent, T, Bare, Uncancelled>;

impl<F, E, B, T> Plain<F, E, B, T> {
    pub(super) const fn new(operation: F, backoff: B, timer: T) -> Self {
        let (reader, notify, cancel) = (UnwrapPermanent, Silent, Uncancelled);
        Self { operation, backoff, reader, notify, timer, cancel, output: PhantomData }
    }
}

impl<F, E, B, T, M, N> Call<F, Marked<E>, B, UnwrapPermanent, Silent, T, M, N> {
    /// Honors and removes the marks of [`Marked`] errors: the caller gets the original error. Only
    /// [`permanent`](Marked::permanent) has an effect here, because the package has no hints.
    ///
    /// Comes before [`notify`](Self::notify), which receives the original error, too.
    pub fn with_marks(self) -> Call<F, E, B, Unmarking, Silent, T, M, N> {
        let Self { operation, backoff, notify, timer, cancel, .. } = self;
        Call { operation, backoff, reader: Unmarking, notify, timer, cancel, output: PhantomData }
    }
}

impl<F, E, B, P, W, T, M, N> Call<F, E, B, P, W, T, M, N> {
    /// Sets a function that receives each error that is retried, and the wait before the retry, before the wait begins.
    pub fn notify<W2: FnMut(&E, Duration)>(self, notify: W2) -> Call<F, E, B, P, W2, T, M, N> {
        let Self { operation, backoff, reader, timer, cancel, .. } = self;
        Call { operation, backoff, reader, notify, timer, cancel, output: PhantomData }
    }

    /// Sets the timer to sleep on.
    pub fn timer<T2: Clock>(self, timer: T2) -> Call<F, E, B, P, W, T2, M, N> {
        let Self { operation, backoff, reader, notify, cancel, .. } = self;
        Call { operation, backoff, reader, notify, timer, cancel, output: PhantomData }
    }

    /// Ends the call's sleep when the caller cancels: with a [`&Cancel`](crate::Cancel) in blocking code, with any
    /// future in async code. Replaces the package's context.
    ///
    /// The operation is called at least once and is never interrupted, and its success is returned even if the call was
    /// cancelled. The last error is kept: the call returns [`Error<E>`](crate::Error) with
    /// [`StopReason::Cancelled`](crate::StopReason::Cancelled).
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::StopReason;
    /// use stagger::cenkalti::{self, ConstantBackOff};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let operation = async || Err::<(), _>("refused");
    /// let every_second = ConstantBackOff::new(Duration::from_secs(1));
    /// let timeout = tokio::time::sleep(Duration::from_millis(2_500));
    /// let error = cenkalti::retry(operation, every_second).cancelled_by(timeout).await.unwrap_err();
    /// assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Cancelled, 3, Some(&"refused")));
    /// # });
    /// ```
    pub fn cancelled_by<N2>(self, cancel: N2) -> Call<F, E, B, P, W, T, Detailed, N2> {
        let Self { operation, backoff, reader, notify, timer, .. } = self;
        Call { operation, backoff, reader, notify, timer, cancel, output: PhantomData }
    }

    /// Sets the output to [`Error<E>`](crate::Error) on failure: the last error, the reason to stop, the number of
    /// attempts and the elapsed time.
    pub fn detailed(self) -> Call<F, E, B, P, W, T, Detailed, N> {
        let Self { operation, backoff, reader, notify, timer, cancel, .. } = self;
        Call { operation, backoff, reader, notify, timer, cancel, output: PhantomData }
    }
}

impl<F, E, B: fmt::Debug, P, W, T, M, N> fmt::Debug for Call<F, E, B, P, W, T, M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

/// Receives the errors that are retried.
pub trait Notify<E> {
    /// Receives an error that is retried, and the wait before the retry.
    fn notify(&mut self, error: &E, delay: Duration);
}

/// A no-op [`Notify`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl<E> Notify<E> for Silent {
    fn notify(&mut self, _: &E, _: Duration) {}
}

impl<E, W: FnMut(&E, Duration)> Notify<E> for W {
    fn notify(&mut self, error: &E, delay: Duration) {
        self(error, delay);
    }
}
