use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use crate::call::{Call, Next, Phase};
use crate::error::Rejected;
use crate::event::{Event, OnEvent, Sink};
use crate::fairness;
use crate::rule::{BuiltIn, Classify, Plain, Reading, Rule, Validated, When, WithMarks};
use crate::scope::Mark;
use crate::setup::{
    Ending, Explained, Explaining, Extras, Finish, Guarded, Guarding, Keep, LastAttempt, Limiting, Limits, Own,
    Reported, Setup,
};
use crate::steps::{Parts, steps};
use crate::{Budget, Guards, Instant, Outcome, Policy, time::Entropy, time::Sleep};

/// Calls an async operation, and calls it again, as the policy says, until it works or there is a reason to stop.
///
/// What comes back is the operation's own value or its own last error, bare, so `?` works with every error type. The
/// builder that it returns is the future itself: it is not boxed, it can be spawned, joined and selected, and nothing
/// happens before it is polled.
///
/// - The operation is called after the sleep, not before, and at least once.
/// - Without a rule, `io::Error`s are judged by their kind and everything else is transient; see
///   [`classify`](crate::classify).
/// - Dropping the future stops at once. Nothing is left behind: cancel-safe.
/// - Inside an attempt of another call it stands down: see [`scope`](crate::scope).
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
    Plain: Reading<O::Output>,
{
    retry_with_timer(policy, crate::time::Tokio, operation)
}

/// [`retry`](fn@crate::retry) on another timer: `retry_with_timer(&POLICY, AsyncIo, operation)`.
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
    Plain: Reading<O::Output>,
{
    RetryFuture::from_parts(Parts::plain(policy, timer, operation, Uncancelled))
}

pin_project! {
    /// A call that is being retried: the future that [`retry`](fn@crate::retry) gives, and the builder that refines it.
    ///
    /// Its type parameters stand for what a call may bring along; nobody writes them. The builder's steps come before
    /// the first poll.
    #[must_use = "futures do nothing unless polled"]
    pub struct RetryFuture<'p, F, O, P, R, T, X, N>
    where
        O: Future,
        P: Reading<O::Output>,
        T: Sleep,
        X: Extras,
    {
        operation: F,
        reading: P,
        rule: R,
        call: Call<&'p Policy, T, X>,
        #[pin]
        attempt: Option<O>,
        sleeping: Option<T::Sleeping>,
        kept: X::Kept<P::Error>,
        #[pin]
        cancel: N,
    }
}

steps!(RetryFuture, Sleep, O::Output, where { F: FnMut() -> O, O: Future, });

/// Nothing cancels the call but dropping it.
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
    P: Reading<O::Output>,
    T: Sleep,
    X: Extras,
{
    #[inline]
    pub(crate) fn from_parts(parts: Parts<'p, F, P, R, T, X, N>) -> Self {
        let Parts { policy, operation, reading, rule, timer, setup, cancel } = parts;
        Self {
            operation,
            reading,
            rule,
            call: Call::new(policy, timer, setup),
            attempt: None,
            sleeping: None,
            kept: X::Kept::EMPTY,
            cancel,
        }
    }

    #[inline]
    fn into_parts(self) -> Parts<'p, F, P, R, T, X, N> {
        let Self { operation, reading, rule, call, cancel, .. } = self;
        let (policy, timer, setup) = call.into_parts();
        Parts { policy, operation, reading, rule, timer, setup, cancel }
    }
}

/// Cancelling by a future.
impl<'p, F, O, P, R, T, S, G, L, Y, M, N> RetryFuture<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    O: Future,
    P: Reading<O::Output>,
    T: Sleep,
    Setup<S, G, L, Y, M>: Extras,
    Setup<S, G, L, Y, Explained>: Extras,
{
    /// Ends the call when this future is ready: in the middle of a sleep or of an attempt. A value that is ready at
    /// the same moment is still given. The last error so far is kept.
    pub fn cancelled_by<N2: Future>(self, cancel: N2) -> RetryFuture<'p, F, O, P, R, T, Explaining<S, G, L, Y>, N2> {
        RetryFuture::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Explained)).with_cancel(cancel))
    }
}

