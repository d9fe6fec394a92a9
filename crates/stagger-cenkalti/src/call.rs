//! A call, and its decisions, in the order of the package's loop. The drivers, async and blocking, only call the
//! operation and wait.

use core::fmt;
use core::future::{Pending, pending};
use core::marker::PhantomData;
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger::time::Clock;
use stagger::{Instant, Marked, StopReason, scope};

use crate::backoff::BackOff;
use crate::output::{Bare, Detailed, Error, OutputMode};

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
    /// # let mut builder = tokio::runtime::Builder::new_current_thread();
    /// # builder.enable_time().start_paused(true).build().unwrap().block_on(async {
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

/// The state of one call.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    attempts: u32,
    /// Set if the output includes the elapsed time.
    start: Option<Instant>,
    is_nested: bool,
}

/// What follows a failed attempt.
pub(crate) enum Next {
    /// Another attempt, after this wait.
    Wait(Duration),
    Stop(StopReason),
}

impl CallState {
    /// Starts the call, before the first attempt. Without `timed`, the clock is not read.
    pub(crate) fn start(&mut self, backoff: &mut impl BackOff, timed: Option<&impl Clock>) {
        self.is_nested = scope::depth() > 0;
        self.start = timed.map(Clock::now);
        backoff.reset();
    }

    /// Counts an attempt; called before each one.
    pub(crate) const fn begin(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Decides what follows a failed attempt. `notify` receives the wait before the retry.
    pub(crate) fn failed(
        &mut self,
        is_permanent: bool,
        backoff: &mut impl BackOff,
        is_cancelled: impl FnOnce() -> bool,
        notify: impl FnOnce(Duration),
    ) -> Next {
        if is_permanent {
            return Next::Stop(StopReason::Permanent);
        }
        if self.is_nested {
            return Next::Stop(StopReason::Nested);
        }
        match backoff.next_backoff() {
            None => Next::Stop(if is_cancelled() { StopReason::Cancelled } else { StopReason::Exhausted }),
            Some(delay) => {
                notify(delay);
                Next::Wait(delay)
            }
        }
    }

    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the error of the call, which ends.
    pub(crate) fn end<N: OutputMode, E>(&self, stop: StopReason, last: E, clock: &impl Clock) -> N::Error<E> {
        let elapsed = self.start.map_or(Duration::ZERO, |start| clock.now().saturating_since(start));
        N::error(Error { stop, attempts: self.attempts, elapsed, last })
    }
}
