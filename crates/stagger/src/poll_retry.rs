use core::borrow::Borrow;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use crate::call::{Attempt, Call, Next, Phase};
use crate::event::EventError;
use crate::fairness;
use crate::future::arm;
use crate::own::{OfRetrier, Own};
use crate::rule::Rule as _;
use crate::scope::{self, Mark};
use crate::setup::Stage;
use crate::{BreakerOpen, Cause, Error, Instant, Outcome, Retrier, StopReason, time::Sleep};

/// A call that borrows nothing and is driven by polls: what an integration is built on whose futures have a name, live
/// as long as they like, and must know when an attempt begins and ends. Everybody else uses [`Retrier::run`].
///
/// ```text
/// poll_begin → attempt(|| future.poll(..)), poll_limit → succeeded
///      ↑                                              → failed → Some(stop)
///      └──────────────────────────────────────────────────────── None
/// ```
///
/// Every decision is the one that the retrier's other calls get. Dropping it at any point gives back what it has
/// borrowed from its guards: cancel-safe.
///
/// ```
/// use core::future::{Future, poll_fn};
/// use stagger::{Outcome, Policy, PollRetry, Retrier, policy};
///
/// const POLICY: Policy = policy!(constant(ms(1)).max_attempts(3));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut call = PollRetry::new(&Retrier::new(POLICY), stagger::time::Tokio);
/// let stop = loop {
///     let attempt = poll_fn(|cx| call.poll_begin(cx)).await.unwrap();
///     let mut future = Box::pin(async { Err::<(), _>("busy") });
///     let error = poll_fn(|cx| call.attempt(|| future.as_mut().poll(cx))).await.unwrap_err();
///     if let Some(stop) = call.failed(Outcome::TRANSIENT, Some(&error)) {
///         break (stop, attempt.number);
///     }
/// };
/// assert_eq!(stop, (stagger::StopReason::Attempts, 3));
/// # });
/// ```
#[must_use = "a call does nothing until it is polled"]
pub struct PollRetry<T: Sleep + Clone, R: Borrow<Retrier> + Clone = Retrier> {
    call: Call<OfRetrier, T, Own<T, R>>,
    /// The one timer: for a sleep, or for the time limit of an attempt.
    sleeping: Option<T::Sleeping>,
    /// Nothing to wait for, but it is another task's turn.
    yields: bool,
    /// The first attempt is being made, and the call has no state yet: if that succeeds, it needs none.
    is_stateless: bool,
}

impl<T: Sleep + Clone> PollRetry<T> {
    /// A call as this retrier makes them, on this timer.
    pub fn new(retrier: &Retrier, timer: T) -> Self {
        Self::with_deadline(retrier, timer, None)
    }

    /// The same with a deadline, on the timer's clock: no retry starts then or later, and an attempt's
    /// [limit](Attempt::time_limit) is what is left until then.
    pub fn with_deadline(retrier: &Retrier, timer: T, deadline: Option<Instant>) -> Self {
        Self::from_retrier(retrier.clone(), timer, deadline)
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> PollRetry<T, R> {
    /// The same for a caller who holds the retrier anyway, as a part of something else: one count of references less. With
    /// `&Retrier` the call borrows it.
    pub fn from_retrier(retrier: R, timer: T, deadline: Option<Instant>) -> Self {
        let own = Own::new(retrier, timer.clone(), deadline);
        Self { call: Call::new(OfRetrier, timer, own), sleeping: None, yields: false, is_stateless: false }
    }

    /// What holds the retrier.
    pub const fn retrier(&self) -> &R {
        self.call.extras.retrier()
    }

    /// Nobody will ask for the [`elapsed`](Self::elapsed) time: the clock is read only if the policy, a limit, a guard or a
    /// listener wants to know, and elapsed is zero if none of them does.
    pub const fn untimed(mut self) -> Self {
        self.call.extras.is_timed = false;
        self
    }

    /// Waits until the next attempt is due, and lets it begin: after the spread, or after what [`failed`](Self::failed)
    /// has decided. After the end of the call it is pending for ever.
    ///
    /// # Errors
    /// The breaker refuses; the call is over.
    #[inline]
    pub fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<Attempt, BreakerOpen>> {
        if self.call.phase == Phase::Fresh && self.call.begins_at_once() && scope::depth() == 0 {
            self.is_stateless = true;
            self.call.phase = Phase::Attempting;
            return Poll::Ready(Ok(Attempt::first(self.call.policy())));
        }
        self.poll_due(cx)
    }

    /// Does `poll` under the mark of this attempt, so that calls made in it stand down; see [`scope`](crate::scope). From
    /// the first time on the attempt is one that was made, also if it is dropped.
    pub fn attempt<O>(&mut self, poll: impl FnOnce() -> O) -> O {
        self.call.stands_at(Stage::Attempting);
        self.prepare(poll)
    }

    /// The same before the attempt is made, for what it needs first, such as a service's readiness. A call that is dropped
    /// in there gives back what was lent for the attempt.
    pub fn prepare<O>(&self, poll: impl FnOnce() -> O) -> O {
        let _mark = Mark::deeper(self.call.policy());
        poll()
    }

    /// Ready when the attempt has taken as long as it may. Whoever takes no notice has no timeouts. The attempt is then
    /// dropped, and [`failed`](Self::failed), without an error.
    pub fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleeping {
            Some(limit) if self.call.phase == Phase::Timed => Pin::new(limit).poll(cx),
            _ => Poll::Pending,
        }
    }

    /// What the retrier's rules say of this error.
    pub fn outcome<E: 'static>(&self, error: &E) -> Outcome {
        self.call.extras.rules().outcome(error)
    }

