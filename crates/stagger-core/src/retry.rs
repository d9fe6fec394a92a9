use core::num::NonZeroU32;
use core::time::Duration;

use crate::guard::{Now, Permits, Unread};
use crate::instant::nanos;
use crate::jitter::draw_nanos;
use crate::outcome::FailureKind;
use crate::schedule::{Drawn, Interval};
use crate::seed::Purpose;
use crate::state::{AHEAD, BEGUN, DECIDED, REPEATED, REPEATS, RetryState, TIMED};
use crate::{DelaySource, Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason, machine::Decision};

/// Whether a connection that was lost had lived long enough to count as healthy. There is nothing in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It had: an episode begins.
    Stable,
    /// It had not: the backoff goes on.
    Flapping,
}

/// The decision: a view over the shared policy, the state of one call, and its seed.
///
/// Whoever drives it, in blocking or async code, in a server or in a simulation, does the same:
///
/// 1. [`spread`](Self::spread), and wait for what it says (nothing, unless the policy has a spread);
/// 2. [`begin`](Self::begin); if it refuses, stop;
/// 3. make the attempt, for at most [`remaining`](Self::remaining);
/// 4. [`decide`](Self::decide); if it says `Retry`, wait, and go to 2.
///
/// # The order inside `decide`
///
/// Refusals without a side effect come first, the only charge comes last, so a refusal never has to be undone.
///
/// | step | question | if so |
/// |--:|---|---|
/// | 1 | tell the breaker and the budget what happened | by its [verdict](Outcome::verdict) |
/// | 2 | success? | `Done` |
/// | 3 | permanent, not to be done twice, or cancelled? | `Stop(Permanent)`, `Stop(UnsafeToRetry)`, `Stop(Cancelled)` |
/// | 4 | certainly not processed, and not yet repeated in this call? | `Retry` at once, the same attempt number, with the permit it had, if the limit of time and the breaker allow it now |
/// | 5 | attempts used up, or the schedule ended? | `Stop(Attempts)`, `Stop(Exhausted)` |
/// | 6 | is an outer layer already retrying? | `Stop(NestedRetries)` |
/// | 7 | hint `DoNotRetry`, or larger than `max_hint`? | `Stop(Hint)` |
/// | 8 | draw the delay, with the hint if there is one | the schedule advances |
/// | 9 | would the retry start after the limit (`elapsed + delay > max_elapsed`), or at the deadline or later? | `Stop(Elapsed)`, without sleeping |
/// | 10 | would the breaker refuse it then? | `Stop(Breaker)` |
/// | 11 | does the budget refuse to pay? | `Stop(Budget)` |
/// | 12 | | `Retry` |
///
/// The clock is read at most once in each of `begin` and `decide`, and only if a limit or a guard asks for the time.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{machine::Decision, Guards, Instant, Outcome, guard::Permits, Policy, machine::RetryMachine, Seed, machine::RetryState, StopReason};
///
/// let policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(1)).max_attempts(2).build()?;
/// let mut state = RetryState::new();
/// let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
/// let (guards, now) = (Guards::none(), || Instant::ZERO);
///
/// let permit = retry.begin(Permits::NONE, now, &guards).expect("no breaker");
/// let Decision::Retry { after, permit, .. } = retry.decide(Outcome::TRANSIENT, permit, now, &guards) else { panic!() };
/// assert!(after <= Duration::from_millis(100));
///
/// let permit = retry.begin(permit, now, &guards).expect("no breaker");
/// assert_eq!(retry.decide(Outcome::TRANSIENT, permit, now, &guards), Decision::Stop(StopReason::Attempts));
/// # Ok::<(), stagger_core::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct RetryMachine<'a> {
    policy: &'a Policy,
    state: &'a mut RetryState,
    seed: Seed,
    deadline: Option<Instant>,
}

impl<'a> RetryMachine<'a> {
    /// A view over the state of a call. It can be made anew for every step: nothing is kept in it.
    #[inline]
    pub const fn new(policy: &'a Policy, state: &'a mut RetryState, seed: Seed) -> Self {
        Self { policy, state, seed, deadline: None }
    }

    /// A point in time at which the call ends: no retry starts at it or later, and no attempt has longer.
    #[inline]
    #[must_use]
    pub const fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// The wait before the first attempt: uniform on `[0, spread]`, and not past the deadline. It counts in elapsed: a
    /// limit of time runs from here.
    #[inline]
    pub fn spread(&mut self, now: impl FnOnce() -> Instant) -> Duration {
        if self.policy.spread().is_zero() {
            return Duration::ZERO;
        }
        let now = Unread::new(now);
        self.start_clock(&now);
        let spread = self
            .deadline
            .map_or(self.policy.spread(), |deadline| deadline.saturating_since(now.now()).min(self.policy.spread()));
        self.uniform(spread)
    }

