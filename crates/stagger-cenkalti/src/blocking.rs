//! Retries in blocking code, on the caller's thread; no thread is started.

use core::time::Duration;

use super::call::{Notify, Plain};
use super::call_state::CallState;
use super::permanent::{UnwrapPermanent, is_permanent};
use super::{BackOff, Call};
use crate::blocking::Ticker;
use crate::call::Next;
use crate::cancel::Cancelling;
use crate::future::Uncancelled;
use crate::rule::ResultReader;
use crate::scope::ScopeGuard;
use crate::setup::{Bare, Finish};
use crate::{Policy, StopReason, time::BlockingSleep, time::ThreadSleep};

/// Retries a blocking operation until it succeeds or the backoff ends: the package's `Retry` and `RetryWithData`.
///
/// [`run`](Call::run) returns the operation's value, or its last error.
///
/// ```
/// use std::time::Duration;
/// use stagger::cenkalti::{self, ConstantBackOff};
///
/// let mut calls = 0;
/// let operation = || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let backoff = ConstantBackOff::new(Duration::from_millis(1));
/// assert_eq!(cenkalti::blocking::retry(operation, backoff).run(), Ok("hello"));
/// ```
pub fn retry<F, V, E, B>(
    operation: F,
    backoff: B,
) -> Call<F, E, B, UnwrapPermanent, super::call::Silent, ThreadSleep, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
{
    Plain::new(operation, backoff, ThreadSleep)
}

/// Retries a blocking operation, and passes each error that is retried and the wait before the retry to `notify`: the
/// package's `RetryNotify` and `RetryNotifyWithData`.
pub fn retry_notify<F, V, E, B, W>(
    operation: F,
    backoff: B,
    notify: W,
) -> Call<F, E, B, UnwrapPermanent, W, ThreadSleep, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
    W: FnMut(&E, Duration),
{
    retry_notify_with_timer(operation, backoff, notify, ThreadSleep)
}

/// Retries with `notify` on another timer: the package's `RetryNotifyWithTimer` and `RetryNotifyWithTimerAndData`.
pub fn retry_notify_with_timer<F, V, E, B, W, T>(
    operation: F,
    backoff: B,
    notify: W,
    timer: T,
) -> Call<F, E, B, UnwrapPermanent, W, T, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
    W: FnMut(&E, Duration),
    T: BlockingSleep,
{
    Plain::new(operation, backoff, timer).notify(notify)
}

/// Creates a ticker that follows a backoff, which is reset; the current thread sleeps between ticks. See
/// [`new_ticker_with_timer`](super::new_ticker_with_timer).
///
/// ```
/// use stagger::cenkalti::{self, ZeroBackOff};
///
/// # let mut calls = 0; let mut operation = || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let mut answer = Err("never called");
/// for _ in cenkalti::blocking::new_ticker(ZeroBackOff) {
///     answer = operation();
///     if answer.is_ok() {
///         break;
///     }
/// }
/// assert_eq!(answer, Ok("hello"));
/// ```
#[must_use]
pub fn new_ticker<B: BackOff>(backoff: B) -> Ticker<B> {
    new_ticker_with_timer(backoff, ThreadSleep)
}

/// Creates a ticker that follows a backoff, which is reset, on another timer.
#[must_use]
pub fn new_ticker_with_timer<B: BackOff, T: BlockingSleep>(mut backoff: B, timer: T) -> Ticker<B, T> {
    backoff.reset();
    Ticker::from_times(backoff, timer)
}

impl<F, O, E, B, P, W, T, M, N> Call<F, E, B, P, W, T, M, N>
where
    F: FnMut() -> O,
    B: BackOff,
    P: ResultReader<O, Error = E>,
    W: Notify<E>,
    T: BlockingSleep,
    M: Finish<P::Value, E>,
    N: Cancelling,
{
    /// Runs the call: the operation is called on the current thread, which sleeps between attempts.
    pub fn run(self) -> M::Output {
        let Self { mut operation, backoff, mut reader, mut notify, timer, cancel, .. } = self;
        let mut state = CallState::new(backoff);
        state.start(M::TIMED.then_some(&timer));
        loop {
            state.begin();
            // Only the backoff knows whether the call retries at all, so assume that it does.
            let scope = ScopeGuard::enter(&Policy::DEFAULT);
            let out = operation();
            drop(scope);
            let (error, mark) = match reader.read(out) {
                Ok(value) => return M::finish(state.end(Ok(value), &timer)),
                Err(failed) => failed,
            };
            let is_cancelled = || cancel.is_cancelled();
            let next = state.failed(is_permanent(mark), is_cancelled, |delay| notify.notify(&error, delay));
            let stop = match next {
                Next::Stop(stop) => stop,
                Next::Wait(delay) => {
                    sleep(&timer, delay, &cancel);
                    if !cancel.is_cancelled() {
                        continue;
                    }
                    StopReason::Cancelled
                }
            };
            return M::finish(state.end(Err((stop, error)), &timer));
        }
    }
}

fn sleep(timer: &impl BlockingSleep, delay: Duration, cancel: &impl Cancelling) {
    match cancel.handle() {
        _ if delay.is_zero() => {}
        Some(cancel) => timer.sleep_unless(delay, cancel),
        None => timer.sleep(delay),
    }
}
