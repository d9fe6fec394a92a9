use core::time::Duration;

use super::rate::Rate;
use super::recent::{Answers, EndedTick, RecentAnswers, TICK, TICKS};
use super::state::{PacerSnapshot, PacerState, PackedState};
use crate::guards::guard::{self, Answer, Ask, End, Guard};
use crate::guards::hold::{HeldCalls, HeldCounts, HoldSettings, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::Instant;
use crate::outcome::{FailureKind, Outcome};

/// An adaptive limit for attempts, the first of a call included: when a server refuses part of the calls, they start at
/// the rate that it admits.
///
/// Passive until the first refusal, then measured for a second, then a rate:
///
/// ```text
///            a refusal            a second later
///   Passive ───────────▶ Measuring ─────────────▶ Paced ──────▶ Exhausted
///     ▲                      ▲                      │  ▲  nothing   │
///     │   30 s in which nobody waited               │  │  admitted  │ a success
///     └─────────────────────────────────────────────┘  └────────────┘
/// ```
///
/// Time runs in ticks of 100 ms; `admitted` is the number of successes in the present tick and the nine before it.
///
/// - **A refusal while passive**: calls go on; a second later, `rate = 0.97 · the rate admitted in it`.
/// - **A refusal**, if its attempt began after the last cut, at least 500 ms after it:
///   `rate = 0.97 · min(rate, max(admitted, rate / 2))`. If calls have been held for less than a second,
///   `rate · admitted / (admitted + refused)` takes the place of `admitted`: after an idle time a second says too
///   little.
/// - **A tick without a refusal**, with a success, in which a call waited:
///   `rate · (1 + min(0.1, base · 1.3^max(0, s − 2)))`, where `s` counts the whole seconds without a refusal, and
///   `base = 0.005 · √(1000 / rate)`, between 0.002 and 0.015.
/// - **10 refusals and no success in a second**: exhausted, as a quota of a fixed window is; one call per second. At
///   the next success `rate = 0.97 · the mean since the last such success`, or measured for another second if there was
///   none.
/// - **30 s in which no call waited**: passive.
/// - **Bounds**: one call per second to a million, so it never starves.
///
/// Only [`Throttled`](FailureKind::Throttled) outcomes are refusals: if failures or timeouts counted, an outage would
/// teach a rate of one per second. A server that never refuses is never paced.
///
/// # Which calls share one
///
/// Those that the server limits together, as for a [quiet period](crate::quiet::QuietPeriod).
///
/// # Waiting
///
/// [`ask`](Guard::ask) assigns a place and says how long to wait before asking again, at most 500 ms: calls start in
/// the order of their places, at the *present* rate, so a place that was taken at a low rate does not outlast it. Late
/// timers catch up with 50 ms. A call whose turn would come too late for its limits at the present rate is rejected at
/// once, and so is one that finds
/// [`max_waiting`](Self::max_waiting) (1,024) calls before it, with the time in which it could have started.
///
/// # Units, range
///
/// Rates in thousandths of a call per second, times in nanoseconds of the caller's clock.
///
/// # Cost
///
/// Lock-free, shared by reference, no allocation. While it is passive, the start and the success of a call are one
/// relaxed load each, and the clock is not read. Otherwise each reads the clock, and a success is an addition to a
/// shared counter.
///
/// # Cancel safety
///
/// A waiting call that is dropped must [settle](Guard::settle) its permit, which the drivers do; its place is
/// then free. The turn of a call that was admitted and makes no attempt is lost.
///
/// Source: the rate limits of first attempts in Polars (#28591), Lance (#6266) and OpenDAL (#8329). Differs from them
/// in: passive until the first refusal; a rate that is measured and not searched for; growth by the root of the rate
/// (binomial congestion control, D. Bansal and H. Balakrishnan, 2001), so that processes that share a limit converge.
#[derive(Debug)]
pub struct Pacer {
    /// Loaded by every call.
    state: AtomicU64,
    settings: HoldSettings,
    /// When the state or the rate last changed, other than by growth.
    changed_at: AtomicU64,
    /// How many successes there were when measuring began.
    measured_from: AtomicU64,
    /// The time of the last released call, by which the next is due.
    released: AtomicU64,
    /// The last tick with a refusal.
    refused_tick: AtomicU64,
    /// The last tick in which a call was held, and the first of those without a pause of half a second.
    held_tick: AtomicU64,
    held_since: AtomicU64,
    /// When the server last admitted a call after it was exhausted, and how many successes there were; 0 if never.
    reopened_at: AtomicU64,
    reopened_from: AtomicU64,
    recent: RecentAnswers,
    held: HeldCalls,
    activations: AtomicU64,
    cuts: AtomicU64,
}

const SECOND: u64 = TICK * TICKS;
/// The shortest time between two cuts: what was admitted before a cut is part of the second by which the next one goes.
const MIN_CUT: u64 = SECOND / 2;
/// How far a release may lag behind the rate and catch up: timers are late.
const LATENESS: u64 = SECOND / 20;
/// How long a waiting call sleeps at most before it asks again, because the rate may have risen.
const RECHECK: u64 = SECOND / 2;
/// How many refusals in a second without a success show that the server is exhausted.
const EXHAUSTED: u64 = 10;
/// For how many ticks no call may wait before the pacer becomes passive.
const IDLE: u64 = 30 * TICKS;
/// After how many ticks without a held call the demand counts as interrupted.
const INTERRUPTED: u64 = TICKS / 2;
/// No call has been held.
const NEVER: u64 = u64::MAX;

impl Pacer {
    const_unless_loom! {
        /// Creates a pacer with the default settings, passive.
        #[must_use]
        pub const fn new() -> Self {
            Self::of(HoldSettings::DEFAULT)
        }

        pub(super) const fn of(settings: HoldSettings) -> Self {
            Self {
                state: AtomicU64::new(PackedState::FIRST.0),
                settings,
                changed_at: AtomicU64::new(0),
                measured_from: AtomicU64::new(0),
                released: AtomicU64::new(0),
                refused_tick: AtomicU64::new(0),
                held_tick: AtomicU64::new(0),
                held_since: AtomicU64::new(NEVER),
                reopened_at: AtomicU64::new(0),
                reopened_from: AtomicU64::new(0),
                recent: RecentAnswers::new(),
                held: HeldCalls::new(settings),
                activations: AtomicU64::new(0),
                cuts: AtomicU64::new(0),
            }
        }
    }

    /// Sets for how long a call waits at most, beside its own limits. If its turn will not come within this time at the
    /// present rate, it is rejected at once. Default: no limit but that of the call.
    #[must_use]
    pub fn max_wait(self, longest: Duration) -> Self {
        Self::of(self.settings.max_wait(longest))
    }

    /// Sets how many calls wait at most; further ones are rejected. With 0 every call is rejected at once that would
    /// have to wait. Default: 1,024. Range: up to 1,000,000; more counts as that.
    #[must_use]
    pub fn max_waiting(self, calls: u32) -> Self {
        Self::of(self.settings.max_waiting(calls))
    }

    /// Returns a snapshot for metrics. The fields are read one by one, so during a change they may be of two states.
    #[must_use]
    pub fn snapshot(&self) -> PacerSnapshot {
        let packed = self.load();
        let interval = if packed.is_paced() { packed.rate().interval() } else { 0 };
        let HeldCounts { waiting, waited, rejected } = self.held.counts();
        PacerSnapshot {
            state: packed.state(),
            interval: Duration::from_nanos(interval),
            waiting,
            activations: self.activations.load(Ordering::Relaxed),
            cuts: self.cuts.load(Ordering::Relaxed),
            waited,
            rejected,
        }
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard for Pacer {
    fn name(&self) -> &'static str {
        "pacer"
    }

    #[inline]
    fn ask(&self, ask: Ask, held: guard::Permit, now: &dyn Now) -> Answer {
        if self.is_passive() && held == guard::Permit::NONE {
            return Answer::Go(guard::Permit::NONE);
        }
        self.admit_slowly(&held, ask.latest, now)
    }

    #[inline]
    fn settle(&self, permit: guard::Permit, end: End<'_>, now: &dyn Now) {
        let outcome = match end {
            End::Made(outcome) => outcome,
            End::NeverMade => return self.held.leave(Permit::unpack(&permit)),
        };
        let is_refusal = is_refusal(outcome);
        if is_refusal || !self.is_passive() {
            self.record_slowly(Permit::unpack(&permit), outcome, is_refusal, now);
        }
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        let packed = self.load();
        if !packed.is_paced() {
            return Duration::ZERO;
        }
        let at = now.now().as_nanos();
        let due = self.due(packed, at);
        Duration::from_nanos(due.turn(self.held.waiting()).saturating_sub(at))
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        self.is_passive() && self.held.waiting() == 0
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::of(self.settings))
    }
}

/// The next release, and those after it.
#[derive(Clone, Copy)]
struct Due {
    released: u64,
    next: u64,
    interval: u64,
}

impl Due {
    /// Returns when the call starts that has this many before it.
    const fn turn(self, before: u32) -> u64 {
        self.next.saturating_add(self.interval.saturating_mul(before as u64))
    }
}

/// Admission: what happens when a call wants to start.
impl Pacer {
    #[inline(never)]
    fn admit_slowly(&self, permit: &guard::Permit, latest: Option<Instant>, now: &dyn Now) -> Answer {
        let permit = Permit::unpack(permit);
        let at = now.now().as_nanos();
        self.advance(at);
        loop {
            let packed = self.load();
            if !packed.is_paced() {
                self.held.leave(permit);
                return Answer::Go(guard::Permit::NONE);
            }
            let (due, admitted) = (self.due(packed, at), Permit::Admitted { generation: packed.generation() });
            let turn = due.turn(self.held.before(permit));
            if turn > at {
                // Not a store: a thread that was suspended must not move it back.
                self.held_tick.fetch_max(at / TICK, Ordering::Relaxed);
                return self.held.hold(permit, latest, at, turn, Some(RECHECK));
            }
            // Of several calls whose turn it is, one takes this release. The others predict the next one and ask again.
            if self.released.compare_exchange(due.released, due.next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.held.leave(permit);
                return Answer::Go(admitted.pack());
            }
        }
    }

    fn due(&self, packed: PackedState, at: u64) -> Due {
        let (released, interval) = (self.released.load(Ordering::Acquire), packed.rate().interval());
        let next = released.saturating_add(interval).max(at.saturating_sub(LATENESS));
        Due { released, next, interval }
    }
}

/// The rate: what is learned from outcomes.
impl Pacer {
    #[inline(never)]
    fn record_slowly(&self, permit: Permit, outcome: &Outcome, is_refusal: bool, now: &dyn Now) {
        self.held.leave(permit);
        if is_refusal {
            self.refused(permit, now.now().as_nanos());
        } else if matches!(outcome, Outcome::Success) {
            let at = now.now().as_nanos();
            self.advance(at);
            self.recent.success();
            let packed = self.load();
            if packed.state() == PacerState::Exhausted {
                self.reopen(packed, at);
            }
        }
    }

    fn refused(&self, permit: Permit, at: u64) {
        let packed = self.load();
        if packed.is_passive() {
            self.measure(packed, at);
        }
        self.advance(at);
        self.recent.refusal();
        self.refused_tick.fetch_max(at / TICK, Ordering::Relaxed);
        let packed = self.load();
        let is_new = permit == Permit::Admitted { generation: packed.generation() };
        let since = at.saturating_sub(self.changed_at.load(Ordering::Acquire));
        if packed.state() == PacerState::Paced && is_new && since >= MIN_CUT {
            self.cut(packed, at);
        }
    }

    /// Begins to measure what the server admits, after the first refusal. Of several threads, all find the same.
    fn measure(&self, packed: PackedState, at: u64) {
        // Before the state, so that a thread that sees it measure sees from where.
        self.recent.restart(at);
        self.held_since.store(NEVER, Ordering::Relaxed);
        self.reopened_at.store(0, Ordering::Relaxed);
        self.measured_from.store(self.recent.successes(), Ordering::Relaxed);
        self.changed_at.store(at, Ordering::Release);
        if self.swap(packed, packed.next(PacerState::Measuring, Rate::LEAST)) {
            self.activations.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Does what is due at the beginning of a tick.
    fn advance(&self, at: u64) {
        let Some(ended) = self.recent.begin_tick(at) else { return };
        let packed = self.load();
        match packed.state() {
            PacerState::Passive => {}
            PacerState::Measuring => self.end_measuring(packed, ended, at),
            PacerState::Paced | PacerState::Exhausted => self.end_tick(packed, ended, at),
        }
    }

    fn end_measuring(&self, packed: PackedState, ended: EndedTick, at: u64) {
        let length = at.saturating_sub(self.changed_at.load(Ordering::Acquire));
        if length < SECOND {
            return;
        }
        let tick = at / TICK;
        // A second without a call measures nothing.
        let next = if tick - ended.tick > TICKS {
            packed.next(PacerState::Passive, Rate::LEAST)
        } else {
            match self.recent.successes_since(self.measured_from.load(Ordering::Relaxed)) {
                0 => packed.next(PacerState::Exhausted, Rate::LEAST),
                successes => packed.next(PacerState::Paced, Rate::of(successes, length).below()),
            }
        };
        self.released.store(at.saturating_sub(next.rate().interval()), Ordering::Release);
        self.held_tick.fetch_max(tick, Ordering::Relaxed);
        self.refused_tick.fetch_max(tick, Ordering::Relaxed);
        self.changed_at.store(at, Ordering::Release);
        // If it fails, another thread has ended a later tick.
        let _ = self.swap(packed, next);
    }

    fn end_tick(&self, packed: PackedState, ended: EndedTick, at: u64) {
        let (held_tick, waits) = (self.held_tick.load(Ordering::Relaxed), self.held.waiting() > 0);
        if !waits && (at / TICK).saturating_sub(held_tick) >= IDLE {
            let _ = self.swap(packed, packed.next(PacerState::Passive, Rate::LEAST));
            return;
        }
        let was_held = waits || held_tick >= ended.tick;
        if !waits && (at / TICK).saturating_sub(held_tick) >= INTERRUPTED {
            self.held_since.store(NEVER, Ordering::Relaxed);
        } else if was_held {
            self.held_tick.fetch_max(ended.tick, Ordering::Relaxed);
            if self.held_since.load(Ordering::Relaxed) == NEVER {
                self.held_since.store(ended.tick, Ordering::Relaxed);
            }
        }
        let refused_tick = self.refused_tick.load(Ordering::Relaxed);
        let is_clean = ended.had_success && refused_tick < ended.tick;
        if was_held && is_clean && packed.state() == PacerState::Paced {
            let clean_seconds = (ended.tick - refused_tick) / TICKS;
            // If it fails, the rate was cut in the meantime.
            let _ = self.swap(packed, packed.with_rate(packed.rate().grown(clean_seconds)));
        }
    }

    /// Cuts the rate. The generation changes, so refusals of attempts that began before do not cut it again.
    fn cut(&self, packed: PackedState, at: u64) {
        let Answers { successes, refusals } = self.recent.last_second();
        let held_since = self.held_since.load(Ordering::Relaxed);
        let is_held_for_a_second = held_since.saturating_add(TICKS) <= at / TICK;
        let mut seen = packed;
        loop {
            let rate = seen.rate();
            let admitted =
                if is_held_for_a_second { Rate::of(successes, SECOND) } else { rate.share(successes, refusals) };
            let next = match (successes, refusals) {
                (0, EXHAUSTED..) => seen.next(PacerState::Exhausted, Rate::LEAST),
                _ => seen.next(PacerState::Paced, rate.cut(admitted)),
            };
            if self.swap(seen, next) {
                self.changed_at.store(at, Ordering::Release);
                self.cuts.fetch_add(1, Ordering::Relaxed);
                return;
            }
            seen = self.load();
            // Only growth leaves the generation as it is.
            if seen.generation() != packed.generation() {
                return;
            }
        }
    }

    /// Returns to a rate after the server has admitted a call again.
    fn reopen(&self, packed: PackedState, at: u64) {
        let successes = self.recent.successes();
        let mean = match self.reopened_at.load(Ordering::Acquire) {
            0 => Rate::LEAST,
            since => {
                let from = self.reopened_from.load(Ordering::Relaxed);
                Rate::of(self.recent.successes_since(from), at.saturating_sub(since))
            }
        };
        let next = if mean > Rate::LEAST {
            packed.next(PacerState::Paced, mean.below())
        } else {
            packed.next(PacerState::Measuring, Rate::LEAST)
        };
        self.measured_from.store(successes, Ordering::Relaxed);
        self.refused_tick.fetch_max(at / TICK, Ordering::Relaxed);
        self.changed_at.store(at, Ordering::Release);
        if self.swap(packed, next) {
            self.reopened_from.store(successes, Ordering::Relaxed);
            self.reopened_at.store(at.max(1), Ordering::Release);
        }
    }

    #[inline]
    fn is_passive(&self) -> bool {
        PackedState(self.state.load(Ordering::Relaxed)).is_passive()
    }

    fn load(&self) -> PackedState {
        PackedState(self.state.load(Ordering::Acquire))
    }

    #[must_use]
    fn swap(&self, from: PackedState, to: PackedState) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[inline]
const fn is_refusal(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Failed { kind: FailureKind::Throttled, .. }
            | Outcome::UnsafeToRetry { kind: FailureKind::Throttled, .. }
    )
}
