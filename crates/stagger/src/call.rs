//! The decisions of one call. Every driver, blocking or async, goes through here; a driver only waits and polls.

use core::time::Duration;

use crate::error::Rejected;
use crate::event::{Action, Event, Sink};
use crate::own::Terms;
use crate::scope;
use crate::setup::{End, Ending, Extras, Finish, Hold, IsLast, Keep, Listening, Setup, Stage};
use crate::until::Until;
use crate::{
    BreakerOpen, DelaySource, NestedRetries, Outcome, Policy, Seed, StopReason, machine::Decision,
    machine::RetryMachine, machine::RetryState, testing, time::Clock,
};

/// One call: what it remembers, what it brings along, and what it has borrowed from its guards.
///
/// Dropping it, at any point, gives back what is to be given back: whatever holds a permit sees to it.
#[derive(Debug)]
pub(crate) struct Call<P, C: Clock, X: Extras> {
    policy: P,
    pub(crate) clock: C,
    pub(crate) extras: X,
    state: RetryState,
    /// Drawn at the first failure, or for the spread: a call that succeeds needs none.
    seed: Seed,
    held: X::Held,
    /// If `HELD`.
    until: Until,
    pub(crate) phase: Phase,
    flags: u8,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Nothing has happened.
    Fresh,
    /// A timer runs; the next attempt begins when it wakes up.
    Sleeping,
    /// The next attempt begins now.
    Due,
    /// An attempt is being made.
    Attempting,
    /// The same, while a timer runs that limits it.
    Timed,
    /// Nothing more will happen.
    Ended,
}

const SEEDED: u8 = 1;
/// An outer layer is at work.
const INSIDE: u8 = 2;
/// The caller has cancelled.
const CANCELLED: u8 = 4;
/// A hint has set `until` for the wait that has been asked for; [`left`](Call::left) takes it back.
const HELD: u8 = 8;

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Ask this of the timer; zero is for no timer at all. Afterwards, see what is [`left`](Call::left).
    Wait(Duration),
    Stop(StopReason),
}

impl<P: Terms<X>, C: Clock, X: Extras> Call<P, C, X> {
    #[inline]
    pub(crate) const fn new(policy: P, clock: C, extras: X) -> Self {
        Self {
            policy,
            clock,
            extras,
            state: RetryState::new(),
            seed: Seed::new(0),
            held: X::Held::EMPTY,
            until: Until::UNSET,
            phase: Phase::Fresh,
            flags: 0,
        }
    }

    /// Back to before the beginning, for a call that begins anew.
    pub(crate) fn restart(&mut self) {
        self.held = X::Held::EMPTY;
        self.state = RetryState::new();
        self.flags = 0;
        self.phase = Phase::Fresh;
    }

    /// The beginning: reads how deep it is, and the clock if anybody will ask, and says how long to wait before the
    /// first attempt.
    #[inline]
    pub(crate) fn start(&mut self, resolution: Duration) -> Duration {
        if scope::depth() > 0 {
            self.flags |= INSIDE;
        }
        if X::TIMED && self.extras.is_timed() {
            self.state = RetryState::started(self.clock.now());
        }
        self.phase = Phase::Due;
        if self.policy().spread().is_zero() { Duration::ZERO } else { self.spread(resolution) }
    }

    /// Whether the first attempt can be made before the call has any state: nothing is asked, nothing is told, and a
    /// success leaves no trace. What is left of the beginning is made up for by [`first_ended`](Self::first_ended).
    #[inline]
    pub(crate) fn begins_at_once(&self) -> bool {
        self.extras.is_plain() && self.policy().starts_immediately()
    }

    /// The first attempt was made without a beginning, and is not over, or has failed.
    pub(crate) fn first_ended(&mut self, is_inside: bool) {
        if is_inside {
            self.flags |= INSIDE;
        }
        // Nobody is there to refuse.
        let _ = self.begin();
    }

    /// The end of a call that succeeded at the first attempt, before it had any state.
    #[inline]
    pub(crate) const fn end_at_once<T, E, R>(value: T) -> End<T, E, R> {
        End { result: Ok(value), attempts: 1, elapsed: Duration::ZERO }
    }

    #[cold]
    fn spread(&mut self, resolution: Duration) -> Duration {
        self.draw_seed();
        let clock = &self.clock;
        let mut retry = RetryMachine::new(self.policy.policy(&self.extras), &mut self.state, self.seed)
            .deadline(self.extras.deadline());
        let after = retry.spread(|| clock.now());
        if testing::sleeps_are_skipped() {
            return Duration::ZERO;
        }
        retry.on_ticks(after, DelaySource::Spread, resolution)
    }

