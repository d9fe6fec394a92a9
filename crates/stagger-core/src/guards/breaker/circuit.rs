use core::fmt;
use core::time::Duration;

use super::ledger::{Ledger, Opening};
use super::packed_state::{Mode, PackedState, Probe, generation_of, permit};
use super::rules::Rules;
use super::snapshot::{BreakerSnapshot, BreakerState, TransitionCause};
use super::tally::{Mark, Tally};
use super::window::Record;
use crate::guards::guard::{Breaker, BreakerOpen, BreakerPermit, Enforcement, Now};
use crate::numbers::atomic::{AtomicU64, Ordering, Padded, fence, spin_loop};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::seed::Seed;
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
/// [`probes`](super::CircuitBreakerBuilder::probes) at a time: while the server stays down, this client makes at most `probes
/// · (1 + time / shortest open time)` attempts, whatever the number of callers and retries. Each cancelled probe allows
/// one more.
///
/// # Costs
///
/// Shared by reference between any number of threads, lock-free, no allocation. While it is closed,
/// [`admit`](Breaker::admit) is one load; it reads the clock only if there is a rule about slow calls. A success is one
/// more load, unless failures came just before it. With a [`Window`](super::Window) it is a compare-and-swap on a word
/// that all threads share, and a window of time also reads the clock. During the few nanoseconds of a change of state,
/// calls are rejected.
///
/// # When not to use it
///
/// It rejects healthy calls together with the failing ones: for a server that sheds part of its load, or a target that
/// is many servers, use a [`Budget`](crate::Budget). It has no effect for a client that makes fewer calls in an open
/// time than it takes to trip.
pub struct CircuitBreaker {
    state: AtomicU64,
    rules: Rules,
    open: Policy,
    seed: Seed,
    record: Padded<Record>,
    ledger: Padded<Ledger>,
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
        let state = AtomicU64::new(PackedState::FIRST.0);
        Self { state, rules, open, seed, record: Padded(record), ledger: Padded(Ledger::default()) }
    }

    /// Returns the state. The next call notices that an open time is over: until then the state is `Open`.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        state_of(self.at_rest().mode())
    }

    /// Returns how many changes of state there have been. One load: poll it to detect changes.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.ledger.0.transitions.get()
    }

    /// Returns a snapshot for metrics and events. Reads the clock only for a window of time.
    #[must_use]
    pub fn snapshot(&self, now: &dyn Now) -> BreakerSnapshot {
        loop {
            let state = self.at_rest();
            let snapshot = self.describe(state, now);
            // The state does not contain every failure, but it shows that no change of state came in between. The fence
            // is for the numbers beside it and pairs with that of `begin_change`: a thread that has seen a number of a
            // new state also sees that state.
            fence(Ordering::Acquire);
            let after = self.load();
            if (after.mode(), after.generation()) == (state.mode(), state.generation()) {
                return snapshot;
            }
        }
    }

    /// Rejects every call until another command. Rejected calls receive the longest first open time as `retry_in`.
    pub fn force_open(&self, now: &dyn Now) {
        self.command(Mode::ForcedOpen, now);
    }

    /// Admits every call and counts nothing until another command: the breaker is off.
    pub fn force_closed(&self, now: &dyn Now) {
        self.command(Mode::ForcedClosed, now);
    }

    /// Closes the breaker, forced or not, with nothing counted and the open times at their first.
    pub fn reset(&self, now: &dyn Now) {
        self.command(Mode::Closed, now);
    }

    /// Sets whether rejections are enforced, without a change of state. If they are not, calls that would have been
    /// rejected are admitted, and their results do not count.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.ledger.0.enforcement.set(enforcement as u64);
    }

    /// Returns whether rejections are enforced.
    #[must_use]
    pub fn enforcement(&self) -> Enforcement {
        let seen = self.ledger.0.enforcement.get();
        Enforcement::ALL.iter().copied().find(|&enforcement| enforcement as u64 == seen).unwrap_or_default()
    }
}

