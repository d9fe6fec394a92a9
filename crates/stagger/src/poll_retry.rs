use core::borrow::Borrow;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use crate::call::{Attempt, Call, Next, Phase};
use crate::coop;
use crate::event::EventError;
use crate::future::arm;
use crate::marked::OperationError;
use crate::retrier_options::{RetrierOptions, RetrierPolicy};
use crate::rule::Rule as _;
use crate::scope::{self, ScopeGuard};
use crate::setup::PermitStage;
use crate::{BreakerOpen, Cause, Error, Instant, Outcome, Retrier, StopReason, time::Sleep};

/// A poll-based call without borrows: the building block for integrations that need a nameable, `'static` future and
/// explicit attempt boundaries. In all other cases use [`Retrier::run`].
///
/// ```text
/// poll_begin → attempt(|| future.poll(..)), poll_limit → succeeded
///      ↑                                              → failed → Some(stop)
///      └──────────────────────────────────────────────────────── None
/// ```
///
/// It makes the same decisions as the retrier's other calls. Dropping it at any point releases the permits it holds:
/// cancel-safe.
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
    call: Call<RetrierPolicy, T, RetrierOptions<T, R>>,
    /// The call's single timer, for a sleep or for the time limit of an attempt.
    sleeping: Option<T::Sleeping>,
    /// There is nothing to wait for, but the task must yield to others first.
    yields: bool,
    /// The first attempt is in progress on the fast path: if it succeeds, the call needs no state.
    is_stateless: bool,
}

impl<T: Sleep + Clone> PollRetry<T> {
    /// Creates a call through this retrier, on this timer.
    pub fn new(retrier: &Retrier, timer: T) -> Self {
        Self::with_deadline(retrier, timer, None)
    }

    /// Creates a call with a deadline, as an instant of the timer's clock: no retry starts at or after it, and an
    /// attempt's [time limit](Attempt::time_limit) is at most the time left until then.
    pub fn with_deadline(retrier: &Retrier, timer: T, deadline: Option<Instant>) -> Self {
        Self::from_retrier(retrier.clone(), timer, deadline)
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> PollRetry<T, R> {
    /// Creates a call that stores `retrier` as it is: an integration that already owns the retrier saves one reference
    /// count, and with `&Retrier` the call borrows it.
    pub fn from_retrier(retrier: R, timer: T, deadline: Option<Instant>) -> Self {
        let options = RetrierOptions::new(retrier, timer.clone(), deadline);
        Self { call: Call::new(RetrierPolicy, timer, options), sleeping: None, yields: false, is_stateless: false }
    }

    /// Returns what the retrier was passed as.
    pub const fn retrier(&self) -> &R {
        self.call.options.retrier()
    }

    /// Turns off measuring [`elapsed`](Self::elapsed) for its own sake: the clock is read only if the policy, a limit,
    /// a guard or a listener needs it, and `elapsed` is zero if none of them does.
    pub const fn untimed(mut self) -> Self {
        self.call.options.is_timed = false;
        self
    }

    /// Waits until the next attempt is due, after the initial spread or the delay that [`failed`](Self::failed) decided
    /// on, and asks the guards to admit it. Pending forever after the end of the call.
    ///
    /// # Errors
    /// Returns [`BreakerOpen`] if the breaker rejects the attempt; the call has then ended.
    #[inline]
    pub fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<Attempt, BreakerOpen>> {
        if self.call.phase == Phase::Fresh && self.call.has_fast_path() && scope::depth() == 0 {
            self.is_stateless = true;
            self.call.phase = Phase::Attempting;
            return Poll::Ready(Ok(Attempt::first(self.call.policy())));
        }
        self.poll_due(cx)
    }

    /// Runs `poll` inside the scope of this attempt, so that nested calls do not retry by default; see
    /// [`scope`](crate::scope). From the first call on, the attempt counts as made, even if it is then dropped.
    pub fn attempt<O>(&mut self, poll: impl FnOnce() -> O) -> O {
        self.call.set_stage(PermitStage::Attempting);
        self.prepare(poll)
    }

    /// Runs `poll` inside the scope of this attempt before the attempt is made, for its preparation, such as waiting
    /// until a service is ready. If the call is dropped in this state, the permits of the attempt are released.
    pub fn prepare<O>(&self, poll: impl FnOnce() -> O) -> O {
        let _scope = ScopeGuard::enter(self.call.policy());
        poll()
    }

    /// Completes when the time limit of the attempt elapses. If it is never polled, timeouts are not enforced. When it
    /// completes, drop the attempt and call [`failed`](Self::failed) without an error.
    pub fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleeping {
            Some(limit) if self.call.phase == Phase::Timed => Pin::new(limit).poll(cx),
            _ => Poll::Pending,
        }
    }

    /// Classifies this error by the retrier's rules, or the [built-in rules](crate::classify::built_in).
    pub fn outcome<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        self.call.options.rules().outcome(error)
    }