impl<F, O, P, R, T, X, N> fmt::Debug for RetryFuture<'_, F, O, P, R, T, X, N>
where
    O: Future,
    P: Reading<O::Output>,
    T: Sleep,
    X: Extras,
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
    P: Reading<O::Output>,
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
        if this.call.phase == Phase::Fresh && this.call.begins_at_once() {
            let operation = &mut *this.operation;
            this.attempt.set(Some(operation()));
            let mark = Mark::deeper(this.call.policy());
            let polled = match this.attempt.as_mut().as_pin_mut() {
                Some(attempt) => attempt.poll(cx),
                None => Poll::Pending,
            };
            let is_inside = mark.is_inside();
            drop(mark);
            let Poll::Ready(out) = polled else {
                // A bare call has neither a limit of time nor a way to be cancelled: there is nothing else to poll.
                this.call.first_ended(is_inside);
                return Poll::Pending;
            };
            // Whatever the attempt holds is let go before the sleep, and before the caller goes on.
            this.attempt.set(None);
            match this.reading.read(out) {
                Ok(value) => {
                    this.call.phase = Phase::Ended;
                    return Poll::Ready(M::finish(Call::<&Policy, T, Setup<S, G, L, Y, M>>::end_at_once(value)));
                }
                Err(failed) => {
                    this.call.first_ended(is_inside);
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
    P: Reading<O::Output>,
    R: Rule<P::Error>,
    T: Sleep,
    S: Sink<P::Error>,
    G: Guarding,
    L: Limiting,
    Y: Entropy,
    M: Finish<P::Value, P::Error>,
    N: Future,
{
    /// Everything but a call that succeeds at once. `failed` is what the first attempt failed with, if it just did.
    #[inline(never)]
    fn poll_on(self: Pin<&mut Self>, cx: &mut Context<'_>, mut failed: Option<(P::Error, P::Mark)>) -> Poll<M::Output> {
        let mut this = self.project();
        let call = this.call;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = mark.into().unwrap_or_else(|| this.rule.outcome(&error));
                let ask = match call.failed(outcome, Some(&error), call.clock.resolution()) {
                    Next::Wait(ask) => ask,
                    Next::Stop(stop) => return Poll::Ready(M::finish(call.end(Err((stop, Ending::Failed(error)))))),
                };
                this.kept.put(error);
                match rest(call, this.sleeping, this.cancel.as_mut(), ask, cx) {
                    Rest::Over => {}
                    Rest::Yield => return Poll::Pending,
                    Rest::Cancelled => return call.cancelled::<M, _, _>(this.kept).map_or(Poll::Pending, Poll::Ready),
                }
            }
            // The phases in their order, not a `match`: a retry whose timer is ready runs straight through them.
            if call.phase == Phase::Fresh {
                let ask = call.start(call.clock.resolution());
                if !ask.is_zero() {
                    arm(&call.clock, this.sleeping, ask);
                    call.phase = Phase::Sleeping;
                }
            }
            if call.phase == Phase::Sleeping {
                if call.is_cancelled(|| this.cancel.as_mut().poll(cx).is_ready()) {
                    if call.attempt() > 0 {
                        return call.cancelled::<M, _, _>(this.kept).map_or(Poll::Pending, Poll::Ready);
                    }
                    // In the spread: the operation runs at least once.
                } else {
                    let Some(sleeping) = this.sleeping.as_mut() else { return Poll::Pending };
                    ready!(Pin::new(&mut *sleeping).poll(cx));
                    if let Some(left) = call.left() {
                        call.clock.rearm(sleeping, left);
                        continue;
                    }
                }
                call.phase = Phase::Due;
            }
            if call.phase == Phase::Due {
                if let Err(stop) = call.begin() {
                    call.refused::<P::Error>(stop);
                    let why = Rejected::BreakerOpen(call.breaker_open());
                    return call.given_up::<M, _, _>(this.kept, stop, why).map_or(Poll::Pending, Poll::Ready);
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
            // There is none after the end.
            let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
            let mark = Mark::deeper(call.policy());
            let polled = attempt.poll(cx);
            drop(mark);
            if let Poll::Ready(out) = polled {
                // Whatever the attempt holds is let go before the sleep, and before the caller goes on.
                this.attempt.set(None);
                match this.reading.read(out) {
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
                return call.cancelled::<M, _, _>(this.kept).map_or(Poll::Pending, Poll::Ready);
            }
            if !L::LIMITS || call.phase == Phase::Attempting {
                return Poll::Pending;
            }
            let Some(limit) = this.sleeping.as_mut() else { return Poll::Pending };
            ready!(Pin::new(limit).poll(cx));
            this.attempt.set(None);
            let ask = match call.failed::<P::Error>(Outcome::TRANSIENT, None, call.clock.resolution()) {
                Next::Wait(ask) => ask,
                Next::Stop(stop) => {
                    // The time-out is what happened last; an error of an earlier attempt would mislead.
                    drop(this.kept.take());
                    return call
                        .given_up::<M, _, _>(this.kept, stop, Rejected::TimedOut)
                        .map_or(Poll::Pending, Poll::Ready);
                }
            };
            match rest(call, this.sleeping, this.cancel.as_mut(), ask, cx) {
                Rest::Over => {}
                Rest::Yield => return Poll::Pending,
                Rest::Cancelled => return call.cancelled::<M, _, _>(this.kept).map_or(Poll::Pending, Poll::Ready),
            }
        }
    }
}

/// What a wait begins with.
enum Rest {
    /// The timer is armed, or there is nothing to wait for.
    Over,
    /// Nothing to wait for, but it is another task's turn.
    Yield,
    Cancelled,
}

/// Arms the timer for a wait. One of length zero is over at once, unless somebody wants the call to end.
#[inline]
fn rest<T: Sleep, X: Extras, N: Future>(
    call: &mut Call<&Policy, T, X>,
    sleeping: &mut Option<T::Sleeping>,
    cancel: Pin<&mut N>,
    ask: Duration,
    cx: &mut Context<'_>,
) -> Rest {
    if !ask.is_zero() {
        arm(&call.clock, sleeping, ask);
        call.phase = Phase::Sleeping;
        return Rest::Over;
    }
    if call.is_cancelled(|| cancel.poll(cx).is_ready()) {
        return Rest::Cancelled;
    }
    if fairness::is_over(call.attempt()) {
        cx.waker().wake_by_ref();
        return Rest::Yield;
    }
    Rest::Over
}

/// Arms the one timer of a call: for a sleep, or for the time limit of an attempt.
pub(crate) fn arm<T: Sleep>(timer: &T, sleeping: &mut Option<T::Sleeping>, length: Duration) {
    match sleeping {
        Some(sleeping) => timer.rearm(sleeping, length),
        None => *sleeping = Some(timer.sleep(length)),
    }
}