impl Breaker for CircuitBreaker {
    #[inline]
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        let state = self.load();
        // Reading the clock is left to the slow path, so that nothing has to be kept across it here.
        if state.mode() == Mode::Closed && self.rules.slow.is_none() {
            Ok(permit(state.generation(), 0))
        } else {
            self.admit_slowly(now)
        }
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        match self.enforcement() {
            Enforcement::Enforced => Duration::from_nanos(self.time_until_admission(now).unwrap_or(0)),
            Enforcement::Observed | Enforcement::Off => Duration::ZERO,
        }
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        let state = self.load();
        if state.mode() == Mode::Closed || self.enforcement() != Enforcement::Enforced {
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
    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        let is_closed_and_clean =
            self.state.load(Ordering::Relaxed) == PackedState::new(Mode::Closed, generation_of(&permit)).0;
        if is_closed_and_clean && matches!(outcome, Outcome::Success) && self.record.0.is_nothing() {
            return;
        }
        self.record_slowly(&permit, outcome, now);
    }

    fn set_enforcement(&self, enforcement: Enforcement) {
        Self::set_enforcement(self, enforcement);
    }
}

impl CircuitBreaker {
    #[inline]
    fn load(&self) -> PackedState {
        PackedState(self.state.load(Ordering::Acquire))
    }

    fn describe(&self, state: PackedState, now: &dyn Now) -> BreakerSnapshot {
        let ledger = &self.ledger.0;
        let (tally, consecutive) = match state.mode() {
            Mode::Closed => (self.record.0.tally(state.generation(), || now.now().as_nanos()), state.streak()),
            Mode::HalfOpen => (self.probes_found(state), 0),
            _ => (ledger.tripped_by(), ledger.consecutive.get()),
        };
        let transitions = ledger.transitions.get();
        BreakerSnapshot {
            state: state_of(state.mode()),
            cause: TransitionCause::of(ledger.cause.get()),
            enforcement: self.enforcement(),
            transitions,
            since: (transitions > 0).then(|| Instant::from_nanos(ledger.since.get())),
            openings: ledger.opening().number,
            consecutive,
            calls: tally.calls,
            failures: tally.failures,
            slow: tally.slow,
            probes: if state.mode() == Mode::HalfOpen { state.in_flight() } else { 0 },
            next_probe: (state.mode() == Mode::Open).then(|| Instant::from_nanos(ledger.until.get())),
            rejections: ledger.rejections.get(),
            would_have_rejected: ledger.would_have_rejected.get(),
        }
    }
}

/// Admission: what happens when a call wants to begin.
impl CircuitBreaker {
    fn permit(&self, state: PackedState, now: &dyn Now) -> BreakerPermit {
        // The clock is read only if there is a rule about slow calls.
        let start = if self.rules.slow.is_some() { now.now().as_nanos() } else { 0 };
        permit(state.generation(), start)
    }