    /// Before every attempt: may it start now? `permit` is what the last decision gave, [`Permits::NONE`] at first.
    ///
    /// # Errors
    /// [`StopReason::Breaker`] if the breaker refuses. The permit has then been given back, and, at the first attempt,
    /// nothing was called.
    #[inline]
    pub fn begin(
        &mut self,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Result<Permits, StopReason> {
        let now = Unread::new(now);
        self.start_clock(&now);
        let mut permit = permit;
        if let Some(breaker) = guards.breaker {
            match breaker.admit(&now) {
                Ok(given) => permit.breaker = given,
                Err(_) => {
                    guards.release(permit);
                    return Err(StopReason::Breaker);
                }
            }
        }
        if self.state.flags & DECIDED == 0 {
            permit.budget = guards.on_first_attempt(&now);
        }
        // The one immediate repeat does not count.
        self.state.attempt = self.state.attempt.saturating_add(u32::from(self.state.flags & REPEATS == 0));
        self.state.flags &= !(REPEATS | DECIDED);
        Ok(permit)
    }

    /// For a retry that was granted, whose permit was given back, and that shall be made after all: one that was
    /// [paused](crate::machine::Paused). The budget pays for it as after a transient failure. A first attempt and the one
    /// immediate repeat cost nothing, as ever. Next is [`begin`](Self::begin), when its time has come.
    ///
    /// # Errors
    /// [`StopReason::Budget`] if the budget refuses to pay; nothing has changed then.
    pub fn borrow_again(&self, now: impl FnOnce() -> Instant, guards: &Guards<'_>) -> Result<Permits, StopReason> {
        let mut permit = Permits::NONE;
        if let (Some(budget), DECIDED) = (guards.budget, self.state.flags & (DECIDED | REPEATS)) {
            permit.budget = budget.try_acquire(FailureKind::Transient, &Unread::new(now)).ok_or(StopReason::Budget)?;
        }
        Ok(permit)
    }

    /// After every attempt: what now? See [above](Self#the-order-inside-decide).
    #[inline]
    pub fn decide(
        &mut self,
        outcome: Outcome,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Decision {
        // Compiled twice: for a call without guards nothing is left of them.
        if guards.is_unguarded() {
            self.answer(outcome, permit, now, &Guards::none().nested(guards.nested))
        } else {
            self.answer(outcome, permit, now, guards)
        }
    }

    /// [`decide`](Self::decide) for a call without guards, compiled into its caller: for those who make millions of decisions
    /// a second, as a simulation does.
    #[inline(always)]
    pub fn decide_unguarded(&mut self, outcome: Outcome, now: impl FnOnce() -> Instant) -> Decision {
        self.answer(outcome, Permits::NONE, now, &Guards::none())
    }

    #[inline(always)]
    fn answer(
        &mut self,
        outcome: Outcome,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Decision {
        let now = Unread::new(now);
        // Step 4 keeps the permit that step 1 would settle, so its question is asked first; it has no side effect.
        if matches!(outcome, Outcome::NotProcessed) && self.may_repeat(&now, guards) {
            return self.repeat(permit, &now, guards);
        }
        guards.record(permit, &outcome, &now);
        match passing(outcome) {
            Ok((kind, hint)) => self.again(kind, hint, None, &now, guards),
            Err(decision) => decision,
        }
    }

    /// A connection that had been opened was lost: what [`ReconnectMachine`](crate::machine::ReconnectMachine) does, for those who keep no more
    /// than a [`RetryState`] for each of many connections. Next is [`begin`](Self::begin), as after [`decide`](Self::decide).
    ///
    /// If it was healthy, an episode begins: the first wait is the policy's spread, and the schedule begins with the
    /// first failure after it; without a spread the loss itself is the schedule's first failure. Otherwise the loss is
    /// one more failure of the attempt that opened it. The guards know of that attempt's success already.
    pub fn lost(
        &mut self,
        health: Health,
        outcome: Outcome,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Decision {
        let now = Unread::new(now);
        // A connection that ended as it should is wanted again all the same.
        let outcome = if outcome == Outcome::Success { Outcome::TRANSIENT } else { outcome };
        let (kind, hint) = match passing(outcome) {
            Ok(failure) => failure,
            Err(decision) => return decision,
        };
        let mut spread = None;
        if health == Health::Stable {
            self.state.begin_episode();
            self.start_clock(&now);
            match self.policy.spread() {
                Duration::ZERO => self.state.flags |= AHEAD,
                longest => spread = Some(longest),
            }
        }
        self.again(kind, hint, spread, &now, guards)
    }

    /// Starts the count of attempts and the schedule again if what ended had lived at least `stable_after`; draws go
    /// on with new numbers. Says whether it did.
    #[inline]
    pub fn reset_if_healthy(&mut self, lived: Duration) -> bool {
        let healthy = self.policy.stable_after().is_some_and(|enough| lived >= enough);
        if healthy {
            self.reset();
        }
        healthy
    }

    /// Starts the count of attempts and the schedule again, not the clock, before the decision about what just ended:
    /// that is the first failure of the schedule. Draws go on with new numbers.
    pub const fn reset(&mut self) {
        self.state.reset();
    }

    /// How long the attempt that is about to be made may take: what is left until the deadline. `None` if there is no
    /// deadline. `max_elapsed` is not one: it interrupts nothing.
    #[inline]
    #[must_use]
    pub fn remaining(&self, now: impl FnOnce() -> Instant) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_since(now()))
    }

    /// Whether the attempt that is being made is the last that `max_attempts` allows.
    #[inline]
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.policy.max_attempts().is_some_and(|most| self.state.attempt >= most.get())
    }

    /// The attempt that is being made, or was made last, counted from 1; 0 before the first.
    #[inline]
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.state.attempt
    }