    /// The same without the [built-in rules](crate::classify::built_in), for whoever knows the error better than they do:
    /// `None` if the retrier has no rule for its type.
    pub fn given_outcome<E: 'static>(&self, error: &E) -> Option<Outcome> {
        self.call.extras.rules().given(error)
    }

    /// The attempt succeeded: the call is over.
    pub fn succeeded(&mut self) {
        if self.is_stateless {
            self.call.phase = Phase::Ended;
            return;
        }
        self.call.succeeded::<()>();
    }

    /// The attempt failed, with this error if there was one. `None`: another follows, and
    /// [`poll_begin`](Self::poll_begin) waits for it. Let go of everything that the attempt holds before that.
    #[must_use = "a call that is over must not be polled"]
    pub fn failed<E: EventError>(&mut self, outcome: Outcome, error: Option<&E>) -> Option<StopReason> {
        if core::mem::take(&mut self.is_stateless) {
            self.call.first_ended(false);
        }
        match self.call.failed(outcome, error, self.call.clock.resolution()) {
            Next::Stop(stop) => Some(stop),
            Next::Wait(ask) => {
                self.wait(ask);
                None
            }
        }
    }

    /// The call as an [`Error`], after its end.
    pub fn error<E>(&self, stop: StopReason, last: Cause<E>) -> Error<E> {
        Error::new(stop, self.attempts(), self.elapsed(), last)
    }

    /// The attempts made so far.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        if self.is_stateless { 1 } else { self.call.attempt() }
    }

    /// How long the call has taken so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.call.elapsed()
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<Result<Attempt, BreakerOpen>> {
        if core::mem::take(&mut self.yields) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.call.phase == Phase::Fresh {
            let ask = self.call.start(self.call.clock.resolution());
            self.wait(ask);
        }
        while self.call.phase == Phase::Sleeping {
            let Some(sleeping) = &mut self.sleeping else { return Poll::Pending };
            ready!(Pin::new(&mut *sleeping).poll(cx));
            match self.call.left() {
                Some(left) => self.call.clock.rearm(sleeping, left),
                None => self.call.phase = Phase::Due,
            }
        }
        if self.call.phase != Phase::Due {
            return Poll::Pending;
        }
        if let Err(stop) = self.call.begin() {
            self.call.refused::<()>(stop);
            return Poll::Ready(Err(self.call.breaker_open()));
        }
        self.call.stands_at(Stage::LetIn);
        let limit = self.call.time_limit();
        if let Some(limit) = limit {
            arm(&self.call.clock, &mut self.sleeping, limit);
            self.call.phase = Phase::Timed;
        }
        Poll::Ready(Ok(Attempt::of(&self.call, limit)))
    }

    fn wait(&mut self, ask: Duration) {
        if ask.is_zero() {
            self.yields = fairness::is_over(self.call.attempt());
        } else {
            arm(&self.call.clock, &mut self.sleeping, ask);
            self.call.phase = Phase::Sleeping;
        }
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> fmt::Debug for PollRetry<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollRetry").field("attempt", &self.attempts()).finish_non_exhaustive()
    }
}