    /// Admits or rejects a call in any state. Not inlined: `admit` handles the usual call.
    #[inline(never)]
    fn admit_slowly(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        let ledger = &self.ledger.0;
        loop {
            let state = self.load();
            match state.mode() {
                Mode::Closed => return Ok(self.permit(state, now)),
                Mode::ForcedClosed => return Ok(BreakerPermit::NONE),
                Mode::Open => {
                    let at = now.now().as_nanos();
                    if at >= ledger.until.get() {
                        match self.half_open(state, at) {
                            true => return Ok(permit(state.next_generation(), at)),
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
                        match self.swap(state, state.with_probe()) {
                            true => return Ok(permit(state.generation(), at)),
                            false => continue,
                        }
                    }
                    if self.is_overdue(state, at) {
                        self.trip(
                            state,
                            self.overdue_from(),
                            None,
                            TransitionCause::ProbeWait,
                            self.probes_found(state),
                            0,
                        );
                        continue;
                    }
                }
                Mode::ForcedOpen | Mode::Changing => {}
            }
            let Some(left) = self.time_until_admission(now) else { continue };
            match self.enforcement() {
                Enforcement::Enforced => {
                    ledger.rejections.increment();
                    return Err(BreakerOpen { retry_in: Duration::from_nanos(left) });
                }
                Enforcement::Observed => ledger.would_have_rejected.increment(),
                Enforcement::Off => {}
            }
            return Ok(BreakerPermit::NONE);
        }
    }

    /// Returns for how long calls are rejected, in nanoseconds, at least 1; `None` if a call would be admitted now.
    fn time_until_admission(&self, now: &dyn Now) -> Option<u64> {
        let ledger = &self.ledger.0;
        let state = self.load();
        let left = match state.mode() {
            Mode::Closed | Mode::ForcedClosed => 0,
            Mode::Changing => MIN_RETRY_IN,
            Mode::ForcedOpen => self.open.bounds(1).map_or(MIN_RETRY_IN, |(_, longest)| nanos(longest)),
            Mode::Open => ledger.until.get().saturating_sub(now.now().as_nanos()),
            Mode::HalfOpen if state.taken() < u64::from(self.rules.probes) => 0,
            Mode::HalfOpen => {
                let at = now.now().as_nanos();
                let overdue = self.overdue_from();
                if self.is_overdue(state, at) {
                    // It has been open since the probe was overdue, although no call has noticed.
                    overdue.saturating_add(self.length(ledger.opening().next(), None)).saturating_sub(at)
                } else {
                    // A probe that has taken this long is assumed to take as long again.
                    at.saturating_sub(ledger.probed.get()).max(MIN_RETRY_IN).min(overdue.saturating_sub(at))
                }
            }
        };
        (left > 0).then_some(left)
    }

    /// Returns when the probes in flight are overdue.
    fn overdue_from(&self) -> u64 {
        self.ledger.0.probed.get().saturating_add(self.rules.probe_wait)
    }

    fn is_overdue(&self, state: PackedState, at: u64) -> bool {
        state.in_flight() > 0 && at >= self.overdue_from()
    }

    fn length(&self, opening: Opening, hint: Option<ServerHint>) -> u64 {
        opening.length(hint, &self.open, self.seed)
    }
}

/// Results: what happens when a call ends.
impl CircuitBreaker {
    /// Records a result in any state. Not inlined: `record` handles the usual success.
    #[inline(never)]
    fn record_slowly(&self, permit: &BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        let state = self.load();
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
        let tally = self.record.0.count(generation, mark, || now.now().as_nanos());
        while self.rules.consecutive > 0 && is_still(state) {
            let streak = if mark.failed { state.streak() + 1 } else { 0 };
            if streak >= u64::from(self.rules.consecutive) {
                let tally = tally.unwrap_or_default();
                if self.trip(state, now.now().as_nanos(), hint_of(outcome), TransitionCause::Consecutive, tally, streak)
                {
                    return;
                }
            } else if streak == state.streak() || self.swap(state, state.with_streak(streak)) {
                break;
            }
            state = self.load();
        }
        let Some(tally) = tally else { return };
        let Some(cause) = self.rules.tripped(tally) else { return };
        // Repeat until it is done, or until another state has begun.
        state = self.load();
        while is_still(state) && !self.trip(state, now.now().as_nanos(), hint_of(outcome), cause, tally, state.streak())
        {
            state = self.load();
        }
    }

    /// Records a result in the half-open state.
    fn record_probe(&self, mut state: PackedState, probe: Probe, outcome: &Outcome, now: &dyn Now) {
        let generation = state.generation();
        while (state.mode(), state.generation()) == (Mode::HalfOpen, generation) {
            let Some(back) = state.with_result(probe) else { return };
            let can_fail = u64::from(self.rules.probes - self.rules.healthy_probes);
            let done = if back.healthy() >= u64::from(self.rules.healthy_probes) {
                self.close(state, now.now().as_nanos())
            } else if back.ailing() > can_fail {
                let found = self.probes_found(back);
                self.trip(state, now.now().as_nanos(), hint_of(outcome), TransitionCause::Probes, found, 0)
            } else {
                self.swap(state, back)
            };
            if done {
                return;
            }
            state = self.load();
        }
    }