    /// The number of the coming retry in the schedule, from 1; 0 before the first attempt. It is the number of the
    /// attempt, or one more if the schedule began with what a healthy attempt or a lost connection ended in.
    #[inline]
    #[must_use]
    pub const fn retry_number(&self) -> u32 {
        self.state.retry_number()
    }

    /// The limit of attempts, if there is one.
    #[inline]
    #[must_use]
    pub const fn max_attempts(&self) -> Option<NonZeroU32> {
        self.policy.max_attempts()
    }

    /// The time since the start of the call; `None` if nobody had asked for it.
    #[inline]
    #[must_use]
    pub fn elapsed(&self, now: Instant) -> Option<Duration> {
        self.state.start().map(|start| now.saturating_since(start))
    }

    /// What to ask of a timer that wakes up only at multiples of `resolution`, for this wait.
    ///
    /// A hint is kept as it is, since a timer never wakes up early. Any other delay is put on one of the two
    /// neighbouring ticks, with the probability that keeps the mean: 200 µs on a timer of 1 ms are no wait at all four
    /// times in five and one tick otherwise, where the timer alone would make it one or two ticks every time. The
    /// length that is returned lies just after the beginning of the last tick, since the timer wakes up at its end.
    /// Zero is for no timer at all.
    #[inline]
    #[must_use]
    pub fn on_ticks(&self, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
        let tick = nanos(resolution);
        if tick <= 1 || after.is_zero() || source == DelaySource::Hint {
            return after;
        }
        let after = nanos(after);
        let up = draw_nanos(0, tick - 1, self.bits(Purpose::Dither)) < after % tick;
        match after / tick + u64::from(up) {
            0 => Duration::ZERO,
            ticks => Duration::from_nanos((ticks - 1) * tick + 1),
        }
    }

    /// Reads the clock at the beginning, for the limit of time that needs it.
    #[inline]
    fn start_clock(&mut self, now: &impl Now) {
        if self.policy.max_elapsed().is_some() && self.state.flags & TIMED == 0 {
            self.state.start = now.now();
            self.state.flags |= TIMED;
        }
    }

    /// Step 4, the question.
    #[cold]
    fn may_repeat(&self, now: &dyn Now, guards: &Guards<'_>) -> bool {
        self.state.flags & REPEATED == 0
            && !self.is_too_late(Duration::ZERO, now)
            && !guards.breaker.is_some_and(|breaker| breaker.would_reject(Duration::ZERO, now))
    }

    /// Step 4, the answer.
    #[cold]
    fn repeat(&mut self, mut permit: Permits, now: &dyn Now, guards: &Guards<'_>) -> Decision {
        if let Some(breaker) = guards.breaker {
            let pass = core::mem::replace(&mut permit.breaker, crate::guard::BreakerPermit::NONE);
            breaker.record(pass, &Outcome::NotProcessed, now);
        }
        self.state.flags |= REPEATED | REPEATS | DECIDED;
        Decision::Retry { after: Duration::ZERO, source: DelaySource::Transparent, permit }
    }

