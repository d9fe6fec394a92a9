//! The decisions of one call. Every driver, blocking or async, uses this; a driver only waits and polls.

use core::time::Duration;

use crate::error::Rejected;
use crate::event::{Action, Event, Sink};
use crate::not_before::NotBefore;
use crate::retrier_options::PolicySource;
use crate::scope;
use crate::setup::{CallOptions, End, Ending, ErrorSlot, Finish, IsLast, Listening, PermitGuard, PermitStage, Setup};
use crate::{
    BreakerOpen, DelaySource, NestedRetries, Outcome, Policy, Seed, StopReason, machine::Decision,
    machine::RetryMachine, machine::RetryState, testing, time::Clock,
};

/// The state of one call, its options, and the permits it holds.
///
/// Dropping it at any point releases or settles its permits; their drop guard does that.
#[derive(Debug)]
pub(crate) struct Call<P, C: Clock, X: CallOptions> {
    policy: P,
    pub(crate) clock: C,
    pub(crate) options: X,
    state: RetryState,
    /// Drawn at the first failure or for the spread: a call that succeeds does not need one.
    seed: Seed,
    permits: X::Guard,
    /// Valid if `HINTED` is set.
    not_before: NotBefore,
    pub(crate) phase: Phase,
    flags: u8,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Not started.
    Fresh,
    /// A timer is running; the next attempt begins when it fires.
    Sleeping,
    /// The next attempt begins now.
    Due,
    /// An attempt is in progress.
    Attempting,
    /// An attempt is in progress, and a timer limits it.
    Timed,
    /// The call has ended.
    Ended,
}

const SEEDED: u8 = 1;
/// The call was made inside an attempt of another call.
const NESTED: u8 = 2;
/// The caller has cancelled the call.
const CANCELLED: u8 = 4;
/// `not_before` is set, because a hint determined the current wait; [`remaining_wait`](Call::remaining_wait) clears it.
const HINTED: u8 = 8;

/// The next action of the driver.
#[derive(Debug)]
pub(crate) enum Next {
    /// Arm the timer for this long; zero means no timer. When it fires, check [`remaining_wait`](Call::remaining_wait).
    Wait(Duration),
    Stop(StopReason),
}

impl<P: PolicySource<X>, C: Clock, X: CallOptions> Call<P, C, X> {
    #[inline]
    pub(crate) const fn new(policy: P, clock: C, options: X) -> Self {
        Self {
            policy,
            clock,
            options,
            state: RetryState::new(),
            seed: Seed::new(0),
            permits: X::Guard::EMPTY,
            not_before: NotBefore::UNSET,
            phase: Phase::Fresh,
            flags: 0,
        }
    }

    /// Resets the call to its initial state, so that it can run again.
    pub(crate) fn restart(&mut self) {
        self.permits = X::Guard::EMPTY;
        self.state = RetryState::new();
        self.flags = 0;
        self.phase = Phase::Fresh;
    }

    /// Starts the call: reads the nesting depth, and the clock if an option needs it. Returns how long to wait before
    /// the first attempt.
    #[inline]
    pub(crate) fn start(&mut self, resolution: Duration) -> Duration {
        if scope::depth() > 0 {
            self.flags |= NESTED;
        }
        if X::TIMED && self.options.is_timed() {
            self.state = RetryState::started(self.clock.now());
        }
        self.phase = Phase::Due;
        if self.policy().spread().is_zero() { Duration::ZERO } else { self.spread(resolution) }
    }

    /// Returns whether the first attempt can be made on the fast path, before the call has any state: no option is
    /// consulted and a success leaves no trace. [`leave_fast_path`](Self::leave_fast_path) makes up for the skipped
    /// start.
    #[inline]
    pub(crate) fn has_fast_path(&self) -> bool {
        self.options.is_plain() && self.policy().starts_immediately()
    }

