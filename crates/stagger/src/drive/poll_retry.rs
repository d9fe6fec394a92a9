//! A call that an integration polls, without borrows.

use core::borrow::Borrow;
use core::fmt;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::{Permits, ServerHealth};
use stagger_core::{Instant, Outcome, StopReason};

use crate::call::machine::{Attempt, Call, Phase};
use crate::call::options::Options;
use crate::call::poll::PollCall;
use crate::call::retrier_options::{RetrierOptions, TargetedRetrier};
use crate::call::scope::{self, ScopeGuard};
use crate::classify::marked::OperationError;
use crate::classify::rule::{BuiltIn, Rule};
use crate::error::call_error::{Cause, Error};
use crate::error::rejected::Rejected;
use crate::retrier::event::{EventError, Silent};
use crate::retrier::handle::Retrier;
use crate::retrier::target::{CallTarget, TargetGuards};
use crate::time::Sleep;

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
    pub(super) driver: PollCall<RetrierOptions<TargetedRetrier<R>>, T>,
    /// The first attempt is in progress on the fast path: if it succeeds, the call needs no state.
    pub(super) is_stateless: bool,
}

impl<T: Sleep + Clone> PollRetry<T> {
    /// Creates a call through this retrier, on this timer.
    pub fn new(retrier: &Retrier, timer: T) -> Self {
        Self::with_deadline(retrier, timer, None)
    }

    /// Creates a call with a deadline, as an instant of the timer's clock: no attempt starts at or after it, and an
    /// attempt's [time limit](Attempt::time_limit) is at most the time left until then.
    pub fn with_deadline(retrier: &Retrier, timer: T, deadline: Option<Instant>) -> Self {
        Self::from_retrier(retrier.clone(), timer, deadline)
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> PollRetry<T, R> {
    /// Creates a call that stores `retrier` as it is: an integration that already owns the retrier saves one reference
    /// count, and with `&Retrier` the call borrows it.
    pub const fn from_retrier(retrier: R, timer: T, deadline: Option<Instant>) -> Self {
        let source = TargetedRetrier { retrier, target: CallTarget::Retrier };
        let options = RetrierOptions { source, deadline, is_timed: true };
        Self { driver: PollCall::new(Call::new(options, timer)), is_stateless: false }
    }

    /// Returns what the retrier was passed as.
    pub const fn retrier(&self) -> &R {
        &self.source().retrier
    }

    /// Turns off measuring [`elapsed`](Self::elapsed) for its own sake: the clock is read only if the policy, a limit,
    /// a guard or a listener needs it, and `elapsed` is zero if none of them does.
    pub const fn untimed(mut self) -> Self {
        self.driver.call.options.is_timed = false;
        self
    }

    /// Takes it for a rejection if a guard would let an attempt wait, for integrations that cannot wait before one: the
    /// delay of a retry, which is known when it is decided on, is the only wait then.
    pub const fn reject_waits(mut self) -> Self {
        self.driver.call.reject_waits();
        self
    }

    /// Uses the guards of this target, for integrations that call several, such as a client of many hosts: the retrier
    /// makes them for each target, with the settings of those that it was given by value. Guards that it was given as
    /// [shared](Retrier::shared_guard), and those without [`Guard::fresh`](crate::Guard::fresh), serve all targets.
    /// Call it before the first poll.
    ///
    /// The number of targets with guards of their own is bounded as in [`Keyed`](crate::guard::Keyed), by its defaults.
    ///
    /// `target` is written to a text only if the retrier has such guards.
    pub fn target(mut self, target: impl fmt::Display) -> Self {
        self.use_target(|| target, CallTarget::Named);
        self
    }

    /// Uses the guards of a target like [`target`](Self::target), but does not ask for its name before they are needed:
    /// the call then ends with [`succeeded_at`](Self::succeeded_at) and [`failed_at`](Self::failed_at). It costs a call
    /// that succeeds next to nothing, and the retrier has guards only for the targets that have failed lately.
    ///
    /// `name` is called at once if a guard must be told of every call (see
    /// [`needs_every_call`](crate::Guard::needs_every_call)), and with operator controls or listeners. Call this before
    /// the first poll.
    pub fn late_target<D: fmt::Display>(mut self, name: impl FnOnce() -> D) -> Self {
        let source = &mut self.driver.call.options.source;
        if source.retrier.borrow().shared().creates_targets_late() {
            source.target = CallTarget::Late;
        } else {
            self.use_target(name, CallTarget::Named);
        }
        self
    }

    /// Waits until the next attempt is due, after the initial spread or the delay that [`failed`](Self::failed) decided
    /// on, and asks the guards to admit it. Pending forever after the end of the call.
    ///
    /// # Errors
    /// Returns [`Rejected`] if a guard rejects the attempt or the deadline has passed; the call has then ended.
    #[inline]
    pub fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<Result<Attempt, Rejected>> {
        let call = &mut self.driver.call;
        if call.phase == Phase::Fresh
            && scope::depth() == 0
            && call.options.is_unguarded()
            && call.starts_fast::<Silent>()
        {
            self.is_stateless = true;
            call.phase = Phase::Attempting;
            return Poll::Ready(Ok(Attempt::first(call.policy())));
        }
        match ready!(self.driver.poll_begin(&Silent, cx)) {
            Ok(attempt) => Poll::Ready(Ok(attempt)),
            Err((stop, rejected)) => {
                self.driver.call.emit_stop(&Silent, stop);
                Poll::Ready(Err(rejected))
            }
        }
    }

    /// Runs `poll` inside the scope of this attempt, so that nested calls do not retry by default; see
    /// [`scope`](crate::scope). From the first call on, the attempt counts as made, even if it is then dropped.
    pub fn attempt<O>(&mut self, poll: impl FnOnce() -> O) -> O {
        self.driver.call.attempting();
        self.prepare(poll)
    }

    /// Runs `poll` inside the scope of this attempt before the attempt is made, for its preparation, such as waiting
    /// until a service is ready. If the call is dropped in this state, the permits of the attempt are released.
    pub fn prepare<O>(&self, poll: impl FnOnce() -> O) -> O {
        let _scope = ScopeGuard::enter(self.driver.call.policy());
        poll()
    }

    /// Completes when the time limit of the attempt elapses. If it is never polled, timeouts are not enforced. When it
    /// completes, drop the attempt and call [`failed`](Self::failed) without an error.
    pub fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.driver.poll_limit(cx)
    }

    /// Classifies this error by the retrier's rules, or the [built-in rules](crate::classify::built_in).
    pub fn outcome<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        BuiltIn.outcome(error, self.driver.call.rules())
    }

