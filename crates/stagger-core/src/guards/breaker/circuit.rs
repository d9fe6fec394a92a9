use core::fmt;
use core::time::Duration;

use super::rules::Rules;
use super::state::{
    BreakerSnapshot, BreakerState, Evidence, Mode, PackedState, Probe, TransitionCause, generation_of, permit,
};
use super::transitions::Transitions;
use super::window::{Mark, Record, Tally};
use crate::guards::guard::{Answer, Ask, End, Guard, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{Ordering, fence};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::Seed;
use crate::outcome::{Outcome, ServerHint};
use crate::policy::Policy;

/// The `retry_in` of a rejected call when it cannot be known: during a change of state, and the minimum in the
/// half-open state.
const MIN_RETRY_IN: u64 = 1_000_000;

/// A circuit breaker: while a server is down, it rejects calls at once and sends only a few probes.
///
/// ```text
///              a rule trips                     open time over
///   Closed ───────────────────▶ Open ──────────────────────────────▶ HalfOpen
///     ▲                          ▲   a probe fails, or is overdue       │
///     │                          └──────────────────────────────────────┤
///     └─────────────────────────────────────────────────────────────────┘
///                   as many probes as configured are healthy
/// ```
///
/// Outcomes count by their [verdict](Outcome::verdict). A permanent failure is an answer of the server, so it counts as
/// a success. An attempt that was cancelled, never reached the server or failed because the client ran out of a
/// resource does not count; a probe that ends so frees its place for another. A result counts only for the state that
/// admitted its call.
///
/// # What it bounds
///
/// Once it has opened, the server sees only the calls already in flight until the open time is over, and then at most
/// [`probes`](super::CircuitBreakerBuilder::probes) at a time: while the server stays down, this client makes at most
/// `probes · (1 + time / shortest open time)` attempts, whatever the number of callers and retries. Each cancelled
/// probe allows one more.
///
/// # Costs
///
/// Shared by reference between any number of threads, lock-free, no allocation. While it is closed,
/// [`ask`](Guard::ask) is one load; it reads the clock only if there is a rule about slow calls. A success is one
/// more load, unless failures came just before it. With a [`Window`](super::Window) it is a compare-and-swap on a word
/// that all threads share, and a window of time also reads the clock. During the few nanoseconds of a change of state,
/// calls are rejected.
///
/// # When not to use it
///
/// It rejects healthy calls together with the failing ones: for a server that sheds part of its load, or a target that
/// is many servers, use a [budget](crate::budget). It has no effect for a client that makes fewer calls in an open
/// time than it takes to trip.
pub struct CircuitBreaker {
    states: Transitions,
    rules: Rules,
}

impl CircuitBreaker {
    /// Creates a breaker that opens after five failures in a row, at first for 2.5 to 5 seconds, up to a minute, and
    /// closes after one healthy probe.
    ///
    /// The seed draws its open times: breakers with the same seed send their probes at the same time.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        match Self::builder(seed).consecutive(5).build() {
            Ok(breaker) => breaker,
            // The seed cannot cause a problem, and a test builds it.
            Err(error) => unreachable!("{error}"),
        }
    }

    pub(super) fn of(rules: Rules, record: Record, open: Policy, seed: Seed) -> Self {
        Self { states: Transitions::new(record, open, seed), rules }
    }

    /// Returns the state. The next call notices that an open time is over: until then the state is `Open`.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        state_of(self.states.at_rest().mode())
    }

    /// Returns how many changes of state there have been. One load: poll it to detect changes.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.states.ledger().transitions.get()
    }

    /// Returns a snapshot for metrics and events. Reads the clock only for a window of time.
    #[must_use]
    pub fn snapshot(&self, now: &dyn Now) -> BreakerSnapshot {
        loop {
            let state = self.states.at_rest();
            let snapshot = self.describe(state, now);
            // The state does not contain every failure, but it shows that no change of state came in between. The fence
            // is for the numbers beside it and pairs with that of `begin_change`: a thread that has seen a number of a
            // new state also sees that state.
            fence(Ordering::Acquire);
            let after = self.states.load();
            if (after.mode(), after.generation()) == (state.mode(), state.generation()) {
                return snapshot;
            }
        }
    }

    /// Rejects every call until another command. Rejected calls receive the longest first open time as `retry_in`.
    pub fn force_open(&self, now: &dyn Now) {
        self.states.command(Mode::ForcedOpen, now.now().as_nanos());
    }

    /// Admits every call and counts nothing until another command: the breaker is off.
    pub fn force_closed(&self, now: &dyn Now) {
        self.states.command(Mode::ForcedClosed, now.now().as_nanos());
    }

    /// Closes the breaker, forced or not, with nothing counted and the open times at their first.
    pub fn reset(&self, now: &dyn Now) {
        self.states.command(Mode::Closed, now.now().as_nanos());
    }

    /// Sets how much the breaker must have seen itself before a rule trips it, without a change of state. With
    /// [`Evidence::Half`], advice that the server is down, for instance from other processes, lets it open earlier, and
    /// never against its own view: it opens with the next result if half of what a rule asks for is there.
    pub fn set_evidence(&self, evidence: Evidence) {
        self.states.ledger().evidence.set(evidence as u64);
    }

    /// Returns how much the breaker must have seen itself before a rule trips it.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        Evidence::from_code(self.states.ledger().evidence.get())
    }
}

