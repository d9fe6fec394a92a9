//! The decisions of one call. Every driver, blocking or async, uses this; a driver only waits and polls.

use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::guard::Guard as _;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, NestedRetries, Outcome, Policy, Seed, StopReason};

use super::not_before::NotBefore;
use super::options::{Observed, Options};
use super::output::{Ended, ErrorSlot, Finish};
use super::permits::{PermitSlot, PermitStage};
use super::scope;
use crate::classify::rule::RuleSet;
use crate::error::call_error::Cause;
use crate::error::rejected::Rejected;
use crate::retrier::event::{Action, Event, EventError, Listen};
use crate::retrier::limits::IsLast;
use crate::retrier::shared::RetrierState;
use crate::time::{Clock, entropy};

/// The attempt that an operation is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// The policy's limit on attempts, if there is one.
    pub max: Option<NonZeroU32>,
    /// Time limit of the attempt: what is left until the deadline, and at most the timeout. Never zero. `None` if there
    /// is no limit.
    ///
    /// An async attempt is dropped at the limit. A blocking attempt cannot be interrupted: pass the limit on to what it
    /// calls.
    pub time_limit: Option<Duration>,
}

impl Attempt {
    /// Returns whether no other attempt follows if this one fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.max.is_some_and(|max| self.number >= max.get())
    }

    /// Creates the first attempt of a call without options.
    #[inline]
    pub(crate) const fn first(policy: &Policy) -> Self {
        Self { number: 1, max: policy.max_attempts(), time_limit: None }
    }
}

/// The state of one call, its options, and the permits it holds.
///
/// Dropping it at any point releases or settles its permits; the slot they are in does that.
#[derive(Debug)]
pub(crate) struct Call<X: Options, C: Clock + Clone> {
    pub(crate) options: X,
    pub(crate) clock: C,
    pub(super) state: RetryState,
    /// Drawn at the first failure or for the spread: a call that succeeds does not need one.
    pub(super) seed: Seed,
    pub(super) permits: X::Permits<C>,
    /// Valid if one of the flags of [`wait`](super::wait) is set.
    pub(super) not_before: NotBefore,
    pub(crate) phase: Phase,
    pub(super) flags: u8,
}

/// The state of a call.
///
/// ```text
/// Fresh ──→ Due ──→ Attempting, or Timed if the attempt has a time limit ──→ Ended
///     ↘      ↑           │ fails, and another attempt follows
///   Sleeping, or Yielding after 64 attempts without a delay
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Not started.
    Fresh,
    /// A timer is running; the next attempt begins when it fires.
    Sleeping,
    /// The next attempt begins now, but the task must yield to others first.
    Yielding,
    /// The next attempt begins now.
    Due,
    /// An attempt is in progress.
    Attempting,
    /// An attempt is in progress, and a timer limits it.
    Timed,
    /// The call has ended.
    Ended,
}

/// The seed is set.
pub(super) const SEEDED: u8 = 1;
/// The call was made inside an attempt of another call.
pub(super) const NESTED: u8 = 2;
/// The caller has cancelled the call.
const CANCELLED: u8 = 4;

impl<X: Options, C: Clock + Clone> Call<X, C> {
    #[inline]
    pub(crate) const fn new(options: X, clock: C) -> Self {
        Self {
            options,
            clock,
            state: RetryState::new(),
            seed: Seed::new(0),
            permits: <X::Permits<C> as PermitSlot<X, C>>::EMPTY,
            not_before: NotBefore::UNSET,
            phase: Phase::Fresh,
            flags: 0,
        }
    }

    /// Sets the seed that delays are drawn from, if there is one.
    #[inline]
    #[must_use]
    pub(crate) fn seeded(mut self, seed: Option<Seed>) -> Self {
        if let Some(seed) = seed {
            self.seed = seed;
            self.flags |= SEEDED;
        }
        self
    }

    /// Returns the seed that was set.
    #[inline]
    pub(crate) const fn fixed_seed(&self) -> Option<Seed> {
        if self.flags & SEEDED == 0 { None } else { Some(self.seed) }
    }

    /// Resets the call to its initial state, so that it can run again.
    pub(crate) fn restart(&mut self) {
        self.permits.settle();
        self.state = RetryState::new();
        self.flags = 0;
        self.phase = Phase::Fresh;
    }

    /// Starts the call: reads the nesting depth, and the clock if an option needs it. Returns how long to wait before
    /// the first attempt.
    #[inline]
    pub(crate) fn start(&mut self, resolution: Duration) -> Duration {
        self.start_without_spread();
        if self.policy().spread().is_zero() { Duration::ZERO } else { self.spread(resolution) }
    }

