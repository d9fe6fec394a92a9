//! The machine that decides about the attempts of one call.

use core::num::NonZeroU32;
use core::ops::Deref;
use core::time::Duration;

use super::decision::{Decision, DelaySource, StopReason};
use super::state::{AHEAD, BEGUN, DECIDED, IN_FLIGHT, REPEATED, REPEATS, RetryState, SHORTENED, SHORTENED_ONCE};
use super::strategy::{RetryContext, Strategy};
use crate::guards::guard::{Guard, Guards, NestedRetries, Permits};
use crate::guards::now::{Now, Unread};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::{Purpose, Seed};
use crate::outcome::{FailureKind, Outcome, ServerHint};
use crate::policy::{Drawn, Interval, Policy};
use crate::schedule::draw_spread;

/// Decides about the attempts of one call: a view of the shared policy, the state of the call, and its seed.
///
/// Every driver, blocking or async, in a server or in a simulation, does the same:
///
/// 1. Call [`spread`](Self::spread) and wait for the duration that it returns, which is zero unless the policy has a
///    spread.
/// 2. Call [`turn`](Self::turn) until it returns zero, waiting for the durations that it returns before. It is zero at
///    once unless a guard lets attempts wait, as a quiet period and a pacer do. Then call [`begin`](Self::begin). If
///    either returns an error, stop.
/// 3. Make the attempt, for at most [`remaining`](Self::remaining).
/// 4. Call [`decide`](Self::decide). If it returns `Retry`, wait, and go to step 2.
///
/// # The order inside `decide`
///
/// Questions without a side effect come first and the reservations last, so a rejection has nothing to undo but the
/// reservations of the guards before.
///
/// | step | question | if so |
/// |--:|---|---|
/// | 1 | report the outcome to the guards | each settles its permit |
/// | 2 | success? | `Done` |
/// | 3 | permanent, unsafe to retry, or cancelled? | `Stop(Permanent)`, `Stop(UnsafeToRetry)`, `Stop(Cancelled)` |
/// | 4 | certainly not processed, and not yet repeated in this call? | `Retry` at once, if the limits allow it now |
/// | 5 | attempts used up, or the schedule ended? | `Stop(Attempts)`, `Stop(Exhausted)` |
/// | 6 | is an outer layer already retrying? | `Stop(Nested)` |
/// | 7 | hint `DoNotRetry`, or longer than `max_hint`? | `Stop(Hint)` |
/// | 8 | draw the delay, by the policy or the strategy, with the hint if there is one | the schedule advances |
/// | 9 | would the retry start at the deadline or later, or after `max_elapsed`? | `Stop(Deadline)`, `Stop(Elapsed)` |
/// | 10 | would a guard certainly reject it then? | `Stop(Guard(..))` |
/// | 11 | has a guard no retry left to reserve? | `Stop(Guard(..))` |
/// | 12 | | `Retry` |
///
/// Step 4 asks the deadline, `max_elapsed`, and the guards as step 10 does. It takes the place of step 1: the repeat
/// has the same attempt number and permits, and the guards are told of neither it nor the attempt before. In step 8,
/// [exact hints](ServerHint#exact-hints) shorten three waits in a row. Step 9 stops without sleeping, if
/// `elapsed + delay > max_elapsed`.
///
/// `turn` and `begin` ask the deadline first, and then the guards in their order; `max_elapsed` limits only when a
/// retry is decided on, and how long a call waits for its turn. `turn`, `begin` and `decide` each read the clock at
/// most once, and only if a limit or a guard needs the time.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::guard::Permits;
/// use stagger_core::machine::{Decision, RetryMachine, RetryState};
/// use stagger_core::{Guards, Instant, Outcome, Policy, Seed, StopReason};
///
/// let policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(1)).max_attempts(2).build()?;
/// let mut state = RetryState::new();
/// let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
/// let (guards, now) = (Guards::none(), || Instant::ZERO);
///
/// let permit = retry.begin(Permits::NONE, now, &guards).expect("no guard");
/// let decision = retry.decide(Outcome::TRANSIENT, permit, now, &guards);
/// let Decision::Retry { after, permit, .. } = decision else { panic!() };
/// assert!(after <= Duration::from_millis(100));
///
/// let permit = retry.begin(permit, now, &guards).expect("no guard");
/// assert_eq!(retry.decide(Outcome::TRANSIENT, permit, now, &guards), Decision::Stop(StopReason::Attempts));
/// # Ok::<(), stagger_core::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct RetryMachine<'a> {
    pub(super) policy: &'a Policy,
    pub(super) state: &'a mut RetryState,
    pub(super) seed: Seed,
    pub(super) deadline: Option<Instant>,
    pub(super) strategy: Option<&'a dyn Strategy>,
}