impl Guard for CircuitBreaker {
    fn name(&self) -> &'static str {
        "breaker"
    }

    #[inline]
    fn ask(&self, _: Ask, _: Permit, now: &dyn Now) -> Answer {
        let state = self.states.load();
        // Reading the clock is left to the slow path, so that nothing has to be kept across it here.
        if state.mode() == Mode::Closed && self.rules.slow.is_none() {
            Answer::Go(permit(state.generation(), 0))
        } else {
            self.admit_slowly(now)
        }
    }

    fn would_refuse(&self, after: Duration, _: Option<Instant>, now: &dyn Now) -> bool {
        let state = self.states.load();
        if state.mode() == Mode::Closed {
            return false;
        }
        let Some(left) = self.time_until_admission(now) else { return false };
        match state.mode() {
            Mode::ForcedOpen => true,
            // The probes may have returned by then: the attempt asks again when it begins.
            Mode::HalfOpen if !self.is_overdue(state, now.now().as_nanos()) => after.is_zero(),
            _ => nanos(after) < left,
        }
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        // An attempt that was not made says as little as one that was cancelled; a probe frees its place.
        let outcome = match end {
            End::Made(outcome) => outcome,
            End::NeverMade => &Outcome::Cancelled,
        };
        let is_closed_and_clean = self.states.is_at(PackedState::new(Mode::Closed, generation_of(&permit)));
        if is_closed_and_clean && matches!(outcome, Outcome::Success) && self.states.record().is_nothing() {
            return;
        }
        self.record_slowly(&permit, outcome, now);
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        Duration::from_nanos(self.time_until_admission(now).unwrap_or(0))
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.evidence() == Evidence::Full && self.states.is_as_new(now.now().as_nanos())
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self { states: self.states.fresh(), rules: self.rules })
    }
}

impl CircuitBreaker {
    fn describe(&self, state: PackedState, now: &dyn Now) -> BreakerSnapshot {
        let ledger = self.states.ledger();
        let (tally, consecutive) = match state.mode() {
            Mode::Closed => (self.states.record().tally(state.generation(), || now.now().as_nanos()), state.streak()),
            Mode::HalfOpen => (probes_found(state), 0),
            _ => (ledger.tripped_by(), ledger.consecutive.get()),
        };
        let transitions = ledger.transitions.get();
        BreakerSnapshot {
            state: state_of(state.mode()),
            cause: TransitionCause::of(ledger.cause.get()),
            evidence: self.evidence(),
            transitions,
            since: if transitions > 0 { Some(Instant::from_nanos(ledger.since.get())) } else { None },
            openings: ledger.opening().number,
            consecutive,
            calls: tally.calls,
            failures: tally.failures,
            slow: tally.slow,
            probes: if state.mode() == Mode::HalfOpen { state.in_flight() } else { 0 },
            next_probe: match state.mode() {
                Mode::Open => Some(Instant::from_nanos(ledger.until.get())),
                _ => None,
            },
            rejections: ledger.rejections.get(),
        }
    }
}

