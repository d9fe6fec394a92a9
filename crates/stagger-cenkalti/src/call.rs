use core::fmt;
use core::future::{Pending, pending};
use core::marker::PhantomData;
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger::Marked;
use stagger::time::Clock;

use crate::output::{Bare, Detailed};

pin_project! {
    /// A call that will be retried, as returned by [`retry`](crate::retry()) and its variants.
    ///
    /// In async code it is awaited, or spawned after `into_future()`; in blocking code it is [`run`](Self::run). The
    /// type parameters track the configured options; they are inferred.
    #[must_use = "nothing is called before it is awaited, or run"]
    pub struct Call<F, E, B, W, T, N> {
        pub(crate) operation: F,
        pub(crate) backoff: B,
        pub(crate) notify: W,
        pub(crate) timer: T,
        #[pin]
        pub(crate) mode: N,
        pub(crate) error: PhantomData<fn() -> E>,
    }
}

impl<F, E, B, T> Call<F, E, B, Silent, T, Bare> {
    pub(crate) const fn new(operation: F, backoff: B, timer: T) -> Self {
        Self { operation, backoff, notify: Silent, timer, mode: Bare, error: PhantomData }
    }
}

impl<F, E, B, T, N> Call<F, Marked<E>, B, Silent, T, N> {
    /// Honors and removes the marks of [`Marked`] errors: the caller gets the original error. Only
    /// [`permanent`](Marked::permanent) has an effect here, because the package has no hints.
    ///
    /// Comes before [`notify`](Self::notify), which receives the original error, too.
    pub fn with_marks(self) -> Call<F, E, B, Silent, T, N> {
        let Self { operation, backoff, notify, timer, mode, .. } = self;
        Call { operation, backoff, notify, timer, mode, error: PhantomData }
    }
}

impl<F, E, B, W, T, N> Call<F, E, B, W, T, N> {
    /// Sets a function that receives each error that is retried, and the wait before the retry, before the wait begins.
    pub fn notify<W2: FnMut(&E, Duration)>(self, notify: W2) -> Call<F, E, B, W2, T, N> {
        let Self { operation, backoff, timer, mode, error, .. } = self;
        Call { operation, backoff, notify, timer, mode, error }
    }

    /// Sets the timer to sleep on.
    pub fn timer<T2: Clock>(self, timer: T2) -> Call<F, E, B, W, T2, N> {
        let Self { operation, backoff, notify, mode, error, .. } = self;
        Call { operation, backoff, notify, timer, mode, error }
    }

    /// Ends the call's sleep when the caller cancels: with a [`&Cancel`](stagger::Cancel) in blocking code, with any
    /// future in async code. Replaces the package's context.
    ///
    /// The operation is called at least once and is never interrupted, and its success is returned even if the call was
    /// cancelled. The last error is kept: the call returns [`Error<E>`](crate::Error) with
    /// [`StopReason::Cancelled`](stagger::StopReason::Cancelled).
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::StopReason;
    /// use stagger_cenkalti::{self as backoff, ConstantBackOff};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let operation = async || Err::<(), _>("refused");
    /// let every_second = ConstantBackOff::new(Duration::from_secs(1));
    /// let timeout = tokio::time::sleep(Duration::from_millis(2_500));
    /// let error = backoff::retry(operation, every_second).cancelled_by(timeout).await.unwrap_err();
    /// assert_eq!((error.stop_reason(), error.attempts(), error.into_inner()), (StopReason::Cancelled, 3, "refused"));
    /// # });
    /// ```
    pub fn cancelled_by<N2>(self, cancel: N2) -> Call<F, E, B, W, T, Detailed<N2>> {
        let Self { operation, backoff, notify, timer, error, .. } = self;
        Call { operation, backoff, notify, timer, mode: Detailed { cancel }, error }
    }
}

impl<F, E, B, W, T> Call<F, E, B, W, T, Bare> {
    /// Sets the output to [`Error<E>`](crate::Error) on failure: the last error, the reason to stop, the number of
    /// attempts and the elapsed time. A call with [`cancelled_by`](Self::cancelled_by) always returns it.
    pub fn detailed(self) -> Call<F, E, B, W, T, Detailed<Pending<()>>> {
        self.cancelled_by(pending())
    }
}

impl<F, E, B: fmt::Debug, W, T, N> fmt::Debug for Call<F, E, B, W, T, N> {
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
