//! The same for blocking code: no thread is started, the caller's own sleeps.

use core::time::Duration;

use super::call::{Notify, Plain};
use super::course::Course;
use super::permanent::{Unwrapping, is_permanent};
use super::{BackOff, Call};
use crate::blocking::Ticker;
use crate::call::Next;
use crate::cancel::Cancelling;
use crate::future::Uncancelled;
use crate::rule::Reading;
use crate::scope::Mark;
use crate::setup::{Bare, Finish};
use crate::{Policy, StopReason, time::BlockingSleep, time::ThreadSleep};

/// Calls a blocking operation until it works, or the backoff ends: the package's `Retry` and `RetryWithData`.
///
/// What comes back from [`run`](Call::run) is the operation's value, or its last error.
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
) -> Call<F, E, B, Unwrapping, super::call::Silent, ThreadSleep, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
{
    Plain::new(operation, backoff, ThreadSleep)
}

/// The same, telling `notify` each error that is retried, and the wait that follows, before the wait: the package's
/// `RetryNotify` and `RetryNotifyWithData`.
pub fn retry_notify<F, V, E, B, W>(
    operation: F,
    backoff: B,
    notify: W,
) -> Call<F, E, B, Unwrapping, W, ThreadSleep, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
    W: FnMut(&E, Duration),
{
    retry_notify_with_timer(operation, backoff, notify, ThreadSleep)
}

/// The same on another timer: the package's `RetryNotifyWithTimer` and `RetryNotifyWithTimerAndData`.
pub fn retry_notify_with_timer<F, V, E, B, W, T>(
    operation: F,
    backoff: B,
    notify: W,
    timer: T,
) -> Call<F, E, B, Unwrapping, W, T, Bare, Uncancelled>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
    W: FnMut(&E, Duration),
    T: BlockingSleep,
{
    Plain::new(operation, backoff, timer).notify(notify)
}

/// A ticker at the times of a backoff, which is reset; the thread sleeps in between. See
/// [`new_ticker`](super::new_ticker_with_timer).
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

/// The same on another timer.
#[must_use]
pub fn new_ticker_with_timer<B: BackOff, T: BlockingSleep>(mut backoff: B, timer: T) -> Ticker<B, T> {
    backoff.reset();
    Ticker::of(backoff, timer)
}

impl<F, O, E, B, P, W, T, M, N> Call<F, E, B, P, W, T, M, N>
where
    F: FnMut() -> O,
    B: BackOff,
    P: Reading<O, Error = E>,
    W: Notify<E>,
    T: BlockingSleep,
    M: Finish<P::Value, E>,
    N: Cancelling,
{
    /// Runs it: the operation is called in this thread, which sleeps in between.
    pub fn run(self) -> M::Output {
        let Self { mut operation, backoff, mut reading, mut notify, timer, cancel, .. } = self;
        let mut course = Course::new(backoff);
        course.start(M::TIMED.then_some(&timer));
        loop {
            course.begin();
            // That a call retries at all is known to its backoff alone, so it is taken for granted.
            let mark = Mark::deeper(&Policy::DEFAULT);
            let out = operation();
            drop(mark);
            let (error, mark) = match reading.read(out) {
                Ok(value) => return M::finish(course.end(Ok(value), &timer)),
                Err(failed) => failed,
            };
            let is_cancelled = || cancel.is_cancelled();
            let next = course.failed(is_permanent(mark), is_cancelled, |delay| notify.notify(&error, delay));
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
            return M::finish(course.end(Err((stop, error)), &timer));
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