    fn probes_found(&self, state: PackedState) -> Tally {
        Tally { calls: state.healthy() + state.ailing(), failures: state.ailing(), slow: 0 }
    }
}

/// Transitions from one state to the next, by one thread at a time.
impl CircuitBreaker {
    #[must_use]
    fn swap(&self, from: PackedState, to: PackedState) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Acquires the right to change the state. If this returns true, the thread must end with `enter`; nothing in
    /// between may panic or wait.
    #[must_use]
    fn begin_change(&self, from: PackedState) -> bool {
        let is_mine = from.mode() != Mode::Changing && self.swap(from, from.changing());
        fence(Ordering::Release);
        is_mine
    }

    fn enter(&self, state: PackedState, at: u64, cause: TransitionCause) {
        self.ledger.0.enter(at, cause);
        self.state.store(state.0, Ordering::Release);
    }

    /// Opens the breaker from `at` on. Returns false if the state has changed in the meantime.
    fn trip(
        &self,
        from: PackedState,
        at: u64,
        hint: Option<ServerHint>,
        cause: TransitionCause,
        tally: Tally,
        consecutive: u64,
    ) -> bool {
        if !self.begin_change(from) {
            return false;
        }
        let ledger = &self.ledger.0;
        let opening = self.next_opening(from.mode(), at);
        let length = self.length(opening, hint);
        ledger.set_opening(opening);
        ledger.open_for.set(length);
        ledger.until.set(at.saturating_add(length));
        ledger.set_tripped_by(tally, consecutive);
        self.enter(PackedState::new(Mode::Open, from.next_generation()), at, cause);
        true
    }

    /// Returns the next open time: open times grow, unless the breaker has been closed for long enough.
    fn next_opening(&self, from: Mode, at: u64) -> Opening {
        let ledger = &self.ledger.0;
        let opening = ledger.opening();
        let stable = self.open.stable_after().map_or(ledger.open_for.get(), nanos);
        if from == Mode::Closed && opening.number > 0 && at.saturating_sub(ledger.since.get()) >= stable {
            opening.restart().next()
        } else {
            opening.next()
        }
    }

    /// Moves the breaker to the half-open state, with one probe in flight.
    fn half_open(&self, from: PackedState, at: u64) -> bool {
        if !self.begin_change(from) {
            return false;
        }
        self.ledger.0.probed.raise(at);
        self.enter(PackedState::half_open(from.next_generation()), at, TransitionCause::OpenTime);
        true
    }

    fn close(&self, from: PackedState, at: u64) -> bool {
        if !self.begin_change(from) {
            return false;
        }
        self.record.0.begin(from.next_generation());
        self.enter(PackedState::new(Mode::Closed, from.next_generation()), at, TransitionCause::Probes);
        true
    }

    #[cold]
    fn command(&self, mode: Mode, now: &dyn Now) {
        let at = now.now().as_nanos();
        let from = loop {
            let state = self.at_rest();
            if self.begin_change(state) {
                break state;
            }
        };
        let ledger = &self.ledger.0;
        ledger.set_opening(ledger.opening().restart());
        ledger.set_tripped_by(Tally::default(), 0);
        self.record.0.begin(from.next_generation());
        self.enter(PackedState::new(mode, from.next_generation()), at, TransitionCause::Command);
    }

    /// Returns the state when no change is in progress, for commands and snapshots, which may wait a few nanoseconds.
    fn at_rest(&self) -> PackedState {
        loop {
            let state = self.load();
            if state.mode() != Mode::Changing {
                return state;
            }
            spin_loop();
        }
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("state", &state_of(self.load().mode()))
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