    /// Catches up on the skipped start: the first attempt was made on the fast path, and is pending or has failed.
    pub(crate) fn leave_fast_path(&mut self, is_nested: bool) {
        if is_nested {
            self.flags |= NESTED;
        }
        // There is no guard that could reject the attempt.
        let _ = self.begin();
    }

    /// Returns the end of a call that succeeded on the fast path.
    #[inline]
    pub(crate) const fn fast_path_success<T, E, R>(value: T) -> End<T, E, R> {
        End { result: Ok(value), attempts: 1, elapsed: Duration::ZERO }
    }

    #[cold]
    fn spread(&mut self, resolution: Duration) -> Duration {
        self.draw_seed();
        let clock = &self.clock;
        let mut retry = RetryMachine::new(self.policy.policy(&self.options), &mut self.state, self.seed)
            .deadline(self.options.deadline());
        let after = retry.spread(|| clock.now());
        if testing::sleeps_are_skipped() {
            return Duration::ZERO;
        }
        retry.on_ticks(after, DelaySource::Spread, resolution)
    }

    /// Asks the guards to admit the next attempt.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<(), StopReason> {
        let nested = self.nested();
        let (clock, permit) = (&self.clock, self.permits.take());
        let guards = self.options.guards().nested(nested);
        let begun = RetryMachine::new(self.policy.policy(&self.options), &mut self.state, self.seed).begin(
            permit,
            || clock.now(),
            &guards,
        );
        match begun {
            Ok(permit) => {
                self.permits = self.options.hold(permit, PermitStage::Attempting, nested);
                self.phase = Phase::Attempting;
                Ok(())
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                Err(stop)
            }
        }
    }

    /// Returns what this call may do, depending on whether an outer call is already retrying.
    #[inline]
    fn nested(&self) -> NestedRetries {
        if self.flags & NESTED == 0 { NestedRetries::Allow } else { self.options.nested() }
    }

    /// Records whether the admitted attempt has started; this decides how its permits are settled on drop.
    pub(crate) fn set_stage(&mut self, stage: PermitStage) {
        self.permits.set_stage(stage);
    }

    /// Returns the time limit of the attempt that has just begun.
    #[inline]
    pub(crate) fn time_limit(&mut self) -> Option<Duration> {
        let deadline = self.options.deadline();
        let retry = RetryMachine::new(self.policy.policy(&self.options), &mut self.state, self.seed).deadline(deadline);
        let last = if retry.is_last_attempt() { IsLast::Yes } else { IsLast::No };
        let clock = &self.clock;
        let left = retry.remaining(|| clock.now());
        let limit = match (left, self.options.timeout(last)) {
            (Some(left), Some(timeout)) => Some(left.min(timeout)),
            (left, timeout) => left.or(timeout),
        };
        // An attempt that is already too late is still made. The minimum is 1 ns: timers are never armed for zero, and
        // a socket treats a timeout of zero as none.
        limit.map(|limit| limit.max(Duration::from_nanos(1)))
    }

    /// Records that the attempt succeeded.
    #[inline]
    pub(crate) fn succeeded<E>(&mut self)
    where
        X: Sink<E>,
    {
        self.phase = Phase::Ended;
        let (permit, nested) = (self.permits.take(), self.nested());
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let decision = RetryMachine::new(self.policy.policy(&self.options), &mut self.state, self.seed).decide(
            Outcome::Success,
            permit,
            || clock.now(),
            &guards,
        );
        if X::LISTENS {
            self.emit::<E>(action(&decision), None);
        }
    }

    /// Records that the attempt failed, and decides what follows.
    #[inline]
    pub(crate) fn failed<E>(&mut self, outcome: Outcome, error: Option<&E>, resolution: Duration) -> Next
    where
        X: Sink<E>,
    {
        self.draw_seed();
        // An error is never a success, whatever the rule returned.
        let outcome = if matches!(outcome, Outcome::Success) { Outcome::Permanent } else { outcome };
        let (permit, nested) = (self.permits.take(), self.nested());
        let (clock, deadline) = (&self.clock, self.options.deadline());
        let guards = self.options.guards().nested(nested);
        let mut retry =
            RetryMachine::new(self.policy.policy(&self.options), &mut self.state, self.seed).deadline(deadline);
        let decision = retry.decide(outcome, permit, || clock.now(), &guards);
        let next = match &decision {
            Decision::Retry { .. } if testing::sleeps_are_skipped() => Next::Wait(Duration::ZERO),
            Decision::Retry { after, source, .. } => {
                let delay = retry.on_ticks(*after, *source, resolution);
                if *source == DelaySource::Hint && !delay.is_zero() {
                    self.set_not_before(*after);
                }
                Next::Wait(delay)
            }
            Decision::Stop(stop) => Next::Stop(*stop),
            // Not reachable for an error; treated like an outcome of success beside an error.
            _ => Next::Stop(StopReason::Permanent),
        };
        let action = action(&decision);
        self.phase = Phase::Ended;
        if let Decision::Retry { permit, .. } = decision {
            self.permits = self.options.hold(permit, PermitStage::Waiting, nested);
            self.phase = Phase::Due;
        }
        // Only after the permit is stored: the listener may panic.
        if X::LISTENS {
            self.emit(action, error);
        }
        next
    }

    /// Remembers the end of a wait that a hint asked for.
    #[cold]
    fn set_not_before(&mut self, wait: Duration) {
        self.not_before = NotBefore::after(wait, self.clock.now());
        self.flags |= HINTED;
    }

    /// Returns what is left, after the timer has fired, of a wait that a hint asked for. A timer may fire early; such a
    /// retry must not start early.
    #[inline]
    pub(crate) fn remaining_wait(&mut self) -> Option<Duration> {
        if self.flags & HINTED == 0 { None } else { self.hinted_wait() }
    }

    #[cold]
    fn hinted_wait(&mut self) -> Option<Duration> {
        let left = self.not_before.remaining(self.clock.now());
        if left.is_zero() {
            self.flags &= !HINTED;
            return None;
        }
        Some(left)
    }

    /// Returns whether the caller has cancelled. `is_ready` is not called again once it has returned true: it may poll a
    /// future.
    #[inline]
    pub(crate) fn is_cancelled(&mut self, is_ready: impl FnOnce() -> bool) -> bool {
        if self.flags & CANCELLED == 0 && is_ready() {
            self.flags |= CANCELLED;
        }
        self.flags & CANCELLED != 0
    }

    /// Ends a call that the caller cancelled, during a sleep or an attempt.
    #[cold]
    pub(crate) fn cancelled<M, T, E>(&mut self, last_error: &mut impl ErrorSlot<E>) -> Option<M::Output>
    where
        X: Sink<E>,
        M: Finish<T, E>,
    {
        self.abandon();
        if X::LISTENS {
            self.emit::<E>(Action::Stop(StopReason::Cancelled), None);
        }
        self.given_up::<M, T, E>(last_error, StopReason::Cancelled, Rejected::Cancelled)
    }

    /// Ends the call and settles the permits of an attempt that does not complete.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Ended;
        self.permits = X::Guard::EMPTY;
    }

    /// Emits the event of an attempt that the breaker rejected.
    #[cold]
    pub(crate) fn emit_rejection<E>(&mut self, stop: StopReason)
    where
        X: Sink<E>,
    {
        if X::LISTENS {
            self.emit::<E>(Action::Stop(stop), None);
        }
    }

    #[cold]
    fn emit<E>(&self, action: Action, error: Option<&E>)
    where
        X: Sink<E>,
    {
        if !self.options.is_listening() {
            return;
        }
        let event = Event {
            target: self.options.target(),
            attempt: self.attempt(),
            max_attempts: self.policy().max_attempts(),
            elapsed: self.elapsed(),
            budget_left: self.options.guards().budget.and_then(crate::Budget::available),
            action,
            error: None,
        };
        self.options.emit(event, error);
    }

    /// Ends the call, with its result.
    #[inline]
    pub(crate) fn end<T, E, R>(&mut self, result: Result<T, (StopReason, Ending<E, R>)>) -> End<T, E, R> {
        self.phase = Phase::Ended;
        End { result, attempts: self.attempt(), elapsed: self.elapsed() }
    }

    /// Ends a call that was stopped from outside, with the last error if there was one, or else with the rejection.
    /// Returns `None` for a plain call, which has no guards, limits or cancellation, so nothing can reject it.
    #[cold]
    pub(crate) fn given_up<M, T, E>(
        &mut self,
        last_error: &mut impl ErrorSlot<E>,
        stop: StopReason,
        reason: Rejected,
    ) -> Option<M::Output>
    where
        M: Finish<T, E>,
    {
        let ending = match last_error.take() {
            Some(error) => Ending::Failed(error),
            None => Ending::Rejected(M::rejection(reason)?),
        };
        Some(M::finish(self.end(Err((stop, ending)))))
    }

    /// Returns how long the breaker that has just rejected an attempt stays open.
    #[cold]
    pub(crate) fn breaker_open(&self) -> BreakerOpen {
        let retry_in =
            self.options.guards().breaker.map_or(Duration::ZERO, |breaker| breaker.retry_in(&self.clock.now()));
        BreakerOpen { retry_in }
    }

    #[inline]
    pub(crate) fn into_parts(self) -> (P, C, X) {
        (self.policy, self.clock, self.options)
    }

    /// Returns the number of the current or latest attempt, counted from 1; 0 before the first.
    #[inline]
    pub(crate) const fn attempt(&self) -> u32 {
        self.state.attempt()
    }

    /// Returns the time since the start of the call; zero if no option needs it.
    #[inline]
    pub(crate) fn elapsed(&self) -> Duration {
        if !X::TIMED {
            return Duration::ZERO;
        }
        self.state.start().map_or(Duration::ZERO, |start| self.clock.now().saturating_since(start))
    }

    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        self.policy.policy(&self.options)
    }

    #[inline]
    fn draw_seed(&mut self) {
        if self.flags & SEEDED == 0 {
            self.seed = self.options.seed();
            self.flags |= SEEDED;
        }
    }
}

