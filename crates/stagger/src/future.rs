use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use crate::call::{Call, Next, Phase};
use crate::coop;
use crate::error::Rejected;
use crate::event::{Event, OnEvent, Sink};
use crate::rule::{BuiltIn, Classify, Plain, ResultReader, Rule, Validated, When};
use crate::scope::ScopeGuard;
use crate::setup::{
    CallOptions, Detailed, DetailedSetup, Ending, ErrorSlot, Finish, Guarded, Guarding, InnerError, LastAttempt,
    Limiting, Limits, Reported, Setup,
};
use crate::steps::{Parts, steps};
use crate::{Budget, Guards, Instant, Outcome, Policy, time::Entropy, time::Sleep};

/// Retries an async operation until it succeeds or there is a reason to stop.
///
/// The output is the operation's own value, or its own last error, unwrapped, so `?` works with every error type. The
/// returned builder is itself the future: it is not boxed, it can be spawned, joined and selected, and it does nothing
/// until polled.
///
/// - The operation is called after the sleep, not before, and at least once.
/// - Without a rule, `io::Error`s are classified by kind and all other errors are transient; see
///   [`classify`](crate::classify).
/// - Dropping the future stops the call immediately and releases everything it holds: cancel-safe.
/// - Inside an attempt of another call it does not retry; see [`scope`](crate::scope).
///
/// ```
/// use stagger::{Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let calls = std::cell::Cell::new(0);
/// let answer = stagger::retry(&POLICY, async || {
///     calls.set(calls.get() + 1);
///     if calls.get() < 3 { Err("not yet") } else { Ok("done") }
/// })
/// .await;
/// assert_eq!((answer, calls.get()), (Ok("done"), 3));
/// # });
/// ```
#[cfg(feature = "tokio")]
#[inline]
pub fn retry<F, O>(
    policy: &Policy,
    operation: F,
) -> RetryFuture<'_, F, O, Plain, BuiltIn, crate::time::Tokio, Setup, Uncancelled>
where
    F: FnMut() -> O,
    O: Future,
    Plain: ResultReader<O::Output>,
{
    retry_with_timer(policy, crate::time::Tokio, operation)
}

/// Retries an async operation on another timer: `retry_with_timer(&POLICY, AsyncIo, operation)`. See
/// [`retry`](fn@crate::retry).
#[inline]
pub fn retry_with_timer<F, O, T>(
    policy: &Policy,
    timer: T,
    operation: F,
) -> RetryFuture<'_, F, O, Plain, BuiltIn, T, Setup, Uncancelled>
where
    F: FnMut() -> O,
    O: Future,
    T: Sleep,
    Plain: ResultReader<O::Output>,
{
    RetryFuture::from_parts(Parts::plain(policy, timer, operation, Uncancelled))
}

pin_project! {
    /// The future returned by [`retry`](fn@crate::retry), and the builder that configures it.
    ///
    /// The type parameters track the configured options; they are inferred. Builder steps come before the first poll.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<'p, F, O, P, R, T, X, N>
    where
        O: Future,
        P: ResultReader<O::Output>,
        T: Sleep,
        X: CallOptions,
    {
        operation: F,
        reader: P,
        rule: R,
        call: Call<&'p Policy, T, X>,
        #[pin]
        attempt: Option<O>,
        sleeping: Option<T::Sleeping>,
        last_error: X::LastError<P::Error>,
        #[pin]
        cancel: N,
    }
}

steps!(RetryFuture, Sleep, O::Output, where { F: FnMut() -> O, O: Future, });

/// A call that can only be cancelled by dropping it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncancelled;

impl Future for Uncancelled {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl<'p, F, O, P, R, T, X, N> RetryFuture<'p, F, O, P, R, T, X, N>
where
    O: Future,
    P: ResultReader<O::Output>,
    T: Sleep,
    X: CallOptions,
{
    #[inline]
    pub(crate) fn from_parts(parts: Parts<'p, F, P, R, T, X, N>) -> Self {
        let Parts { policy, operation, reader, rule, timer, setup, cancel } = parts;
        Self {
            operation,
            reader,
            rule,
            call: Call::new(policy, timer, setup),
            attempt: None,
            sleeping: None,
            last_error: X::LastError::EMPTY,
            cancel,
        }
    }

    #[inline]
    fn into_parts(self) -> Parts<'p, F, P, R, T, X, N> {
        let Self { operation, reader, rule, call, cancel, .. } = self;
        let (policy, timer, setup) = call.into_parts();
        Parts { policy, operation, reader, rule, timer, setup, cancel }
    }
}