    /// Steps 5 to 12. With `spread`, that is what the delay is drawn from, and the schedule does not begin.
    #[inline(always)]
    fn again(
        &mut self,
        kind: FailureKind,
        hint: Option<ServerHint>,
        spread: Option<Duration>,
        now: &impl Now,
        guards: &Guards<'_>,
    ) -> Decision {
        if self.is_last_attempt() {
            return Decision::Stop(StopReason::Attempts);
        }
        let carry = if self.state.flags & BEGUN == 0 { self.policy.curve.first } else { self.state.carry };
        let drawn = match spread {
            None => self.policy.next_delay(carry, self.state.retry_number(), kind, self.bits(Purpose::Delay)),
            Some(spread) => {
                let interval = Interval { lo: 0, hi: nanos(spread) };
                Some(Drawn { delay: nanos(self.uniform(spread)), interval, carry })
            }
        };
        // Nothing has changed yet: the schedule advances with step 8.
        let Some(Drawn { delay: drawn, interval, carry }) = drawn else { return Decision::Stop(StopReason::Exhausted) };
        if guards.stand_down() {
            return Decision::Stop(StopReason::Nested);
        }
        if hint.is_some_and(|hint| self.is_refused(hint)) {
            return Decision::Stop(StopReason::Hint);
        }
        if spread.is_none() {
            self.state.carry = carry;
            self.state.flags |= BEGUN;
        }
        let (after, source) = match hint {
            Some(hint) => (self.policy.hinted(hint, interval.hi, drawn, self.bits(Purpose::Hint)), DelaySource::Hint),
            None if spread.is_some() => (drawn, DelaySource::Spread),
            None => (drawn, DelaySource::Schedule),
        };
        let after = Duration::from_nanos(after);
        if self.is_too_late(after, now) {
            return Decision::Stop(StopReason::Elapsed);
        }
        if guards.breaker.is_some_and(|breaker| breaker.would_reject(after, now)) {
            return Decision::Stop(StopReason::Breaker);
        }
        let mut permit = Permits::NONE;
        if let Some(budget) = guards.budget {
            match budget.try_acquire(kind, now) {
                Some(loan) => permit.budget = loan,
                None => return Decision::Stop(StopReason::Budget),
            }
        }
        self.state.flags |= DECIDED;
        Decision::Retry { after, source, permit }
    }

    /// Step 7.
    #[cold]
    fn is_refused(&self, hint: ServerHint) -> bool {
        match hint {
            ServerHint::DoNotRetry => true,
            ServerHint::AtLeast(asked) | ServerHint::Reserved(asked) => {
                self.policy.max_hint().is_some_and(|longest| asked > longest)
            }
        }
    }

    /// Whether an attempt that starts `after` from now would start too late.
    #[inline]
    fn is_too_late(&self, after: Duration, now: &(impl Now + ?Sized)) -> bool {
        let past_limit = match (self.policy.max_elapsed(), self.state.start()) {
            (Some(limit), Some(start)) => now.now().saturating_add(after).saturating_since(start) > limit,
            _ => false,
        };
        past_limit || self.deadline.is_some_and(|deadline| now.now().saturating_add(after) >= deadline)
    }

    #[inline]
    fn uniform(&self, spread: Duration) -> Duration {
        Duration::from_nanos(draw_nanos(
            0,
            nanos(spread),
            self.seed.bits(u32::from(self.state.episode), 0, Purpose::Spread),
        ))
    }

    #[inline]
    fn bits(&self, purpose: Purpose) -> u64 {
        self.seed.bits(u32::from(self.state.episode), self.state.retry_number(), purpose)
    }
}

/// Steps 2 and 3: what may pass, or the decision.
#[inline(always)]
fn passing(outcome: Outcome) -> Result<(FailureKind, Option<ServerHint>), Decision> {
    match outcome {
        Outcome::Failed { kind, hint } => Ok((kind, hint)),
        Outcome::NotProcessed => Ok((FailureKind::Transient, None)),
        Outcome::Success => Err(Decision::Done),
        Outcome::Permanent => Err(Decision::Stop(StopReason::Permanent)),
        Outcome::UnsafeToRetry(_) => Err(Decision::Stop(StopReason::UnsafeToRetry)),
        Outcome::Cancelled => Err(Decision::Stop(StopReason::Cancelled)),
    }
}