impl<'a> RetryMachine<'a> {
    /// Creates a view of the state of a call. The view itself stores nothing, so it can be created anew for every step.
    #[inline]
    pub const fn new(policy: &'a Policy, state: &'a mut RetryState, seed: Seed) -> Self {
        Self { policy, state, seed, deadline: None, strategy: None }
    }

    /// Sets the point in time at which the call ends: no attempt starts at it or later, not even the first, and none
    /// lasts beyond it. Default: none.
    #[inline]
    #[must_use]
    pub const fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the strategy that computes the delays in place of the policy's backoff and jitter. Default: none.
    #[inline]
    #[must_use]
    pub const fn strategy(mut self, strategy: Option<&'a dyn Strategy>) -> Self {
        self.strategy = strategy;
        self
    }
}

impl RetryMachine<'_> {
    /// Starts the next attempt, if the guards let it, for a driver that does not wait for a [turn](Self::turn): a
    /// wait is a rejection. `permit` is the permit of the last decision; [`Permits::NONE`] at first.
    ///
    /// The first attempt gets permits, too: some budgets count from it on, although they never reject it. Every attempt
    /// has exactly one set of permits, which is settled exactly once. A repeat of a request that was not processed
    /// keeps its permits.
    ///
    /// # Errors
    /// [`StopReason::Deadline`] if the [deadline](Self::deadline) has passed, [`StopReason::Guard`] if a guard rejects
    /// the attempt, or would let it wait. The permit has then been given back. At the first attempt this means that the
    /// operation was never called.
    #[inline]
    pub fn begin(
        &mut self,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Result<Permits, StopReason> {
        let now = Unread::new(now);
        let mut permit = permit;
        if !self.start(&mut permit, &now, guards)?.is_zero() {
            let waits_for = guards.waits_for(&permit);
            guards.give_back(permit, &now);
            return Err(waits_for);
        }
        Ok(permit)
    }

    /// Starts the next attempt like [`begin`](Self::begin) for a call without guards, and is inlined into its caller,
    /// as [`decide_unguarded`](Self::decide_unguarded) is.
    ///
    /// # Errors
    /// [`StopReason::Deadline`] if the [deadline](Self::deadline) has passed.
    #[inline(always)]
    pub fn begin_unguarded(&mut self, now: impl FnOnce() -> Instant) -> Result<(), StopReason> {
        let now = Unread::new(now);
        self.start_clock(&now);
        if self.is_past_deadline(&now) {
            return Err(StopReason::Deadline);
        }
        self.count_attempt();
        Ok(())
    }

    /// Counts the attempt that starts now. The one immediate repeat is not counted. Without a branch, because this is
    /// on the path of every call.
    #[inline]
    pub(super) const fn count_attempt(&mut self) {
        self.state.attempt = self.state.attempt.saturating_add((self.state.flags & REPEATS == 0) as u32);
        self.state.flags &= !(REPEATS | DECIDED | IN_FLIGHT);
    }

    /// Decides what to do after an attempt. See [the order](Self#the-order-inside-decide).
    #[inline]
    pub fn decide(
        &mut self,
        outcome: Outcome,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        // Compiled twice, so that a call without guards contains no code for them.
        if guards.is_unguarded() {
            self.decide_with(outcome, permit, now, &Guards::none().nested(guards.nesting()))
        } else {
            self.decide_with(outcome, permit, now, guards)
        }
    }

    /// Decides like [`decide`](Self::decide) for a call without guards, and is inlined into its caller: for drivers of
    /// plain calls, and for simulations, which make millions of decisions a second.
    #[inline(always)]
    pub fn decide_unguarded(
        &mut self,
        outcome: Outcome,
        nested: NestedRetries,
        now: impl FnOnce() -> Instant,
    ) -> Decision {
        self.decide_with(outcome, Permits::NONE, now, &Guards::none().nested(nested))
    }

    /// Decides about an attempt of which the guards receive no report, because its permits are gone: the process that
    /// made it was [killed](crate::machine::Paused::is_in_flight), or another layer made it and settled them. Steps 2
    /// to 12 of [the order](Self#the-order-inside-decide), without an immediate repeat.
    #[cold]
    pub fn decide_unrecorded(
        &mut self,
        outcome: Outcome,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        let (kind, hint) = match retryable(outcome) {
            Ok(failure) => failure,
            Err(decision) => return decision,
        };
        if self.state.flags & BEGUN == 0 {
            // Attempts that another layer made have not advanced the schedule.
            self.seek(self.state.retry_number());
        }
        let decision = self.retry_or_stop(kind, hint, SpreadUse::Unused, &Unread::new(now), guards);
        if matches!(decision, Decision::Retry { .. }) {
            self.state.flags &= !(IN_FLIGHT | REPEATS);
        }
        decision
    }

    /// Decides what to do after the loss of an open connection, as
    /// [`ReconnectMachine`](crate::machine::ReconnectMachine) does. Use it to keep no more than a
    /// [`RetryState`](crate::machine::RetryState) for each of many connections. Call [`begin`](Self::begin) next, as
    /// after [`decide`](Self::decide).
    ///
    /// Every loss is spread, because whatever ended the connection may have ended all of them. `health` decides only
    /// whether the count starts again:
    ///
    /// - After the loss of a stable connection an episode begins: the first wait is a draw from the policy's spread,
    ///   and the schedule begins with the first failure after it. Without a spread, the loss itself is the schedule's
    ///   first failure, and the first of the `max_attempts`.
    /// - Any other loss is one more failure of the attempt that opened the connection. The wait is the larger of a draw
    ///   from the spread and the schedule's delay, and its [source](crate::DelaySource) says which one it is.
    ///
    /// A server's hint is a minimum below the spread as below a delay. The guards have already recorded the success of
    /// the attempt that opened the connection.
    pub fn lost(
        &mut self,
        health: Health,
        outcome: Outcome,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        let now = Unread::new(now);
        // A connection that ended normally is still wanted.
        let outcome = if outcome == Outcome::Success { Outcome::TRANSIENT } else { outcome };
        let (kind, hint) = match retryable(outcome) {
            Ok(failure) => failure,
            Err(decision) => return decision,
        };
        let spread = match health {
            Health::Stable => {
                self.state.begin_episode();
                self.start_clock(&now);
                if self.policy.spread().is_zero() {
                    self.state.flags |= AHEAD;
                    SpreadUse::Unused
                } else {
                    SpreadUse::InsteadOfBackoff
                }
            }
            Health::Flapping | Health::Failed if self.policy.spread().is_zero() => SpreadUse::Unused,
            Health::Flapping | Health::Failed => SpreadUse::BesideBackoff,
        };
        self.retry_or_stop(kind, hint, spread, &now, guards)
    }

    /// Reserves a retry anew that was granted earlier and whose permit has been given back, because the call was
    /// [paused](crate::machine::Paused). The guards charge it like a retry after a transient failure. A
    /// first attempt and the one immediate repeat are free, as always. Call [`begin`](Self::begin) next, when the retry
    /// is due.
    ///
    /// # Errors
    /// [`StopReason::Guard`] if a guard has no retry left. Nothing has changed then.
    pub fn reacquire(
        &self,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Result<Permits, StopReason> {
        match self.state.flags & (DECIDED | REPEATS) {
            DECIDED => guards.reserve(FailureKind::Transient, &Unread::new(now)),
            _ => Ok(Permits::NONE),
        }
    }

    /// Sets the schedule to where it stands before retry `number`, for attempts that another layer made. A strategy
    /// keeps its own place.
    #[cold]
    pub fn seek(&mut self, number: u32) {
        // A stored number of attempts is not trusted to be small.
        let number = number.min(65_536);
        let carry = self.policy.carry_before(number, self.seed, u32::from(self.state.episode));
        if let (Some(carry), None) = (carry, self.strategy) {
            self.state.carry = carry;
            self.state.flags |= BEGUN;
        }
    }

    /// Restarts the attempt count and the schedule if the attempt or connection that ended had lasted at least
    /// `stable_after`, and returns whether it did. Later draws have new numbers.
    #[inline]
    pub fn reset_if_healthy(&mut self, lived: Duration) -> bool {
        match self.policy.stable_after() {
            Some(enough) if lived >= enough => {
                self.reset();
                true
            }
            _ => false,
        }
    }

    /// Restarts the attempt count and the schedule, but not the clock. Call it before the decision about the attempt
    /// that ended, which is then the schedule's first failure and the first of `max_attempts`. Later draws have new
    /// numbers.
    pub const fn reset(&mut self) {
        self.state.reset();
    }

    /// Returns whether the current attempt is the last that `max_attempts` allows. If the schedule began with the end
    /// of a healthy attempt or the loss of a connection, that is the first of these attempts.
    #[inline]
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        match self.policy.max_attempts() {
            Some(most) => self.state.retry_number() >= most.get(),
            None => false,
        }
    }

    /// Returns the number of the current or last attempt, from 1; 0 before the first.
    #[inline]
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.state.attempt
    }

    /// Returns the number of the coming retry in the schedule, from 1; 0 before the first attempt. It is the number of
    /// the attempt, or one more if the schedule began with the end of a healthy attempt or the loss of a connection.
    #[inline]
    #[must_use]
    pub const fn retry_number(&self) -> u32 {
        self.state.retry_number()
    }

    /// Returns the limit of attempts, if there is one.
    #[inline]
    #[must_use]
    pub const fn max_attempts(&self) -> Option<NonZeroU32> {
        self.policy.max_attempts()
    }

    /// Returns the time since the start of the call; `None` if the start was not recorded because nothing needed it.
    #[inline]
    #[must_use]
    pub fn elapsed(&self, now: Instant) -> Option<Duration> {
        self.state.start().map(|start| now.saturating_since(start))
    }
}