/// Cancellation by a future.
impl<'p, F, O, P, R, T, S, G, L, Y, M, N> RetryFuture<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    O: Future,
    P: ResultReader<O::Output>,
    T: Sleep,
    Setup<S, G, L, Y, M>: CallOptions,
    Setup<S, G, L, Y, Detailed>: CallOptions,
{
    /// Ends the call when `cancel` completes, during a sleep or an attempt. If the operation completes at the same
    /// moment, its value is still returned. On cancellation the last error so far is kept.
    pub fn cancelled_by<N2: Future>(self, cancel: N2) -> RetryFuture<'p, F, O, P, R, T, DetailedSetup<S, G, L, Y>, N2> {
        RetryFuture::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Detailed)).with_cancel(cancel))
    }
}

impl<F, O, P, R, T, X, N> fmt::Debug for RetryFuture<'_, F, O, P, R, T, X, N>
where
    O: Future,
    P: ResultReader<O::Output>,
    T: Sleep,
    X: CallOptions,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture")
            .field("policy", self.call.policy())
            .field("attempt", &self.call.attempt())
            .finish_non_exhaustive()
    }
}

impl<F, O, P, R, T, S, G, L, Y, M, N> Future for RetryFuture<'_, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    F: FnMut() -> O,
    O: Future,
    P: ResultReader<O::Output>,
    R: Rule<P::Error>,
    T: Sleep,
    S: Sink<P::Error>,
    G: Guarding,
    L: Limiting,
    Y: Entropy,
    M: Finish<P::Value, P::Error>,
    N: Future,
{
    type Output = M::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.as_mut().project();
        if this.call.phase == Phase::Fresh && this.call.has_fast_path() {
            let operation = &mut *this.operation;
            this.attempt.set(Some(operation()));
            let scope = ScopeGuard::enter(this.call.policy());
            let polled = match this.attempt.as_mut().as_pin_mut() {
                Some(attempt) => attempt.poll(cx),
                None => Poll::Pending,
            };
            let is_nested = scope.is_nested();
            drop(scope);
            let Poll::Ready(out) = polled else {
                // A plain call has no time limit and no cancellation: there is nothing else to poll.
                this.call.leave_fast_path(is_nested);
                return Poll::Pending;
            };
            // Drop the attempt before the sleep and before returning, so that nothing it holds outlives it.
            this.attempt.set(None);
            match this.reader.read(out) {
                Ok(value) => {
                    this.call.phase = Phase::Ended;
                    return Poll::Ready(M::finish(Call::<&Policy, T, Setup<S, G, L, Y, M>>::fast_path_success(value)));
                }
                Err(failed) => {
                    this.call.leave_fast_path(is_nested);
                    return self.poll_on(cx, Some(failed));
                }
            }
        }
        self.poll_on(cx, None)
    }
}