    /// Classifies this error by the retrier's rules alone, for integrations that know their errors better than the
    /// [built-in rules](crate::classify::built_in). Returns `None` if the retrier has no rule for `E`.
    pub fn explicit_outcome<E: OperationError + 'static>(&self, error: &E) -> Option<Outcome> {
        self.call.options.rules().explicit(error)
    }

    /// Records that the attempt succeeded, which ends the call.
    pub fn succeeded(&mut self) {
        if self.is_stateless {
            self.call.phase = Phase::Ended;
            return;
        }
        self.call.succeeded::<()>();
    }

    /// Records that the attempt failed, with its error if there is one. Returns `None` if another attempt follows,
    /// which [`poll_begin`](Self::poll_begin) waits for; drop everything that the failed attempt holds before that.
    /// `Some` ends the call.
    #[must_use = "a call that is over must not be polled"]
    pub fn failed<E: EventError>(&mut self, outcome: Outcome, error: Option<&E>) -> Option<StopReason> {
        if core::mem::take(&mut self.is_stateless) {
            self.call.leave_fast_path(false);
        }
        match self.call.failed(outcome, error, self.call.clock.resolution()) {
            Next::Stop(stop) => Some(stop),
            Next::Wait(delay) => {
                self.wait(delay);
                None
            }
        }
    }

    /// Returns the ended call as an [`Error`].
    pub fn error<E>(&self, stop: StopReason, last: Cause<E>) -> Error<E> {
        Error::new(stop, self.attempts(), self.elapsed(), last)
    }

    /// Returns the number of attempts made so far.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        if self.is_stateless { 1 } else { self.call.attempt() }
    }

    /// Returns how long the call has taken so far.
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
            let delay = self.call.start(self.call.clock.resolution());
            self.wait(delay);
        }
        while self.call.phase == Phase::Sleeping {
            let Some(sleeping) = &mut self.sleeping else { return Poll::Pending };
            ready!(Pin::new(&mut *sleeping).poll(cx));
            match self.call.remaining_wait() {
                Some(left) => self.call.clock.rearm(sleeping, left),
                None => self.call.phase = Phase::Due,
            }
        }
        if self.call.phase != Phase::Due {
            return Poll::Pending;
        }
        if let Err(stop) = self.call.begin() {
            self.call.emit_rejection::<()>(stop);
            return Poll::Ready(Err(self.call.breaker_open()));
        }
        self.call.set_stage(PermitStage::Admitted);
        let limit = self.call.time_limit();
        if let Some(limit) = limit {
            arm(&self.call.clock, &mut self.sleeping, limit);
            self.call.phase = Phase::Timed;
        }
        Poll::Ready(Ok(Attempt::of(&self.call, limit)))
    }

    fn wait(&mut self, delay: Duration) {
        if delay.is_zero() {
            self.yields = coop::should_yield(self.call.attempt());
        } else {
            arm(&self.call.clock, &mut self.sleeping, delay);
            self.call.phase = Phase::Sleeping;
        }
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> fmt::Debug for PollRetry<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollRetry").field("attempt", &self.attempts()).finish_non_exhaustive()
    }
}