/// The steps.
impl RetryMachine<'_> {
    #[inline(always)]
    fn decide_with(
        &mut self,
        outcome: Outcome,
        permit: Permits,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        let now = Unread::new(now);
        // Step 4 keeps the permit that step 1 would settle, so its question comes first. It has no side effect.
        if matches!(outcome, Outcome::NotProcessed) && self.can_repeat(&now, guards) {
            // The server has not seen the attempt, so the guards are told nothing, and its permits stay valid.
            self.state.flags |= REPEATED | REPEATS | DECIDED;
            return Decision::Retry { after: Duration::ZERO, source: DelaySource::Transparent, permit };
        }
        if !guards.is_unguarded() {
            guards.record(permit, &self.told(outcome), &now);
        }
        match retryable(outcome) {
            Ok((kind, hint)) => self.retry_or_stop(kind, hint, SpreadUse::Unused, &now, guards),
            Err(decision) => decision,
        }
    }

    /// Returns what the guards are told: a hint that the policy does not follow does nothing to other calls.
    #[inline]
    fn told(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Failed { kind, hint: Some(hint) } => Outcome::Failed { kind, hint: self.policy.followed(hint) },
            Outcome::UnsafeToRetry { kind, hint: Some(hint) } => {
                Outcome::UnsafeToRetry { kind, hint: self.policy.followed(hint) }
            }
            other => other,
        }
    }

    /// Returns whether step 4 repeats the attempt.
    #[cold]
    fn can_repeat(&self, now: &dyn Now, guards: &Guards<'_, impl Deref<Target: Guard>>) -> bool {
        if self.state.flags & REPEATED != 0 || self.passed_limit(Duration::ZERO, now).is_some() {
            return false;
        }
        guards.would_refuse(Duration::ZERO, None, now).is_none()
    }

    /// Takes steps 5 to 12.
    #[inline(always)]
    fn retry_or_stop(
        &mut self,
        kind: FailureKind,
        hint: Option<ServerHint>,
        spread: SpreadUse,
        now: &impl Now,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        // Step 5. Drawing changes nothing: a draw is a pure function of its number.
        if self.is_last_attempt() {
            return Decision::Stop(StopReason::Attempts);
        }
        let Some(Drawn { delay, interval, carry }) = self.draw(kind, spread) else {
            return Decision::Stop(StopReason::Exhausted);
        };
        // Steps 6 and 7.
        if guards.leaves_retries_to_outer_layer() {
            return Decision::Stop(StopReason::Nested);
        }
        if let Some(hint) = hint {
            if self.forbids_retry(hint) {
                return Decision::Stop(StopReason::Hint);
            }
        }
        // Step 8: the schedule advances, unless the wait is the spread of a new episode.
        let mut source = DelaySource::Spread;
        if !matches!(spread, SpreadUse::InsteadOfBackoff) {
            self.state.carry = carry;
            self.state.flags |= BEGUN;
            source = DelaySource::Schedule;
        }
        let mut delay = delay;
        if matches!(spread, SpreadUse::BesideBackoff) {
            // Draw 0 is that of the episode.
            let spread = self.draw_spread(self.policy.spread(), self.state.retry_number());
            if spread > delay {
                (delay, source) = (spread, DelaySource::Spread);
            }
        }
        match hint {
            Some(hint) => {
                let span = match spread {
                    SpreadUse::Unused => self.policy.capped_last(interval.hi),
                    SpreadUse::InsteadOfBackoff => interval.hi,
                    SpreadUse::BesideBackoff => self.policy.capped_last(interval.hi).max(nanos(self.policy.spread())),
                };
                delay = self.hinted(hint, span, delay);
                source = DelaySource::Hint;
            }
            None => self.state.flags &= !SHORTENED,
        }
        self.grant(Duration::from_nanos(delay), source, kind, now, guards)
    }

    /// Takes steps 9 to 12: the questions whose answers depend on the delay.
    #[inline(always)]
    fn grant(
        &mut self,
        after: Duration,
        source: DelaySource,
        kind: FailureKind,
        now: &impl Now,
        guards: &Guards<'_, impl Deref<Target: Guard>>,
    ) -> Decision {
        if let Some(limit) = self.passed_limit(after, now) {
            return Decision::Stop(limit);
        }
        if let Some(refused) = guards.would_refuse(after, self.latest_start(), now) {
            return Decision::Stop(refused);
        }
        // Reservations come last, because they alone charge: no later question can reject a retry that was paid for.
        let permit = match guards.reserve(kind, now) {
            Ok(permit) => permit,
            Err(used_up) => return Decision::Stop(used_up),
        };
        self.state.flags |= DECIDED;
        Decision::Retry { after, source, permit }
    }

    /// Draws the delay of the coming retry, without regard to a hint.
    #[inline(always)]
    fn draw(&self, kind: FailureKind, spread: SpreadUse) -> Option<Drawn> {
        let carry = if self.state.flags & BEGUN == 0 { self.policy.curve.first } else { self.state.carry };
        if matches!(spread, SpreadUse::InsteadOfBackoff) {
            let spread = self.policy.spread();
            let interval = Interval { lo: 0, hi: nanos(spread) };
            return Some(Drawn { delay: self.draw_spread(spread, 0), interval, carry });
        }
        match self.strategy {
            None => self.policy.next_delay(carry, self.state.retry_number(), kind, self.bits(Purpose::Delay)),
            Some(strategy) => self.strategic_delay(strategy, kind),
        }
    }

    /// Returns the delay of a strategy, and carries it on as the previous one.
    #[cold]
    fn strategic_delay(&self, strategy: &dyn Strategy, kind: FailureKind) -> Option<Drawn> {
        let previous = if self.state.flags & BEGUN == 0 { 0 } else { self.state.carry as u64 };
        let delay = nanos(strategy.next_delay(&RetryContext {
            number: self.state.retry_number(),
            previous: Duration::from_nanos(previous),
            kind,
            random: self.bits(Purpose::Delay),
        })?);
        Some(Drawn { delay, interval: Interval { lo: delay, hi: delay }, carry: delay as f64 })
    }

    /// Returns whether the hint stops the call (step 7).
    #[cold]
    fn forbids_retry(&self, hint: ServerHint) -> bool {
        match hint {
            ServerHint::DoNotRetry => true,
            ServerHint::AtLeast(asked) | ServerHint::Reserved(asked) => match self.policy.max_hint() {
                Some(longest) => asked > longest,
                None => false,
            },
        }
    }

    /// Returns the delay of a hinted retry (step 8), in nanoseconds, where the policy has `drawn` one without regard to
    /// the hint. Exact hints shorten three waits in a row; the next is not shortened.
    #[cold]
    fn hinted(&mut self, hint: ServerHint, span: u64, drawn: u64) -> u64 {
        let hinted = self.policy.hinted(hint, span, drawn, self.bits(Purpose::Hint));
        let is_shortened = hinted < drawn && self.policy.follows_exactly(hint);
        // The count is in the highest bits: the fourth in a row overflows to none.
        let shortened = if is_shortened { self.state.flags.wrapping_add(SHORTENED_ONCE) & SHORTENED } else { 0 };
        self.state.flags = self.state.flags & !SHORTENED | shortened;
        if is_shortened && shortened == 0 { drawn } else { hinted }
    }

    /// Returns which time limit leaves no room for an attempt that starts `after` from now, if one does. If both do, it
    /// is the deadline: a longer `max_elapsed` would not help.
    #[inline]
    fn passed_limit(&self, after: Duration, now: &(impl Now + ?Sized)) -> Option<StopReason> {
        if let Some(deadline) = self.deadline {
            if now.now().saturating_add(after) >= deadline {
                return Some(StopReason::Deadline);
            }
        }
        let limit = self.policy.max_elapsed()?;
        let start = self.state.start()?;
        let elapsed = now.now().saturating_add(after).saturating_since(start);
        if elapsed > limit { Some(StopReason::Elapsed) } else { None }
    }

    /// Returns whether the deadline has passed. Reads the clock only if there is one.
    #[inline]
    pub(super) fn is_past_deadline(&self, now: &(impl Now + ?Sized)) -> bool {
        match self.deadline {
            Some(deadline) => now.now() >= deadline,
            None => false,
        }
    }

    #[inline]
    pub(super) fn draw_spread(&self, spread: Duration, n: u32) -> u64 {
        draw_spread(spread, self.seed, u32::from(self.state.episode), n)
    }

    #[inline]
    pub(super) fn bits(&self, purpose: Purpose) -> u64 {
        self.seed.bits(u32::from(self.state.episode), self.state.retry_number(), purpose)
    }

    /// Records the start of the call if a time limit needs it.
    #[inline]
    pub(super) fn start_clock(&mut self, now: &impl Now) {
        if self.policy.max_elapsed().is_some() {
            self.start_needed_clock(now);
        }
    }

    #[cold]
    fn start_needed_clock(&mut self, now: &impl Now) {
        if !self.state.is_timed {
            self.state.start = now.now();
            self.state.is_timed = true;
        }
    }
}

