use core::fmt;
use core::time::Duration;

use super::builder::CircuitBreakerBuilder;
use super::ledger::Ledger;
use super::packed_state::{Mode, PackedState, generation_of, permit};
use super::rules::Rules;
use super::snapshot::{BreakerSnapshot, BreakerState, TransitionCause};
use super::window::Record;
use crate::instant::nanos;
use crate::sync::{AtomicU64, Ordering, Padded, fence};
use crate::{
    Breaker, BreakerOpen, Instant, Outcome, Policy, Seed, guard::BreakerPermit, guard::Enforcement, guard::Now,
};

/// A circuit breaker: while a server is down, its callers are told so at once, and it is asked by a few probes only.
///
/// ```text
///              a rule trips                     open time over
///   Closed ───────────────────▶ Open ──────────────────────────────▶ HalfOpen
///     ▲                          ▲   a probe fails, or is overdue       │
///     │                          └──────────────────────────────────────┤
///     └─────────────────────────────────────────────────────────────────┘
///                       as many probes as asked for are healthy
/// ```
///
/// What an outcome says is its [verdict](Outcome::verdict): a permanent failure is an answer, and so a success; what
/// was cancelled, never reached the server or failed for want of our own resources counts as nothing, and a probe that
/// ends so gives its place to another. A result counts for the state that admitted its call, and for no later one.
///
/// # What it bounds
///
/// Once it has opened, the server sees no call but those on their way for the open time, then at most
/// [`probes`](CircuitBreakerBuilder::probes) at a time: over any time in which it stays down, at most
/// `probes · (1 + time / shortest open time)` attempts from this client, whatever the number of callers and retries.
/// Probes that are cancelled come on top of that, one for one.
///
/// # Costs
///
/// It is shared by reference and by any number of threads, has no lock and does not allocate. While it is closed
/// [`admit`](Breaker::admit) is one load; it reads the clock only if calls can be slow. A success is one load more,
/// unless failures came just before it; with a [`Window`](super::Window) it is a compare-and-swap on a word that all
/// threads share, and with a window of time a reading of the clock. For the few nanoseconds of a change of state, calls
/// are refused.
///
/// # When not
///
/// It stops healthy calls with the ailing ones: for a server that sheds some of its load, or a target that is many
/// servers, a [`Budget`](crate::Budget) is better. And it is no use to a client that makes fewer calls in an open time
/// than it takes to trip.
pub struct CircuitBreaker {
    pub(super) state: AtomicU64,
    pub(super) rules: Rules,
    pub(super) open: Policy,
    pub(super) seed: Seed,
    pub(super) record: Padded<Record>,
    pub(super) ledger: Padded<Ledger>,
}

impl CircuitBreaker {
    /// A breaker that opens after five failures in a row, for half of five seconds to five seconds at first, up to a
    /// minute, and closes after one healthy probe.
    ///
    /// The seed draws its open times: breakers with one seed send their probes together.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        match Self::builder(seed).consecutive(5).build() {
            Ok(breaker) => breaker,
            // It does not depend on the seed whether there is a fault, and a test builds it.
            Err(error) => unreachable!("{error}"),
        }
    }

    /// A breaker with rules of its own; it needs at least one.
    pub const fn builder(seed: Seed) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(seed)
    }

    pub(super) fn of(rules: Rules, record: Record, open: Policy, seed: Seed) -> Self {
        let state = AtomicU64::new(PackedState::FIRST.0);
        Self { state, rules, open, seed, record: Padded(record), ledger: Padded(Ledger::default()) }
    }

    /// What it does. An open time that is over is noticed by the next call: until then it is `Open`.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        state_of(self.at_rest().mode())
    }

    /// How many changes of state there have been: one load, to be polled for changes.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.ledger.0.transitions.get()
    }

    /// It, for metrics and events. The clock is read for a window of time.
    #[must_use]
    pub fn snapshot(&self, now: &dyn Now) -> BreakerSnapshot {
        loop {
            let state = self.at_rest();
            let snapshot = self.describe(state, now);
            // The word does not tell every failure, but it tells that no change of state came in between. The fence is
            // for the numbers beside it, with that of `begin_change`: who has seen one of a new state sees the word too.
            fence(Ordering::Acquire);
            let after = self.load();
            if (after.mode(), after.generation()) == (state.mode(), state.generation()) {
                return snapshot;
            }
        }
    }

    /// Refuses every call until it is told otherwise. Calls are told to come back after the longest first open time.
    pub fn force_open(&self, now: &dyn Now) {
        self.command(Mode::ForcedOpen, now);
    }

    /// Lets every call pass and counts nothing until it is told otherwise: the breaker is off.
    pub fn force_closed(&self, now: &dyn Now) {
        self.command(Mode::ForcedClosed, now);
    }

    /// Closes it, forced or not, with nothing counted and the open times at their first.
    pub fn reset(&self, now: &dyn Now) {
        self.command(Mode::Closed, now);
    }

    /// Whether its refusals are kept to; while the program runs, and without a change of its state. If they are not,
    /// calls that it would have refused pass, and their results count for nothing.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.ledger.0.enforcement.set(enforcement as u64);
    }

    /// Whether its refusals are kept to.
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
        // The clock is left to those who wait for it, so that nothing has to be kept across a reading of it here.
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
            // By then the probes may be back: the attempt asks again when it begins.
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
    pub(super) fn load(&self) -> PackedState {
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
            refusals: ledger.refusals.get(),
            would_have_refused: ledger.would_have_refused.get(),
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