    /// Before every attempt.
    #[inline]
    pub(crate) fn begin(&mut self) -> Result<(), StopReason> {
        let nested = self.nested();
        let (clock, permit) = (&self.clock, self.held.take());
        let guards = self.extras.guards().nested(nested);
        let begun = RetryMachine::new(self.policy.policy(&self.extras), &mut self.state, self.seed).begin(
            permit,
            || clock.now(),
            &guards,
        );
        match begun {
            Ok(permit) => {
                self.held = self.extras.hold(permit, Stage::Attempting, nested);
                self.phase = Phase::Attempting;
                Ok(())
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                Err(stop)
            }
        }
    }

    /// Whether an outer layer is already retrying, and what this call does about it.
    #[inline]
    fn nested(&self) -> NestedRetries {
        if self.flags & INSIDE == 0 { NestedRetries::Allow } else { self.extras.nested() }
    }

    /// The attempt that was let in is left to the caller, who may not make it; or is made now.
    pub(crate) fn stands_at(&mut self, stage: Stage) {
        self.held.stands_at(stage);
    }

    /// How long the attempt that has just begun may take.
    #[inline]
    pub(crate) fn time_limit(&mut self) -> Option<Duration> {
        let deadline = self.extras.deadline();
        let retry = RetryMachine::new(self.policy.policy(&self.extras), &mut self.state, self.seed).deadline(deadline);
        let last = if retry.is_last_attempt() { IsLast::Yes } else { IsLast::No };
        let clock = &self.clock;
        let left = retry.remaining(|| clock.now());
        let limit = match (left, self.extras.timeout(last)) {
            (Some(left), Some(timeout)) => Some(left.min(timeout)),
            (left, timeout) => left.or(timeout),
        };
        // An attempt that is too late already is made all the same. No timer is asked for zero, and a socket takes a
        // timeout of zero for none.
        limit.map(|limit| limit.max(Duration::from_nanos(1)))
    }

    /// The attempt succeeded.
    #[inline]
    pub(crate) fn succeeded<E>(&mut self)
    where
        X: Sink<E>,
    {
        self.phase = Phase::Ended;
        let (permit, nested) = (self.held.take(), self.nested());
        let clock = &self.clock;
        let guards = self.extras.guards().nested(nested);
        let decision = RetryMachine::new(self.policy.policy(&self.extras), &mut self.state, self.seed).decide(
            Outcome::Success,
            permit,
            || clock.now(),
            &guards,
        );
        if X::LISTENS {
            self.emit::<E>(action(&decision), None);
        }
    }

    /// The attempt failed: what now?
    #[inline]
    pub(crate) fn failed<E>(&mut self, outcome: Outcome, error: Option<&E>, resolution: Duration) -> Next
    where
        X: Sink<E>,
    {
        self.draw_seed();
        // There is an error, whatever somebody's rule says, and nothing to repeat.
        let outcome = if matches!(outcome, Outcome::Success) { Outcome::Permanent } else { outcome };
        let (permit, nested) = (self.held.take(), self.nested());
        let (clock, deadline) = (&self.clock, self.extras.deadline());
        let guards = self.extras.guards().nested(nested);
        let mut retry =
            RetryMachine::new(self.policy.policy(&self.extras), &mut self.state, self.seed).deadline(deadline);
        let decision = retry.decide(outcome, permit, || clock.now(), &guards);
        let next = match &decision {
            Decision::Retry { .. } if testing::sleeps_are_skipped() => Next::Wait(Duration::ZERO),
            Decision::Retry { after, source, .. } => {
                let ask = retry.on_ticks(*after, *source, resolution);
                if *source == DelaySource::Hint && !ask.is_zero() {
                    self.hold_for(*after);
                }
                Next::Wait(ask)
            }
            Decision::Stop(stop) => Next::Stop(*stop),
            // An outcome of success with an error beside it: somebody's rule says so, and there is nothing to repeat.
            _ => Next::Stop(StopReason::Permanent),
        };
        let told = action(&decision);
        self.phase = Phase::Ended;
        if let Decision::Retry { permit, .. } = decision {
            self.held = self.extras.hold(permit, Stage::Waiting, nested);
            self.phase = Phase::Due;
        }
        // After the permit is in safe hands: whoever is told may panic.
        if X::LISTENS {
            self.emit(told, error);
        }
        next
    }

    /// A hint has asked for this wait.
    #[cold]
    fn hold_for(&mut self, wait: Duration) {
        self.until = Until::after(wait, self.clock.now());
        self.flags |= HELD;
    }

    /// The timer has woken up: what is left of a wait that a hint asked for? Timers may be early, a retry may not.
    #[inline]
    pub(crate) fn left(&mut self) -> Option<Duration> {
        if self.flags & HELD == 0 { None } else { self.held_for() }
    }

    #[cold]
    fn held_for(&mut self) -> Option<Duration> {
        let left = self.until.left(self.clock.now());
        if left.is_zero() {
            self.flags &= !HELD;
            return None;
        }
        Some(left)
    }