    /// Starts the call, and ignores the policy's spread: its first attempt is due now.
    #[inline]
    pub(crate) fn start_without_spread(&mut self) {
        if scope::depth() > 0 {
            self.flags |= NESTED;
        }
        if self.is_timed() {
            self.state = RetryState::started(self.clock.now());
        }
        self.phase = Phase::Due;
    }

    /// Returns whether the elapsed time will be needed.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        !X::PLAIN && (self.options.is_timed() || self.has_listeners())
    }

    /// Returns whether the retrier of the call has listeners.
    #[inline]
    pub(super) fn has_listeners(&self) -> bool {
        match self.options.retrier() {
            Some(retrier) => retrier.has_listeners(),
            None => false,
        }
    }

    #[cold]
    fn spread(&mut self, resolution: Duration) -> Duration {
        self.draw_seed();
        let clock = &self.clock;
        let mut retry =
            RetryMachine::new(self.options.policy(), &mut self.state, self.seed).deadline(self.options.deadline());
        let after = retry.spread(|| clock.now());
        retry.on_ticks(after, DelaySource::Spread, resolution)
    }

    /// Asks the deadline and the guards to admit the next attempt.
    ///
    /// # Errors
    /// The reason to stop, and the rejection to return if there is no error of an earlier attempt.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<(), (StopReason, Rejected)> {
        let nested = self.nested();
        let permits = self.permits.take();
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let begun = RetryMachine::new(self.options.policy(), &mut self.state, self.seed)
            .deadline(self.options.deadline())
            .begin(permits, || clock.now(), &guards);
        match begun {
            Ok(permits) => {
                self.permits.put(permits, PermitStage::Waiting, nested, &self.options, &self.clock);
                self.phase = Phase::Attempting;
                Ok(())
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                Err((stop, self.rejection(stop)))
            }
        }
    }

    #[cold]
    pub(crate) fn rejection(&self, stop: StopReason) -> Rejected {
        let guards = self.options.guards();
        let now = self.clock.now();
        match stop {
            StopReason::Guard(guard) => Rejected::ByGuard { guard, retry_in: guards.retry_in(guard, &now) },
            // The call would have had to wait for one of them.
            StopReason::Threads => {
                let holding = guards.iter().find(|guard| !guard.retry_in(&now).is_zero());
                match holding {
                    Some(guard) => Rejected::ByGuard { guard: guard.name(), retry_in: guard.retry_in(&now) },
                    None => Rejected::DeadlinePassed,
                }
            }
            _ => Rejected::DeadlinePassed,
        }
    }

    /// Returns what this call may do, depending on whether an outer call is already retrying.
    #[inline]
    pub(super) fn nested(&self) -> NestedRetries {
        if self.flags & NESTED == 0 { NestedRetries::Allow } else { self.options.guards().nesting() }
    }

    /// Records that the admitted attempt has started; this decides how its permits are settled on drop.
    #[inline]
    pub(crate) fn attempting(&mut self) {
        self.permits.set_stage(PermitStage::Attempting);
    }

    /// Returns the attempt that has just begun, with its time limit.
    #[inline]
    pub(crate) fn attempt(&mut self) -> Attempt {
        let time_limit = if X::PLAIN { None } else { self.time_limit() };
        Attempt { number: self.attempts(), max: self.policy().max_attempts(), time_limit }
    }

    fn time_limit(&mut self) -> Option<Duration> {
        let retry =
            RetryMachine::new(self.options.policy(), &mut self.state, self.seed).deadline(self.options.deadline());
        let is_last = if retry.is_last_attempt() { IsLast::Yes } else { IsLast::No };
        let timeout = self.options.timeout(is_last);
        let clock = &self.clock;
        let limit = match (retry.remaining(|| clock.now()), timeout) {
            (Some(left), Some(timeout)) => Some(left.min(timeout)),
            (left, timeout) => left.or(timeout),
        };
        // Timers are never armed for zero, and a socket treats a timeout of zero as none.
        limit.map(|limit| limit.max(Duration::from_nanos(1)))
    }

    /// Records that the attempt succeeded.
    #[inline]
    pub(crate) fn succeeded<L: Listen>(&mut self, listener: &L) {
        self.phase = Phase::Ended;
        let nested = self.nested();
        let permits = self.permits.take();
        let clock = &self.clock;
        if !self.options.is_unguarded() {
            let guards = self.options.guards().nested(nested);
            guards.settle_after(permits, &Outcome::Success, self.state.start(), || clock.now());
        }
        self.emit(listener, Action::Done, None);
    }

    /// Records that the attempt failed, and decides what follows.
    #[inline(always)]
    pub(crate) fn failed<E, L: Listen>(
        &mut self,
        listener: &L,
        outcome: Outcome,
        error: Option<&E>,
        resolution: Duration,
    ) -> Next
    where
        X: Observed<E>,
    {
        self.failed_unless(listener, outcome, error, resolution, |_, _| None)
    }

    /// Records like [`failed`](Self::failed), but stops before a retry if `refuse` returns a reason: for a blocking
    /// call whose delay no further thread may sleep through.
    // Inlined into each driver: a decision that is returned through memory costs a plain call more than the decision.
    #[inline(always)]
    pub(crate) fn failed_unless<E, L: Listen>(
        &mut self,
        listener: &L,
        outcome: Outcome,
        error: Option<&E>,
        resolution: Duration,
        refuse: impl FnOnce(&X, Duration) -> Option<StopReason>,
    ) -> Next
    where
        X: Observed<E>,
    {
        // An error is never a success, whatever the rule returned.
        let outcome = if matches!(outcome, Outcome::Success) { Outcome::Permanent } else { outcome };
        if self.flags & SEEDED == 0 && self.needs_seed(&outcome, resolution) {
            self.draw_seed();
        }
        let nested = self.nested();
        let permits = self.permits.take();
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let mut retry = RetryMachine::new(self.options.policy(), &mut self.state, self.seed)
            .deadline(self.options.deadline())
            .strategy(self.options.strategy());
        let decision = if X::PLAIN {
            retry.decide_unguarded(outcome, nested, || clock.now())
        } else {
            retry.decide(outcome, permits, || clock.now(), &guards)
        };
        let decision = match decision {
            // A policy alone has no such reason. Taken apart, the decision of its call would live in memory.
            decision if X::PLAIN => decision,
            Decision::Retry { after, source, permit } => match refuse(&self.options, after) {
                None => Decision::Retry { after, source, permit },
                Some(stop) => {
                    guards.release(permit, || clock.now());
                    Decision::Stop(stop)
                }
            },
            other => other,
        };
        let next = Next::after(&decision, &retry, resolution);
        self.follow(listener, decision, nested, next, error.and_then(X::describe))
    }

    /// Enters the phase that follows a decision, and tells the listeners.
    #[inline(always)]
    pub(super) fn follow<L: Listen>(
        &mut self,
        listener: &L,
        decision: Decision,
        nested: NestedRetries,
        next: Next,
        error: Option<&dyn EventError>,
    ) -> Next {
        match next {
            Next::Wait { delay, after, source: DelaySource::Hint } if !delay.is_zero() => self.set_not_before(after),
            _ => {}
        }
        let action = action(&decision);
        self.phase = Phase::Ended;
        if let Decision::Retry { permit, .. } = decision {
            self.permits.put(permit, PermitStage::Waiting, nested, &self.options, &self.clock);
            self.phase = Phase::Due;
        }
        // Only after the permit is stored: the listener may panic.
        self.emit(listener, action, error);
        next
    }

    /// Returns whether the delay after this outcome may depend on the seed.
    #[inline]
    pub(crate) fn needs_seed(&self, outcome: &Outcome, resolution: Duration) -> bool {
        self.options.strategy().is_some() || self.policy().needs_seed(outcome, resolution)
    }

    /// Returns whether the caller has cancelled. `is_ready` is not called again once it has returned true: it may poll
    /// a future.
    #[inline]
    pub(crate) fn is_cancelled(&mut self, is_ready: impl FnOnce() -> bool) -> bool {
        if self.flags & CANCELLED == 0 && is_ready() {
            self.flags |= CANCELLED;
        }
        self.flags & CANCELLED != 0
    }

    /// Releases what the permits of an ended call hold besides themselves: its guards.
    pub(crate) fn release_guards(&mut self) {
        self.permits = <X::Permits<C> as PermitSlot<X, C>>::EMPTY;
    }

    /// Ends the call and settles the permits of an attempt that does not complete.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Ended;
        self.permits.settle();
    }

    /// Emits the event of a call that ends without an error of its operation.
    #[cold]
    pub(crate) fn emit_stop<L: Listen>(&self, listener: &L, stop: StopReason) {
        self.emit(listener, Action::Stop(stop), None);
    }

    #[inline]
    pub(super) fn emit<L: Listen>(&self, listener: &L, action: Action, error: Option<&dyn EventError>) {
        if !X::PLAIN && (L::LISTENS || self.has_listeners()) {
            self.emit_event(listener, action, error);
        }
    }

    #[cold]
    fn emit_event<L: Listen>(&self, listener: &L, action: Action, error: Option<&dyn EventError>) {
        let (target, listeners, rules) = match self.options.retrier() {
            Some(retrier) => (&*retrier.name, &*retrier.listeners, Some(&retrier.rules)),
            None => ("", &[][..], None),
        };
        let event = Event {
            target,
            attempt: self.attempts(),
            max_attempts: self.policy().max_attempts(),
            elapsed: self.elapsed(),
            budget_left: self.options.guards().available(),
            action,
            retry_in: match action {
                Action::Stop(stop) => self.rejection(stop).retry_in(),
                _ => None,
            },
            error,
            unreachable: None,
            rules,
        };
        listener.listen(&event);
        for listen in listeners {
            listen(&event);
        }
    }

    /// Builds the output of a call whose attempt succeeded.
    #[inline]
    pub(crate) fn success<M: Finish<T, E>, T, E>(&self, value: T) -> M::Output {
        M::success(value, || self.ended())
    }

    /// Builds the output of a call that its caller cancelled, during a sleep or an attempt.
    #[cold]
    pub(crate) fn cancelled<M, T, E, L>(&mut self, listener: &L, last: &mut M::LastError<E>) -> Option<M::Output>
    where
        M: Finish<T, E>,
        L: Listen,
    {
        self.abandon();
        self.emit_stop(listener, StopReason::Cancelled);
        self.rejected::<M, T, E>(last, StopReason::Cancelled, Rejected::Cancelled)
    }

    /// Builds the output of a call that was stopped from outside, with the last error if there was one, or else with
    /// the rejection. Returns `None` for a plain call, which has no guards, limits or cancellation, so nothing can
    /// reject it.
    #[cold]
    pub(crate) fn rejected<M, T, E>(
        &mut self,
        last: &mut M::LastError<E>,
        stop: StopReason,
        rejected: Rejected,
    ) -> Option<M::Output>
    where
        M: Finish<T, E>,
    {
        self.stopped::<M, T, E>(Cause::last_or(last.take(), rejected), stop)
    }

    /// Builds the output of a call that failed with this cause.
    pub(crate) fn stopped<M: Finish<T, E>, T, E>(&mut self, cause: Cause<E>, stop: StopReason) -> Option<M::Output> {
        self.phase = Phase::Ended;
        M::failure(cause, stop, || self.ended())
    }

    pub(crate) fn ended(&self) -> Ended {
        Ended { attempts: self.attempts(), elapsed: self.elapsed() }
    }

    /// Returns the number of the current or latest attempt, counted from 1; 0 before the first.
    #[inline]
    pub(crate) const fn attempts(&self) -> u32 {
        self.state.attempt()
    }

    /// Returns the time since the start of the call; zero if no option needs it.
    #[inline]
    pub(crate) fn elapsed(&self) -> Duration {
        match self.state.start() {
            Some(start) => self.clock.now().saturating_since(start),
            None => Duration::ZERO,
        }
    }

    /// Returns the rules of the retrier, if the call is made through one.
    pub(crate) fn rules(&self) -> Option<&RuleSet> {
        self.options.retrier().map(|retrier| &retrier.rules)
    }

    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        self.options.policy()
    }

    #[inline]
    pub(super) fn draw_seed(&mut self) {
        if self.flags & SEEDED == 0 {
            self.seed = match self.options.retrier() {
                Some(RetrierState { seed: Some(seed), .. }) => *seed,
                _ => entropy::seed(),
            };
            self.flags |= SEEDED;
        }
    }
}

