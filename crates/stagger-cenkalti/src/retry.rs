use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use super::call::{Notify, Plain};
use super::call_state::CallState;
use super::permanent::{UnwrapPermanent, is_permanent};
use super::{BackOff, Call};
use crate::call::Next;
use crate::future::Uncancelled;
use crate::rule::ResultReader;
use crate::setup::{Bare, Finish};
use crate::{Policy, StopReason, coop, scope, time::Sleep};

/// Retries an async operation until it succeeds or the backoff ends: the package's `Retry` and `RetryWithData`.
///
/// The output is the operation's value, or its last error.
///
/// ```
/// use stagger::cenkalti::{self, ExponentialBackOff};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// # let calls = std::cell::Cell::new(0);
/// # let get = async || { calls.set(calls.get() + 1); if calls.get() < 3 { Err("refused") } else { Ok("hello") } };
/// let operation = async || get().await;
/// assert_eq!(cenkalti::retry(operation, ExponentialBackOff::new()).await, Ok("hello"));
/// # });
/// ```
#[cfg(feature = "tokio")]
pub fn retry<F, O, V, E, B>(
    operation: F,
    backoff: B,
) -> Call<F, E, B, UnwrapPermanent, super::call::Silent, crate::time::Tokio, Bare, Uncancelled>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
{
    Plain::new(operation, backoff, crate::time::Tokio)
}

/// Retries an async operation, and passes each error that is retried and the wait before the retry to `notify`: the
/// package's `RetryNotify` and `RetryNotifyWithData`.
#[cfg(feature = "tokio")]
pub fn retry_notify<F, O, V, E, B, W>(
    operation: F,
    backoff: B,
    notify: W,
) -> Call<F, E, B, UnwrapPermanent, W, crate::time::Tokio, Bare, Uncancelled>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
    W: FnMut(&E, Duration),
{
    retry_notify_with_timer(operation, backoff, notify, crate::time::Tokio)
}

/// Retries with `notify` on another timer: the package's `RetryNotifyWithTimer` and `RetryNotifyWithTimerAndData`.
///
/// ```
/// use std::time::Duration;
/// use stagger::cenkalti::{self, ConstantBackOff};
/// use stagger::testing::{Script, VirtualClock};
///
/// # futures_lite::future::block_on(async {
/// let (clock, mut script) = (VirtualClock::new(), Script::new([Err("refused"), Err("reset"), Ok(42)]));
/// let mut notified = Vec::new();
/// let answer = cenkalti::retry_notify_with_timer(
///     || std::future::ready(script.next("no more")),
///     ConstantBackOff::new(Duration::from_secs(1)),
///     |error: &&str, delay| notified.push((*error, delay)),
///     clock.clone(),
/// );
/// assert_eq!(answer.await, Ok(42));
/// assert_eq!(notified, [("refused", Duration::from_secs(1)), ("reset", Duration::from_secs(1))]);
/// assert_eq!(clock.elapsed(), Duration::from_secs(2));
/// # });
/// ```
pub fn retry_notify_with_timer<F, O, V, E, B, W, T>(
    operation: F,
    backoff: B,
    notify: W,
    timer: T,
) -> Call<F, E, B, UnwrapPermanent, W, T, Bare, Uncancelled>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
    W: FnMut(&E, Duration),
    T: Sleep,
{
    Plain::new(operation, backoff, timer).notify(notify)
}

impl<F, O, E, B, P, W, T, M, N> IntoFuture for Call<F, E, B, P, W, T, M, N>
where
    F: FnMut() -> O,
    O: Future,
    B: BackOff,
    P: ResultReader<O::Output, Error = E>,
    W: Notify<E>,
    T: Sleep,
    M: Finish<P::Value, E>,
    N: Future,
{
    type Output = M::Output;
    type IntoFuture = RetryFuture<F, O, E, B, P, W, T, M, N>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { operation, backoff, reader, notify, timer, cancel, output } = self;
        RetryFuture {
            operation,
            reader,
            notify,
            timer,
            state: CallState::new(backoff),
            phase: Phase::Fresh,
            attempt: None,
            sleeping: None,
            last: None,
            cancel,
            output,
        }
    }
}

