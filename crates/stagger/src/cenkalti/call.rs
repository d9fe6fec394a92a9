use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::permanent::Unwrapping;
use crate::future::Uncancelled;
use crate::rule::WithMarks;
use crate::setup::{Bare, Explained};
use crate::{Marked, time::Clock};

/// A call that is to be retried: what [`retry`](super::retry) and its likes give.
///
/// Async, it is awaited; spawned, by way of `into_future()`. Blocking, it is [`run`](Self::run). Its type parameters
/// stand for what it brings along; nobody writes them.
#[must_use = "nothing is called before it is awaited, or run"]
pub struct Call<F, E, B, P, W, T, M, N> {
    pub(super) operation: F,
    pub(super) backoff: B,
    pub(super) reading: P,
    pub(super) notify: W,
    pub(super) timer: T,
    pub(super) cancel: N,
    pub(super) gives: PhantomData<fn() -> (E, M)>,
}

/// A call as it is made first.
pub(super) type Plain<F, E, B, T> = Call<F, E, B, Unwrapping, Silent, T, Bare, Uncancelled>;

impl<F, E, B, T> Plain<F, E, B, T> {
    pub(super) const fn new(operation: F, backoff: B, timer: T) -> Self {
        let (reading, notify, cancel) = (Unwrapping, Silent, Uncancelled);
        Self { operation, backoff, reading, notify, timer, cancel, gives: PhantomData }
    }
}

impl<F, E, B, T, M, N> Call<F, Marked<E>, B, Unwrapping, Silent, T, M, N> {
    /// Reads the marks of [`Marked`], and takes them off: the caller gets the original error. Only
    /// [`permanent`](Marked::permanent) means anything here; the package knows of no hints.
    ///
    /// Comes before [`notify`](Self::notify), which is told the original error too.
    pub fn with_marks(self) -> Call<F, E, B, WithMarks, Silent, T, M, N> {
        let Self { operation, backoff, notify, timer, cancel, .. } = self;
        Call { operation, backoff, reading: WithMarks, notify, timer, cancel, gives: PhantomData }
    }
}

impl<F, E, B, P, W, T, M, N> Call<F, E, B, P, W, T, M, N> {
    /// Tells this function each error that is retried, and the wait that follows, before the wait.
    pub fn notify<W2: FnMut(&E, Duration)>(self, notify: W2) -> Call<F, E, B, P, W2, T, M, N> {
        let Self { operation, backoff, reading, timer, cancel, .. } = self;
        Call { operation, backoff, reading, notify, timer, cancel, gives: PhantomData }
    }

    /// Sleeps on this timer.
    pub fn timer<T2: Clock>(self, timer: T2) -> Call<F, E, B, P, W, T2, M, N> {
        let Self { operation, backoff, reading, notify, cancel, .. } = self;
        Call { operation, backoff, reading, notify, timer, cancel, gives: PhantomData }
    }

    /// Ends the call's sleep when the caller cancels: with a [`&Cancel`](crate::Cancel) where it is blocking, with any
    /// future where it is async. What was the context of the package.
    ///
    /// The operation is called at least once, is never interrupted, and its success is given even so. The last error is
    /// kept: what comes back is [`Error<E>`](crate::Error), with [`StopReason::Cancelled`](crate::StopReason::Cancelled).
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
    pub fn cancelled_by<N2>(self, cancel: N2) -> Call<F, E, B, P, W, T, Explained, N2> {
        let Self { operation, backoff, reading, notify, timer, .. } = self;
        Call { operation, backoff, reading, notify, timer, cancel, gives: PhantomData }
    }

    /// Gives [`Error<E>`](crate::Error): the last error, why there was no further attempt, how many there were, how
    /// long it took.
    pub fn detailed(self) -> Call<F, E, B, P, W, T, Explained, N> {
        let Self { operation, backoff, reading, notify, timer, cancel, .. } = self;
        Call { operation, backoff, reading, notify, timer, cancel, gives: PhantomData }
    }
}

impl<F, E, B: fmt::Debug, P, W, T, M, N> fmt::Debug for Call<F, E, B, P, W, T, M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

/// Who is told of an error that is retried.
pub trait Notify<E> {
    /// Tells it.
    fn notify(&mut self, error: &E, delay: Duration);
}

/// Nobody.
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