    /// Whether the caller has cancelled. What says so is not asked again: a future must not be.
    #[inline]
    pub(crate) fn is_cancelled(&mut self, ask: impl FnOnce() -> bool) -> bool {
        if self.flags & CANCELLED == 0 && ask() {
            self.flags |= CANCELLED;
        }
        self.flags & CANCELLED != 0
    }

    /// The end of a call that the caller cancelled, in a sleep or in an attempt.
    #[cold]
    pub(crate) fn cancelled<M, T, E>(&mut self, kept: &mut impl Keep<E>) -> Option<M::Output>
    where
        X: Sink<E>,
        M: Finish<T, E>,
    {
        self.let_go();
        if X::LISTENS {
            self.emit::<E>(Action::Stop(StopReason::Cancelled), None);
        }
        self.given_up::<M, T, E>(kept, StopReason::Cancelled, Rejected::Cancelled)
    }

    /// Settles what was borrowed for an attempt that is not brought to its end; nothing more happens.
    pub(crate) fn let_go(&mut self) {
        self.phase = Phase::Ended;
        self.held = X::Held::EMPTY;
    }

    /// The breaker refused to let an attempt begin.
    #[cold]
    pub(crate) fn refused<E>(&mut self, stop: StopReason)
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
        if !self.extras.is_listening() {
            return;
        }
        let event = Event {
            target: self.extras.target(),
            attempt: self.attempt(),
            max_attempts: self.policy().max_attempts(),
            elapsed: self.elapsed(),
            budget_left: self.extras.guards().budget.and_then(crate::Budget::available),
            action,
            error: None,
        };
        self.extras.emit(event, error);
    }

    /// The end of the call, for whoever tells the caller.
    #[inline]
    pub(crate) fn end<T, E, R>(&mut self, result: Result<T, (StopReason, Ending<E, R>)>) -> End<T, E, R> {
        self.phase = Phase::Ended;
        End { result, attempts: self.attempt(), elapsed: self.elapsed() }
    }

    /// The end of a call that was stopped from outside: with the last error, if there was one, or with the refusal.
    /// `None` for a bare call, which has neither guards nor limits nor a way to be cancelled: nothing refuses it.
    #[cold]
    pub(crate) fn given_up<M, T, E>(
        &mut self,
        kept: &mut impl Keep<E>,
        stop: StopReason,
        why: Rejected,
    ) -> Option<M::Output>
    where
        M: Finish<T, E>,
    {
        let ending = match kept.take() {
            Some(error) => Ending::Failed(error),
            None => Ending::Refused(M::refusal(why)?),
        };
        Some(M::finish(self.end(Err((stop, ending)))))
    }

    /// How long the breaker that has just refused stays open.
    #[cold]
    pub(crate) fn breaker_open(&self) -> BreakerOpen {
        let retry_in =
            self.extras.guards().breaker.map_or(Duration::ZERO, |breaker| breaker.retry_in(&self.clock.now()));
        BreakerOpen { retry_in }
    }

    #[inline]
    pub(crate) fn into_parts(self) -> (P, C, X) {
        (self.policy, self.clock, self.extras)
    }

    /// The attempt that is being made, or was made last, counted from 1; 0 before the first.
    #[inline]
    pub(crate) const fn attempt(&self) -> u32 {
        self.state.attempt()
    }

    /// The time since the start of the call; zero if nobody had asked for it.
    #[inline]
    pub(crate) fn elapsed(&self) -> Duration {
        if !X::TIMED {
            return Duration::ZERO;
        }
        self.state.start().map_or(Duration::ZERO, |start| self.clock.now().saturating_since(start))
    }

    #[inline]
    pub(crate) fn policy(&self) -> &Policy {
        self.policy.policy(&self.extras)
    }

    #[inline]
    fn draw_seed(&mut self) {
        if self.flags & SEEDED == 0 {
            self.seed = self.extras.seed();
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

/// What an operation is told about the attempt that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Its number, from 1.
    pub number: u32,
    /// The policy's limit of attempts, if there is one.
    pub max: Option<core::num::NonZeroU32>,
    /// How long it may take: what is left until the deadline, and at most the timeout; never zero. `None` if there is
    /// no limit.
    ///
    /// An async attempt is dropped when it is over. A blocking one is told, and nothing else: pass it on to what it
    /// calls.
    pub time_limit: Option<Duration>,
}

impl Attempt {
    /// Whether no other follows it if it fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.max.is_some_and(|max| self.number >= max.get())
    }

    /// The first one, of a call that brings nothing along.
    #[inline]
    pub(crate) const fn first(policy: &Policy) -> Self {
        Self { number: 1, max: policy.max_attempts(), time_limit: None }
    }

    pub(crate) fn of<P, C, X>(call: &Call<P, C, X>, time_limit: Option<Duration>) -> Self
    where
        P: Terms<X>,
        C: Clock,
        X: Extras,
    {
        Self { number: call.attempt(), max: call.policy().max_attempts(), time_limit }
    }
}