impl<F, O, P, R, T, S, G, L, Y, M, N> RetryFuture<'_, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    F: FnMut() -> O,
    O: Future,
    P: ResultReader<O::Output>,
    R: Rule<P::Error>,
    T: Sleep,
    S: Sink<P::Error>,
    G: Guarding,
    L: Limiting,
    Y: Entropy,
    M: Finish<P::Value, P::Error>,
    N: Future,
{
    /// Polls everything but a call that succeeds immediately. `failed` is the result of the first attempt, if it has
    /// just failed.
    #[inline(never)]
    fn poll_on(self: Pin<&mut Self>, cx: &mut Context<'_>, mut failed: Option<(P::Error, P::Mark)>) -> Poll<M::Output> {
        let mut this = self.project();
        let call = this.call;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = mark.into().unwrap_or_else(|| this.rule.outcome(&error));
                let delay = match call.failed(outcome, Some(&error), call.clock.resolution()) {
                    Next::Wait(delay) => delay,
                    Next::Stop(stop) => return Poll::Ready(M::finish(call.end(Err((stop, Ending::Failed(error)))))),
                };
                this.last_error.put(error);
                match start_wait(call, this.sleeping, this.cancel.as_mut(), delay, cx) {
                    WaitStart::Started => {}
                    WaitStart::Yield => return Poll::Pending,
                    WaitStart::Cancelled => {
                        return call.cancelled::<M, _, _>(this.last_error).map_or(Poll::Pending, Poll::Ready);
                    }
                }
            }
            // The phases in order instead of a `match`: a retry whose timer is ready falls straight through.
            if call.phase == Phase::Fresh {
                let delay = call.start(call.clock.resolution());
                if !delay.is_zero() {
                    arm(&call.clock, this.sleeping, delay);
                    call.phase = Phase::Sleeping;
                }
            }
            if call.phase == Phase::Sleeping {
                if call.is_cancelled(|| this.cancel.as_mut().poll(cx).is_ready()) {
                    if call.attempt() > 0 {
                        return call.cancelled::<M, _, _>(this.last_error).map_or(Poll::Pending, Poll::Ready);
                    }
                    // Cancelled during the initial spread: the operation still runs once.
                } else {
                    let Some(sleeping) = this.sleeping.as_mut() else { return Poll::Pending };
                    ready!(Pin::new(&mut *sleeping).poll(cx));
                    if let Some(left) = call.remaining_wait() {
                        call.clock.rearm(sleeping, left);
                        continue;
                    }
                }
                call.phase = Phase::Due;
            }
            if call.phase == Phase::Due {
                if let Err(stop) = call.begin() {
                    call.emit_rejection::<P::Error>(stop);
                    let reason = Rejected::BreakerOpen(call.breaker_open());
                    return call.given_up::<M, _, _>(this.last_error, stop, reason).map_or(Poll::Pending, Poll::Ready);
                }
                if L::LIMITS {
                    if let Some(limit) = call.time_limit() {
                        arm(&call.clock, this.sleeping, limit);
                        call.phase = Phase::Timed;
                    }
                }
                let operation = &mut *this.operation;
                this.attempt.set(Some(operation()));
            }
            // The attempt is gone after the end.
            let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
            let scope = ScopeGuard::enter(call.policy());
            let polled = attempt.poll(cx);
            drop(scope);
            if let Poll::Ready(out) = polled {
                // Drop the attempt before the sleep and before returning, so that nothing it holds outlives it.
                this.attempt.set(None);
                match this.reader.read(out) {
                    Ok(value) => {
                        call.succeeded::<P::Error>();
                        return Poll::Ready(M::finish(call.end(Ok(value))));
                    }
                    Err(ended) => failed = Some(ended),
                }
                continue;
            }
            if call.is_cancelled(|| this.cancel.as_mut().poll(cx).is_ready()) {
                this.attempt.set(None);
                return call.cancelled::<M, _, _>(this.last_error).map_or(Poll::Pending, Poll::Ready);
            }
            if !L::LIMITS || call.phase == Phase::Attempting {
                return Poll::Pending;
            }
            let Some(limit) = this.sleeping.as_mut() else { return Poll::Pending };
            ready!(Pin::new(limit).poll(cx));
            this.attempt.set(None);
            let delay = match call.failed::<P::Error>(Outcome::TRANSIENT, None, call.clock.resolution()) {
                Next::Wait(delay) => delay,
                Next::Stop(stop) => {
                    // The timeout is the most recent failure; reporting the error of an earlier attempt would mislead.
                    drop(this.last_error.take());
                    return call
                        .given_up::<M, _, _>(this.last_error, stop, Rejected::TimedOut)
                        .map_or(Poll::Pending, Poll::Ready);
                }
            };
            match start_wait(call, this.sleeping, this.cancel.as_mut(), delay, cx) {
                WaitStart::Started => {}
                WaitStart::Yield => return Poll::Pending,
                WaitStart::Cancelled => {
                    return call.cancelled::<M, _, _>(this.last_error).map_or(Poll::Pending, Poll::Ready);
                }
            }
        }
    }
}

/// How a wait starts.
enum WaitStart {
    /// The timer is armed, or there is nothing to wait for.
    Started,
    /// There is nothing to wait for, but the task must yield to others first.
    Yield,
    Cancelled,
}

/// Arms the timer for a wait. A wait of zero ends immediately, unless the call is cancelled or must yield.
#[inline]
fn start_wait<T: Sleep, X: CallOptions, N: Future>(
    call: &mut Call<&Policy, T, X>,
    sleeping: &mut Option<T::Sleeping>,
    cancel: Pin<&mut N>,
    delay: Duration,
    cx: &mut Context<'_>,
) -> WaitStart {
    if !delay.is_zero() {
        arm(&call.clock, sleeping, delay);
        call.phase = Phase::Sleeping;
        return WaitStart::Started;
    }
    if call.is_cancelled(|| cancel.poll(cx).is_ready()) {
        return WaitStart::Cancelled;
    }
    if coop::should_yield(call.attempt()) {
        cx.waker().wake_by_ref();
        return WaitStart::Yield;
    }
    WaitStart::Started
}

/// Arms the call's single timer, for a sleep or for the time limit of an attempt.
pub(crate) fn arm<T: Sleep>(timer: &T, sleeping: &mut Option<T::Sleeping>, length: Duration) {
    match sleeping {
        Some(sleeping) => timer.rearm(sleeping, length),
        None => *sleeping = Some(timer.sleep(length)),
    }
}