/// Returns the failure that may be retried, or the decision of steps 2 and 3.
#[inline(always)]
pub(super) fn retryable(outcome: Outcome) -> Result<(FailureKind, Option<ServerHint>), Decision> {
    match outcome {
        Outcome::Failed { kind, hint } => Ok((kind, hint)),
        Outcome::NotProcessed => Ok((FailureKind::Transient, None)),
        Outcome::Success => Err(Decision::Done),
        Outcome::Permanent => Err(Decision::Stop(StopReason::Permanent)),
        Outcome::UnsafeToRetry { .. } => Err(Decision::Stop(StopReason::UnsafeToRetry)),
        Outcome::Cancelled => Err(Decision::Stop(StopReason::Cancelled)),
    }
}

/// How the policy's spread takes part in a delay.
#[derive(Clone, Copy)]
pub(super) enum SpreadUse {
    /// Not at all.
    Unused,
    /// The delay is drawn from it, and the schedule does not begin.
    InsteadOfBackoff,
    /// A draw from it is the least delay.
    BesideBackoff,
}

/// Whether a lost connection had been healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It had been open for long enough: a new episode begins.
    Stable,
    /// It had not been open for long enough: the count and the backoff go on.
    Flapping,
    /// Its server failed, however long it had been open: the count and the backoff go on.
    Failed,
}

impl Health {
    /// How long a connection must have been open to count as stable, if the policy does not set it.
    const STABLE_AFTER: Duration = Duration::from_secs(10);

    /// Returns whether a connection is stable that was open for `lived`: for at least the policy's `stable_after`; if
    /// that is not set, for the larger of 10 s and `last_wait`, the wait before the attempt that opened it.
    #[must_use]
    pub fn after(policy: &Policy, lived: Duration, last_wait: Duration) -> Self {
        match policy.stable_after() {
            Some(enough) if lived >= enough => Self::Stable,
            Some(_) => Self::Flapping,
            None => Self::by_default(lived, last_wait),
        }
    }

    pub(super) fn by_default(lived: Duration, last_wait: Duration) -> Self {
        if lived >= last_wait.max(Self::STABLE_AFTER) { Self::Stable } else { Self::Flapping }
    }
}
