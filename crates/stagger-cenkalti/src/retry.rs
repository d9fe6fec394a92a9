//! The async driver.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger::time::Sleep;
#[cfg(feature = "tokio")]
use stagger::time::Tokio;
use stagger::{StopReason, scope};

use crate::backoff::BackOff;
#[cfg(feature = "tokio")]
use crate::call::Silent;
use crate::call::{Call, CallState, Next, Notify};
use crate::operation::{Operation, OperationResult};
use crate::output::{AsyncCancel, Bare};

/// Number of attempts without a wait after which the task yields: they would starve other tasks.
pub(crate) const ATTEMPTS_PER_YIELD: u32 = 64;

/// Retries an async operation until it succeeds or the backoff ends: the package's `Retry` and `RetryWithData`.
///
/// The output is the operation's value, or its last error.
///
/// ```
/// use stagger_cenkalti::{self as backoff, ExponentialBackOff};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// # let calls = std::cell::Cell::new(0);
/// # let get = async || { calls.set(calls.get() + 1); if calls.get() < 3 { Err("refused") } else { Ok("hello") } };
/// let operation = async || get().await;
/// assert_eq!(backoff::retry(operation, ExponentialBackOff::new()).await, Ok("hello"));
/// # });
/// ```
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub fn retry<F, O, V, E, B>(operation: F, backoff: B) -> Call<F, E, B, Silent, Tokio, Bare>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
{
    Call::new(operation, backoff, Tokio)
}

/// Retries an async operation, and passes each error that is retried and the wait before the retry to `notify`: the
/// package's `RetryNotify` and `RetryNotifyWithData`.
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub fn retry_notify<F, O, V, E, B, W>(operation: F, backoff: B, notify: W) -> Call<F, E, B, W, Tokio, Bare>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
    W: FnMut(&E, Duration),
{
    retry_notify_with_timer(operation, backoff, notify, Tokio)
}

/// Retries with `notify` on another timer: the package's `RetryNotifyWithTimer` and `RetryNotifyWithTimerAndData`.
///
/// ```
/// use std::time::Duration;
/// use stagger_cenkalti::{self as backoff, ConstantBackOff};
/// use stagger::testing::{Script, VirtualClock};
///
/// # futures_lite::future::block_on(async {
/// let (clock, mut script) = (VirtualClock::new(), Script::new([Err("refused"), Err("reset"), Ok(42)]));
/// let mut notified = Vec::new();
/// let answer = backoff::retry_notify_with_timer(
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
) -> Call<F, E, B, W, T, Bare>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    B: BackOff,
    W: FnMut(&E, Duration),
    T: Sleep,
{
    Call::new(operation, backoff, timer).notify(notify)
}

/// The value of an async operation.
type Value<F, E> = <<<F as Operation>::Output as Future>::Output as OperationResult<E>>::Value;

impl<F, E, B, W, T, N> IntoFuture for Call<F, E, B, W, T, N>
where
    F: Operation<Output: Future<Output: OperationResult<E>>>,
    B: BackOff,
    W: Notify<E>,
    T: Sleep,
    N: AsyncCancel,
{
    type Output = Result<Value<F, E>, N::Error<E>>;
    type IntoFuture = RetryFuture<F, E, B, W, T, N>;

    fn into_future(self) -> Self::IntoFuture {
        let state = CallState::default();
        RetryFuture { call: self, state, phase: Phase::Fresh, attempt: None, sleeping: None, last: None }
    }
}

pin_project! {
    /// The future of a [`Call`].
    ///
    /// Dropping it stops the call immediately: cancel-safe.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<F, E, B, W, T, N>
    where
        F: Operation,
        T: Sleep,
    {
        #[pin]
        call: Call<F, E, B, W, T, N>,
        state: CallState,
        phase: Phase,
        #[pin]
        attempt: Option<scope::Scoped<F::Output>>,
        sleeping: Option<T::Sleeping>,
        last: Option<E>,
    }
}

/// The state of a call.
///
/// ```text
/// Fresh → Due → Attempting ── success, permanent, or no delay left ──→ Ended
///          ↑        │ fails                                             ↑
///          └── Sleeping, or NoWait if the delay is zero ── cancelled ───┘
/// ```
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

impl<F, E, B, W, T, N> Future for RetryFuture<F, E, B, W, T, N>
where
    F: Operation<Output: Future<Output: OperationResult<E>>>,
    B: BackOff,
    W: Notify<E>,
    T: Sleep,
    N: AsyncCancel,
{
    type Output = Result<Value<F, E>, N::Error<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut call = this.call.project();
        loop {
            match *this.phase {
                Phase::Fresh => {
                    this.state.start(call.backoff, N::TIMED.then_some(call.timer));
                    *this.phase = Phase::Due;
                }
                Phase::Due => {
                    this.state.begin();
                    this.attempt.set(Some(scope::inside(call.operation.call())));
                    *this.phase = Phase::Attempting;
                }
                Phase::Attempting => {
                    let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
                    let out = ready!(attempt.poll(cx));
                    this.attempt.set(None);
                    let (error, is_permanent) = match out.read() {
                        Ok(value) => {
                            *this.phase = Phase::Ended;
                            return Poll::Ready(Ok(value));
                        }
                        Err(failed) => failed,
                    };
                    let next = this.state.failed(
                        is_permanent,
                        call.backoff,
                        || call.mode.as_mut().poll_cancelled(cx),
                        |delay| call.notify.notify(&error, delay),
                    );
                    match next {
                        Next::Stop(stop) => {
                            *this.phase = Phase::Ended;
                            return Poll::Ready(Err(this.state.end::<N, E>(stop, error, call.timer)));
                        }
                        Next::Wait(delay) => {
                            *this.last = Some(error);
                            *this.phase = if delay.is_zero() { Phase::NoWait } else { Phase::Sleeping };
                            match this.sleeping {
                                _ if delay.is_zero() => {}
                                Some(sleeping) => call.timer.rearm(sleeping, delay),
                                None => *this.sleeping = Some(call.timer.sleep(delay)),
                            }
                        }
                    }
                }
                phase @ (Phase::NoWait | Phase::Sleeping) => {
                    // Once it is ready the call ends, so it is not polled again.
                    let cancelled = if call.mode.as_mut().poll_cancelled(cx) { this.last.take() } else { None };
                    if let Some(error) = cancelled {
                        *this.phase = Phase::Ended;
                        return Poll::Ready(Err(this.state.end::<N, E>(StopReason::Cancelled, error, call.timer)));
                    }
                    if let (Phase::Sleeping, Some(sleeping)) = (phase, this.sleeping.as_mut()) {
                        ready!(Pin::new(sleeping).poll(cx));
                    }
                    *this.phase = Phase::Due;
                    if phase == Phase::NoWait && this.state.attempts() % ATTEMPTS_PER_YIELD == 0 {
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

impl<F: Operation, E, B: fmt::Debug, W, T: Sleep, N> fmt::Debug for RetryFuture<F, E, B, W, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture")
            .field("call", &self.call)
            .field("state", &self.state)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