/// Admission: what happens when a call wants to begin.
impl CircuitBreaker {
    fn permit(&self, state: PackedState, now: &dyn Now) -> Permit {
        // The clock is read only if there is a rule about slow calls.
        let start = if self.rules.slow.is_some() { now.now().as_nanos() } else { 0 };
        permit(state.generation(), start)
    }

    /// Admits or rejects a call in any state. Not inlined: `ask` handles the usual call.
    #[inline(never)]
    fn admit_slowly(&self, now: &dyn Now) -> Answer {
        let ledger = self.states.ledger();
        loop {
            let state = self.states.load();
            match state.mode() {
                Mode::Closed => return Answer::Go(self.permit(state, now)),
                Mode::ForcedClosed => return Answer::Go(Permit::NONE),
                Mode::Open => {
                    let at = now.now().as_nanos();
                    if at >= ledger.until.get() {
                        match self.states.half_open(state, at) {
                            true => return Answer::Go(permit(state.next_generation(), at)),
                            false => continue,
                        }
                    }
                }
                Mode::HalfOpen => {
                    let at = now.now().as_nanos();
                    if state.taken() < u64::from(self.rules.probes) {
                        // Before the place is taken, or another thread could find a probe that seems to be in flight
                        // for a long time.
                        ledger.probed.raise(at);
                        match self.states.swap(state, state.with_probe()) {
                            true => return Answer::Go(permit(state.generation(), at)),
                            false => continue,
                        }
                    }
                    if self.is_overdue(state, at) {
                        self.states.trip(
                            state,
                            self.overdue_from(),
                            None,
                            TransitionCause::ProbeWait,
                            probes_found(state),
                            0,
                        );
                        continue;
                    }
                }
                Mode::ForcedOpen | Mode::Changing => {}
            }
            let Some(left) = self.time_until_admission(now) else { continue };
            ledger.rejections.increment();
            return Answer::No { retry_in: Duration::from_nanos(left) };
        }
    }

    /// Returns for how long calls are rejected, in nanoseconds, at least 1; `None` if a call would be admitted now.
    fn time_until_admission(&self, now: &dyn Now) -> Option<u64> {
        let ledger = self.states.ledger();
        let state = self.states.load();
        let left = match state.mode() {
            Mode::Closed | Mode::ForcedClosed => 0,
            Mode::Changing => MIN_RETRY_IN,
            Mode::ForcedOpen => match self.states.open.bounds(1) {
                Some((_, longest)) => nanos(longest),
                None => MIN_RETRY_IN,
            },
            Mode::Open => ledger.until.get().saturating_sub(now.now().as_nanos()),
            Mode::HalfOpen if state.taken() < u64::from(self.rules.probes) => 0,
            Mode::HalfOpen => {
                let at = now.now().as_nanos();
                let overdue = self.overdue_from();
                if self.is_overdue(state, at) {
                    // It has been open since the probe was overdue, although no call has noticed.
                    overdue.saturating_add(self.states.length(ledger.opening().next(), None)).saturating_sub(at)
                } else {
                    // A probe that has taken this long is assumed to take as long again.
                    at.saturating_sub(ledger.probed.get()).max(MIN_RETRY_IN).min(overdue.saturating_sub(at))
                }
            }
        };
        if left > 0 { Some(left) } else { None }
    }

    /// Returns when the probes in flight are overdue.
    fn overdue_from(&self) -> u64 {
        self.states.ledger().probed.get().saturating_add(self.rules.probe_wait)
    }

    fn is_overdue(&self, state: PackedState, at: u64) -> bool {
        state.in_flight() > 0 && at >= self.overdue_from()
    }
}

