//! Retries in blocking code, on the caller's thread; no thread is started.

use core::future::{Future as _, poll_fn};
use core::iter::FusedIterator;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use stagger::time::{BlockingSleep, ThreadSleep};
use stagger::{Cancel, Instant, StopReason, scope};

use crate::backoff::BackOff;
use crate::call::{Call, CallState, Next, Notify, Silent};
use crate::operation::OperationResult;
use crate::output::{Bare, BlockingCancel};
use crate::ticker::{Phase, TickerState};

/// Retries a blocking operation until it succeeds or the backoff ends: the package's `Retry` and `RetryWithData`.
///
/// [`run`](Call::run) returns the operation's value, or its last error.
///
/// ```
/// use std::time::Duration;
/// use stagger_cenkalti::{self as backoff, ConstantBackOff};
///
/// let mut calls = 0;
/// let operation = || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let delays = ConstantBackOff::new(Duration::from_millis(1));
/// assert_eq!(backoff::blocking::retry(operation, delays).run(), Ok("hello"));
/// ```
pub fn retry<F, V, E, B>(operation: F, backoff: B) -> Call<F, E, B, Silent, ThreadSleep, Bare>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
{
    Call::new(operation, backoff, ThreadSleep)
}

/// Retries a blocking operation, and passes each error that is retried and the wait before the retry to `notify`: the
/// package's `RetryNotify` and `RetryNotifyWithData`.
pub fn retry_notify<F, V, E, B, W>(operation: F, backoff: B, notify: W) -> Call<F, E, B, W, ThreadSleep, Bare>
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
) -> Call<F, E, B, W, T, Bare>
where
    F: FnMut() -> Result<V, E>,
    B: BackOff,
    W: FnMut(&E, Duration),
    T: BlockingSleep,
{
    Call::new(operation, backoff, timer).notify(notify)
}

/// Creates a ticker that follows a backoff, which is reset; the current thread sleeps between ticks. See
/// [`new_ticker_with_timer`](crate::new_ticker_with_timer).
///
/// ```
/// use stagger_cenkalti::{self as backoff, ZeroBackOff};
///
/// # let mut calls = 0; let mut operation = || { calls += 1; if calls < 3 { Err("refused") } else { Ok("hello") } };
/// let mut answer = Err("never called");
/// for _ in backoff::blocking::new_ticker(ZeroBackOff) {
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
pub fn new_ticker_with_timer<B: BackOff, T: BlockingSleep>(backoff: B, timer: T) -> Ticker<B, T> {
    Ticker { state: TickerState::new(backoff), timer, cancel: None }
}

impl<F, O, E, B, W, T, N> Call<F, E, B, W, T, N>
where
    F: FnMut() -> O,
    O: OperationResult<E>,
    B: BackOff,
    W: Notify<E>,
    T: BlockingSleep,
    N: BlockingCancel,
{
    /// Runs the call: the operation is called on the current thread, which sleeps between attempts.
    ///
    /// # Errors
    /// Returns the operation's last error; as [`Error`](crate::Error) with [`detailed`](Self::detailed) or
    /// [`cancelled_by`](Self::cancelled_by).
    pub fn run(self) -> Result<O::Value, N::Error<E>> {
        let Self { mut operation, mut backoff, mut notify, timer, mode, .. } = self;
        let is_cancelled = || mode.handle().is_some_and(Cancel::is_cancelled);
        let mut state = CallState::default();
        state.start(&mut backoff, N::TIMED.then_some(&timer));
        loop {
            state.begin();
            let (error, is_permanent) = match attempt(&mut operation).read() {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            let next = state.failed(is_permanent, &mut backoff, is_cancelled, |delay| notify.notify(&error, delay));
            let stop = match next {
                Next::Stop(stop) => stop,
                Next::Wait(delay) => {
                    sleep(&timer, delay, mode.handle());
                    if !is_cancelled() {
                        continue;
                    }
                    StopReason::Cancelled
                }
            };
            return Err(state.end::<N, E>(stop, error, &timer));
        }
    }
}

/// Ticks on the delays of a backoff, in blocking code: an iterator whose `next` sleeps until the tick, and returns its
/// instant on the clock of the timer.
///
/// It works like the async [`Ticker`](crate::Ticker). No thread is started.
#[derive(Debug)]
pub struct Ticker<B, T = ThreadSleep> {
    state: TickerState<B>,
    timer: T,
    cancel: Option<Cancel>,
}

impl<B: BackOff, T: BlockingSleep> Ticker<B, T> {
    /// Ends the ticker when this handle is cancelled: during a wait, or when the next tick is requested.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub const fn stop(&mut self) {
        self.state.phase = Phase::Ended;
    }

    /// Resets the backoff, as if the latest tick had been the first. A ticker that has ended stays ended.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// Returns the number of ticks yielded.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.state.ticks
    }

    /// Returns the backoff, to read its elapsed time.
    #[must_use]
    pub const fn backoff(&self) -> &B {
        &self.state.backoff
    }
}

impl<B: BackOff, T: BlockingSleep> Iterator for Ticker<B, T> {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        if self.state.phase == Phase::Yielded {
            let delay = self.state.backoff.next_backoff();
            // Set before the sleep: the timer may panic, and the caller may catch it.
            self.state.phase = if delay.is_some() { Phase::Due } else { Phase::Ended };
            sleep(&self.timer, delay.unwrap_or_default(), self.cancel.as_ref());
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                self.stop();
            }
        }
        if self.state.phase == Phase::Due { Some(self.state.emit(&self.timer)) } else { None }
    }
}

impl<B: BackOff, T: BlockingSleep> FusedIterator for Ticker<B, T> {}

/// Calls the operation inside the scope of an attempt, so that calls made in it do not retry.
fn attempt<O>(operation: &mut impl FnMut() -> O) -> O {
    let mut attempt = pin!(scope::inside(poll_fn(|_| Poll::Ready(operation()))));
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        // It is ready at the first poll.
        if let Poll::Ready(out) = attempt.as_mut().poll(&mut cx) {
            return out;
        }
    }
}

/// Sleeps, or does not if the wait is zero or the caller has cancelled.
fn sleep(timer: &impl BlockingSleep, delay: Duration, cancel: Option<&Cancel>) {
    match cancel {
        _ if delay.is_zero() => {}
        Some(cancel) => timer.sleep_unless(delay, cancel),
        None => timer.sleep(delay),
    }
}