    /// Classifies this error by the retrier's rules alone, for integrations that know their errors better than the
    /// [built-in rules](crate::classify::built_in). Returns `None` if the retrier has no rule for `E`.
    pub fn explicit_outcome<E: OperationError + 'static>(&self, error: &E) -> Option<Outcome> {
        self.driver.call.options.retrier()?.explicit(error)
    }

    /// Returns this error as a trait object, whose [chain](crate::classify::links) can be examined: what it holds if it
    /// is a `Box<dyn Error>` or the like, and itself if it is an `io::Error` or the retrier has a rule for it or looks
    /// into it. Returns `None` for other types.
    pub fn as_error<'e, E: OperationError + 'static>(
        &self,
        error: &'e E,
    ) -> Option<&'e (dyn core::error::Error + 'static)> {
        self.driver.call.options.retrier()?.rules.as_error(error.as_any())
    }

    /// Records that the attempt succeeded, which ends the call.
    pub fn succeeded(&mut self) {
        // The target of a call without state may be known by now.
        if self.is_stateless && !matches!(self.source().target, CallTarget::NamedLate(_)) {
            self.driver.call.phase = Phase::Ended;
            return;
        }
        self.driver.call.succeeded(&Silent);
    }

    /// Records that the attempt succeeded, like [`succeeded`](Self::succeeded), for a call with a
    /// [late target](Self::late_target). `name` is called only if guards need it.
    #[inline]
    pub fn succeeded_at<D: fmt::Display>(&mut self, name: impl FnOnce() -> D) {
        self.find_target(name);
        self.succeeded();
        self.leave_target();
    }

    /// Records that the attempt failed, like [`failed`](Self::failed), for a call with a [late
    /// target](Self::late_target). `name` is called only if guards need it. After `failed`, a call with a late target
    /// uses the retrier's own guards.
    #[must_use = "a call that is over must not be polled"]
    pub fn failed_at<E: EventError, D: fmt::Display>(
        &mut self,
        name: impl FnOnce() -> D,
        outcome: Outcome,
        error: Option<&E>,
    ) -> Option<StopReason> {
        // Guards at rest are not changed by an answer of a healthy server.
        match outcome.verdict() {
            ServerHealth::Healthy => self.find_target(name),
            _ if self.is_late() => self.use_target(name, CallTarget::NamedLate),
            _ => {}
        }
        let stop = self.decide(outcome, error);
        if stop.is_some() {
            self.leave_target();
        }
        stop
    }

    /// Returns the retrier, and which of its guards the call uses.
    pub(super) const fn source(&self) -> &TargetedRetrier<R> {
        &self.driver.call.options.source
    }

    /// Returns whether the call has a late target that has not been named.
    const fn is_late(&self) -> bool {
        matches!(self.source().target, CallTarget::Late)
    }

    /// Uses the guards of the late target if an earlier call created them.
    #[inline]
    fn find_target<D: fmt::Display>(&mut self, name: impl FnOnce() -> D) {
        if self.is_late() {
            let call = &mut self.driver.call;
            let source = &mut call.options.source;
            let found = source.retrier.borrow().shared().known_target(name, || call.clock.now());
            source.target = match found {
                Some(guards) => CallTarget::NamedLate(guards),
                None => CallTarget::Late,
            };
            call.replace_guard_source();
        }
    }

    /// Uses the guards of this target, which are created if there are none.
    #[inline]
    fn use_target<D: fmt::Display>(&mut self, name: impl FnOnce() -> D, named: fn(Arc<TargetGuards>) -> CallTarget) {
        let call = &mut self.driver.call;
        let source = &mut call.options.source;
        if let Some(guards) = source.retrier.borrow().shared().target(name, || call.clock.now()) {
            source.target = named(guards);
            call.replace_guard_source();
        }
    }

    /// Removes the guards of a late target after the call if they are at rest and no other call holds them.
    #[inline]
    fn leave_target(&mut self) {
        if matches!(self.source().target, CallTarget::NamedLate(_)) {
            self.leave_named_target();
        }
    }

    #[cold]
    fn leave_named_target(&mut self) {
        let call = &mut self.driver.call;
        call.release_guards();
        let source = &mut call.options.source;
        let CallTarget::NamedLate(guards) = core::mem::replace(&mut source.target, CallTarget::Late) else { return };
        let now = call.clock.now();
        // The table and this call; if others hold them, the last one to leave removes them.
        if Arc::strong_count(&guards) <= 2 && guards.is_at_rest(&now) {
            drop(guards);
            source.retrier.borrow().shared().sweep_targets(now);
        }
    }

    /// Records that the attempt failed, with its error if there is one. Returns `None` if another attempt follows,
    /// which [`poll_begin`](Self::poll_begin) waits for; drop everything that the failed attempt holds before that.
    /// `Some` ends the call.
    #[must_use = "a call that is over must not be polled"]
    pub fn failed<E: EventError>(&mut self, outcome: Outcome, error: Option<&E>) -> Option<StopReason> {
        if self.is_late() {
            self.driver.call.options.source.target = CallTarget::Retrier;
        }
        self.decide(outcome, error)
    }

    fn decide<E: EventError>(&mut self, outcome: Outcome, error: Option<&E>) -> Option<StopReason> {
        if core::mem::take(&mut self.is_stateless) {
            self.driver.call.leave_fast_path(false, Permits::NONE);
        }
        self.driver.failed(&Silent, outcome, error)
    }

    /// Returns the ended call as an [`Error`].
    pub fn error<E>(&self, stop: StopReason, last: Cause<E>) -> Error<E> {
        Error::new(stop, self.attempts(), self.elapsed(), last)
    }

    /// Returns the number of attempts made so far.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        if self.is_stateless { 1 } else { self.driver.call.attempts() }
    }

    /// Returns how long the call has taken so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.driver.call.elapsed()
    }
}

impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> fmt::Debug for PollRetry<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollRetry").field("attempt", &self.attempts()).finish_non_exhaustive()
    }
}