/// Results: what happens when a call ends.
impl CircuitBreaker {
    /// Records a result in any state. Not inlined: `settle` handles the usual success.
    #[inline(never)]
    fn record_slowly(&self, permit: &Permit, outcome: &Outcome, now: &dyn Now) {
        let state = self.states.load();
        // The result of a call that another state admitted says nothing about this one.
        if generation_of(permit) != state.generation() {
            return;
        }
        match state.mode() {
            Mode::Closed => {
                let Some(mark) = self.rules.mark(permit, outcome, || now.now().as_nanos()) else { return };
                self.record_while_closed(state, mark, outcome, now);
            }
            Mode::HalfOpen => {
                let mark = self.rules.mark(permit, outcome, || now.now().as_nanos());
                self.record_probe(state, Rules::probe(mark), outcome, now);
            }
            Mode::Open | Mode::ForcedOpen | Mode::ForcedClosed | Mode::Changing => {}
        }
    }

    /// Records a result in the closed state.
    fn record_while_closed(&self, mut state: PackedState, mark: Mark, outcome: &Outcome, now: &dyn Now) {
        let generation = state.generation();
        let is_still = |state: PackedState| (state.mode(), state.generation()) == (Mode::Closed, generation);
        let evidence = self.evidence();
        let tally = self.states.record().count(generation, mark, || now.now().as_nanos());
        while self.rules.consecutive > 0 && is_still(state) {
            let streak = if mark.failed { state.streak() + 1 } else { 0 };
            if let Some(cause) = self.rules.tripped_in_a_row(streak, evidence) {
                let tally = tally.unwrap_or_default();
                if self.states.trip(state, now.now().as_nanos(), hint_of(outcome), cause, tally, streak) {
                    return;
                }
            } else if streak == state.streak() || self.states.swap(state, state.with_streak(streak)) {
                break;
            }
            state = self.states.load();
        }
        let Some(tally) = tally else { return };
        let Some(cause) = self.rules.tripped(tally, evidence) else { return };
        // Repeat until it is done, or until another state has begun.
        state = self.states.load();
        while is_still(state)
            && !self.states.trip(state, now.now().as_nanos(), hint_of(outcome), cause, tally, state.streak())
        {
            state = self.states.load();
        }
    }

    /// Records a result in the half-open state.
    fn record_probe(&self, mut state: PackedState, probe: Probe, outcome: &Outcome, now: &dyn Now) {
        let generation = state.generation();
        while (state.mode(), state.generation()) == (Mode::HalfOpen, generation) {
            let Some(back) = state.with_result(probe) else { return };
            let can_fail = u64::from(self.rules.probes - self.rules.healthy_probes);
            let done = if back.healthy() >= u64::from(self.rules.healthy_probes) {
                self.states.close(state, now.now().as_nanos())
            } else if back.ailing() > can_fail {
                let found = probes_found(back);
                self.states.trip(state, now.now().as_nanos(), hint_of(outcome), TransitionCause::Probes, found, 0)
            } else {
                self.states.swap(state, back)
            };
            if done {
                return;
            }
            state = self.states.load();
        }
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("state", &state_of(self.states.load().mode()))
            .field("rules", &self.rules)
            .field("transitions", &self.transitions())
            .finish_non_exhaustive()
    }
}

const fn state_of(mode: Mode) -> BreakerState {
    match mode {
        Mode::Closed => BreakerState::Closed,
        Mode::HalfOpen => BreakerState::HalfOpen,
        Mode::ForcedOpen => BreakerState::ForcedOpen,
        Mode::ForcedClosed => BreakerState::ForcedClosed,
        Mode::Open | Mode::Changing => BreakerState::Open,
    }
}

const fn hint_of(outcome: &Outcome) -> Option<ServerHint> {
    match outcome {
        Outcome::Failed { hint, .. } => *hint,
        _ => None,
    }
}

const fn probes_found(state: PackedState) -> Tally {
    Tally { calls: state.healthy() + state.ailing(), failures: state.ailing(), slow: 0 }
}