pin_project! {
    /// The future of a [`Call`].
    ///
    /// Dropping it stops the call immediately: cancel-safe.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<F, O, E, B, P, W, T, M, N>
    where
        T: Sleep,
    {
        operation: F,
        reader: P,
        notify: W,
        timer: T,
        state: CallState<B>,
        phase: Phase,
        #[pin]
        attempt: Option<scope::Scoped<O>>,
        sleeping: Option<T::Sleeping>,
        last: Option<E>,
        #[pin]
        cancel: N,
        output: PhantomData<fn() -> (E, M)>,
    }
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    /// The next attempt begins now.
    Due,
    Attempting,
    /// The wait before the next attempt is zero.
    NoWait,
    /// A timer is running.
    Sleeping,
    Ended,
}

impl<F, O, E, B, P, W, T, M, N> Future for RetryFuture<F, O, E, B, P, W, T, M, N>
where
    F: FnMut() -> O,
    O: Future,
    B: BackOff,
    P: ResultReader<O::Output, Error = E>,
    W: Notify<E>,
    T: Sleep,
    M: Finish<P::Value, E>,
    N: Future,
{
    type Output = M::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.project();
        loop {
            match *this.phase {
                Phase::Fresh => {
                    this.state.start(M::TIMED.then_some(this.timer));
                    *this.phase = Phase::Due;
                }
                Phase::Due => {
                    this.state.begin();
                    // Only the backoff knows whether the call retries at all, so assume that it does.
                    this.attempt.set(Some(scope::attempt((this.operation)(), &Policy::DEFAULT)));
                    *this.phase = Phase::Attempting;
                }
                Phase::Attempting => {
                    let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
                    let out = ready!(attempt.poll(cx));
                    this.attempt.set(None);
                    let (error, mark) = match this.reader.read(out) {
                        Ok(value) => {
                            *this.phase = Phase::Ended;
                            return Poll::Ready(M::finish(this.state.end(Ok(value), this.timer)));
                        }
                        Err(failed) => failed,
                    };
                    let next = this.state.failed(
                        is_permanent(mark),
                        || this.cancel.as_mut().poll(cx).is_ready(),
                        |delay| this.notify.notify(&error, delay),
                    );
                    match next {
                        Next::Stop(stop) => {
                            *this.phase = Phase::Ended;
                            return Poll::Ready(M::finish(this.state.end(Err((stop, error)), this.timer)));
                        }
                        Next::Wait(delay) => {
                            *this.last = Some(error);
                            *this.phase = if delay.is_zero() { Phase::NoWait } else { Phase::Sleeping };
                            match this.sleeping {
                                _ if delay.is_zero() => {}
                                Some(sleeping) => this.timer.rearm(sleeping, delay),
                                None => *this.sleeping = Some(this.timer.sleep(delay)),
                            }
                        }
                    }
                }
                phase @ (Phase::NoWait | Phase::Sleeping) => {
                    // Once it is ready the call ends, so it is not polled again.
                    let cancelled = if this.cancel.as_mut().poll(cx).is_ready() { this.last.take() } else { None };
                    if let Some(error) = cancelled {
                        *this.phase = Phase::Ended;
                        return Poll::Ready(M::finish(this.state.end(Err((StopReason::Cancelled, error)), this.timer)));
                    }
                    if let (Phase::Sleeping, Some(sleeping)) = (phase, this.sleeping.as_mut()) {
                        ready!(Pin::new(sleeping).poll(cx));
                    }
                    *this.phase = Phase::Due;
                    if phase == Phase::NoWait && coop::should_yield(this.state.attempts()) {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                // Polled after completion.
                Phase::Ended => return Poll::Pending,
            }
        }
    }
}

impl<F, O, E, B: fmt::Debug, P, W, T: Sleep, M, N> fmt::Debug for RetryFuture<F, O, E, B, P, W, T, M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture").field("state", &self.state).field("phase", &self.phase).finish_non_exhaustive()
    }
}