const fn action(decision: &Decision) -> Action {
    match decision {
        Decision::Done => Action::Done,
        Decision::Retry { after, source, .. } => Action::Retry { after: *after, source: *source },
        Decision::Stop(stop) => Action::Stop(*stop),
        _ => Action::Stop(StopReason::Permanent),
    }
}

impl<E, S: Sink<E>, G, L, Y, M> Sink<E> for Setup<S, G, L, Y, M> {
    fn target(&self) -> &str {
        self.sink.target()
    }

    fn is_listening(&self) -> bool {
        self.sink.is_listening()
    }

    fn emit(&self, event: Event<'_>, error: Option<&E>) {
        self.sink.emit(event, error);
    }
}

impl<S: Listening, G, L, Y, M> Listening for Setup<S, G, L, Y, M> {
    const LISTENS: bool = S::LISTENS;
}

/// The attempt that an operation is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// The policy's limit on attempts, if there is one.
    pub max: Option<core::num::NonZeroU32>,
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

    /// Creates the first attempt of a plain call.
    #[inline]
    pub(crate) const fn first(policy: &Policy) -> Self {
        Self { number: 1, max: policy.max_attempts(), time_limit: None }
    }

    pub(crate) fn of<P, C, X>(call: &Call<P, C, X>, time_limit: Option<Duration>) -> Self
    where
        P: PolicySource<X>,
        C: Clock,
        X: CallOptions,
    {
        Self { number: call.attempt(), max: call.policy().max_attempts(), time_limit }
    }
}