/// The next action of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Arm the timer for `delay`; zero means no timer. When it fires, check
    /// [`remaining_wait`](super::machine::Call::remaining_wait).
    Wait {
        /// The decided delay, fitted to the timer.
        delay: Duration,
        /// The decided delay.
        after: Duration,
        source: DelaySource,
    },
    Stop(StopReason),
}

impl Next {
    /// Returns the action that follows a decision about a failed attempt.
    #[inline(always)]
    pub(super) fn after(decision: &Decision, retry: &RetryMachine<'_>, resolution: Duration) -> Self {
        match *decision {
            Decision::Retry { after, source, .. } => {
                Self::Wait { delay: retry.on_ticks(after, source, resolution), after, source }
            }
            Decision::Stop(stop) => Self::Stop(stop),
            // Not reachable for an error; treated like an outcome of success beside an error.
            _ => Self::Stop(StopReason::Permanent),
        }
    }
}

/// Returns a decision as the listeners receive it.
pub(super) const fn action(decision: &Decision) -> Action {
    match decision {
        Decision::Done => Action::Done,
        Decision::Retry { after, source, .. } => Action::Retry { after: *after, source: *source },
        Decision::Stop(stop) => Action::Stop(*stop),
        _ => Action::Stop(StopReason::Permanent),
    }
}
