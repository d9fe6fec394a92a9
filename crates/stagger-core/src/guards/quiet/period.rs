//! The quiet period: which calls start, wait or are rejected.

use core::time::Duration;

use super::builder::{QuietPeriodBuilder, QuietSettings};
use super::pace::{Pace, SLOWEST};
use super::recent::{AdmittedRate, Finding, RecentOutcomes};
use super::state::{PackedState, QuietSnapshot, QuietState, QuietTrigger};
use crate::guards::guard::{self, Answer, Ask, End, Guard};
use crate::guards::hold::{HeldCalls, HeldCounts, Permit};
use crate::guards::now::Now;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};
use crate::outcome::Outcome;

/// One pause for all calls to a target: when the server asks one call to wait, the others do not ask again.
///
/// ```text
///            a hint, or too many refusals             pause over
///   Open ──────────────────────────────────▶ Quiet ──────────────▶ Probing
///     ▲                                      ▲   ▲    refused         │
///     │                                 hint │   └────────────────────┤
///     │   nobody waits                       │                        │ answered
///     └─────────────────────────────── Returning ◀────────────────────┘
/// ```
///
/// - **A hint begins it**, unless calls are just returning and others are answered: a
///   [`Throttled`](crate::outcome::FailureKind::Throttled) outcome with
///   [`ServerHint::AtLeast`](crate::outcome::ServerHint::AtLeast): `until = max(until, now + min(hint, max))`. Other
///   hints begin nothing: a reservation is one caller's own.
/// - **Refusals begin it if asked for** ([`QuietTrigger::HintsAndRefusals`]): more than 20 % of the last 50 outcomes
///   are throttled. It lasts for 1 s, then for twice the last pause, at most 32 s, until 50 outcomes in a row are not
///   throttled.
/// - **While it is quiet** no call starts. Calls in flight are left alone: their refusals can lengthen the pause, and
///   their successes do not end it.
/// - **At its end** one call is the probe, a retry only if 100 ms pass without a first attempt. If it is refused, the
///   pause begins again, with its hint or twice as long (1 s to 32 s). If it is cancelled, the next call is the probe;
///   if it takes longer than `probe_wait`, another is.
/// - **In the return** waiting calls start one by one at the rate at which the server admitted calls in the last second
///   before the pause (at least 1/s), doubling every 5 s. A refusal, with a hint or without, multiplies the rate by
///   0.7, at most once a second and once for all calls that began before the cut. From then on the rate approaches the
///   refused one for 5 s and stays near it, as CUBIC does (RFC 9438). If nothing was answered for a second, a hint
///   begins another pause.
/// - **It opens again** when no call waits; if calls were rejected, when none was for a second of the return.
///
/// The paced return is the point of it: if all calls started together at the end of the pause, or spread over a few
/// seconds, more of them would fail than without any pause.
///
/// # Which calls share one
///
/// Those that the server limits together. A `429` belongs to a quota, so calls with other credentials need a quiet
/// period of their own; a `503` belongs to a host.
///
/// # Waiting
///
/// [`ask`](Guard::ask) assigns a place and says how long to wait before asking again. It is a prediction from the
/// current rate: if that changed in the meantime, the call is told to wait on. A call whose turn would come too late
/// for its limits is rejected at once. Calls start about in the order of their places.
///
/// # Units, defaults, range
///
/// Times in nanoseconds of the caller's clock, pauses to the microsecond, rounded up. A pause lasts at most
/// [`max`](QuietPeriodBuilder::max) (5 min); at most [`max_waiting`](QuietPeriodBuilder::max_waiting) (1,024) calls
/// wait.
///
/// # Cost
///
/// Lock-free, shared by reference, no allocation. While it is open, a call costs one relaxed load to start; a success
/// costs two loads and an increment that is not a locked instruction. So that the rate is known when it is needed,
/// every 32nd success of a thread reads the clock, unless its [`earlier`](Now::earlier) time says that the last reading
/// is less than a second old. At rates below that, the learned rate is a mean over more than the last second.
///
/// # Cancel safety
///
/// A waiting call that is dropped must [settle](Guard::settle) its permit, which the drivers do; its place is
/// then free.
///
/// Source: the shared pauses of ScyllaDB (#30775), git-lfs (#6322) and icechunk (#2408). Differs from them in: the
/// probe, and the paced return.
#[derive(Debug)]
pub struct QuietPeriod {
    /// Loaded by every call, and changed by pauses only.
    pub(super) state: AtomicU64,
    pub(super) recent: RecentOutcomes,
    pub(super) settings: QuietSettings,
    /// When the next waiting call is released.
    pub(super) next: AtomicU64,
    /// The time between two releases, at the time of the state.
    pub(super) interval: AtomicU64,
    /// 1 if the rate was cut since the pause began: then it approaches the refused one. Otherwise 0.
    pub(super) was_cut: AtomicU64,
    /// The length of the last pause; 0 after a clean window.
    pub(super) pause: AtomicU64,
    /// When a call was last rejected, since the pause began; 0 if none was.
    pub(super) rejected_at: AtomicU64,
    /// When a call was last answered in a return.
    pub(super) answered_at: AtomicU64,
    pub(super) held: HeldCalls,
    pub(super) admitted: AdmittedRate,
    /// How many pauses have begun.
    pub(super) pauses: AtomicU64,
}

/// How far behind its pace a return may catch up: timers are late.
const LATENESS: u64 = 50_000_000;
/// How much later than a first attempt a retry may be the probe: it was refused itself, and may be again for reasons
/// that are its own.
const RETRY_LATER: u64 = 100_000_000;
/// How long a probe is assumed to take at least.
const MIN_PROBE: u64 = 1_000_000;
/// For how long no call may have been rejected before a return ends.
const UNREJECTED: u64 = 1_000_000_000;

impl QuietPeriod {
    const_unless_loom! {
        /// Creates a quiet period with the default settings, open.
        #[must_use]
        pub const fn new() -> Self {
            Self::of(QuietSettings::DEFAULT)
        }

        pub(super) const fn of(settings: QuietSettings) -> Self {
            Self {
                state: AtomicU64::new(PackedState::FIRST.0),
                recent: RecentOutcomes::new(),
                settings,
                next: AtomicU64::new(0),
                interval: AtomicU64::new(SLOWEST),
                was_cut: AtomicU64::new(0),
                pause: AtomicU64::new(0),
                rejected_at: AtomicU64::new(0),
                answered_at: AtomicU64::new(0),
                held: HeldCalls::new(settings.hold),
                admitted: AdmittedRate::new(),
                pauses: AtomicU64::new(0),
            }
        }
    }

    /// Creates a builder with the default settings.
    pub const fn builder() -> QuietPeriodBuilder {
        QuietPeriodBuilder::DEFAULT
    }

    /// Begins a pause of this length, as a hint of the server would, or lengthens the present one.
    pub fn pause(&self, length: Duration, now: &dyn Now) {
        self.pause_for(nanos(length), now.now().as_nanos());
    }

    /// Returns a snapshot for metrics. The fields are read one by one, so during a change they may be of two states.
    #[must_use]
    pub fn snapshot(&self, now: &dyn Now) -> QuietSnapshot {
        let state = self.load();
        let at = || now.now().as_nanos();
        let remaining = match state.mode() {
            QuietState::Quiet => state.time(at()).saturating_sub(at()),
            _ => 0,
        };
        let HeldCounts { waiting, waited, rejected } = self.held.counts();
        QuietSnapshot {
            state: state.mode(),
            remaining: Duration::from_nanos(remaining),
            interval: Duration::from_nanos(self.interval.load(Ordering::Relaxed)),
            waiting,
            pauses: self.pauses.load(Ordering::Relaxed),
            waited,
            rejected,
        }
    }
}

impl Guard for QuietPeriod {
    fn name(&self) -> &'static str {
        "quiet"
    }

    #[inline]
    fn ask(&self, ask: Ask, held: guard::Permit, now: &dyn Now) -> Answer {
        // Nothing beside the word is needed while it is open.
        let state = PackedState(self.state.load(Ordering::Relaxed));
        if state.is_open() && held == guard::Permit::NONE {
            return Answer::Go(Permit::Admitted { generation: state.generation() }.pack());
        }
        self.admit_slowly(&held, ask, now)
    }

    #[inline]
    fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        !PackedState(self.state.load(Ordering::Relaxed)).is_open() && self.would_reject_slowly(after, latest, now)
    }

    #[inline]
    fn settle(&self, permit: guard::Permit, end: End<'_>, now: &dyn Now) {
        let outcome = match end {
            End::Made(outcome) => outcome,
            End::NeverMade => return self.give_back(Permit::unpack(&permit)),
        };
        if matches!(outcome, Outcome::Success) {
            self.admitted.count(now);
            if self.recent.is_clean() && PackedState(self.state.load(Ordering::Relaxed)).is_open() {
                return;
            }
        }
        self.record_slowly(Permit::unpack(&permit), outcome, now);
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        let state = self.load();
        if state.is_open() {
            return Duration::ZERO;
        }
        let at = now.now().as_nanos();
        Duration::from_nanos(self.turn(state, self.held.waiting(), Ask::FIRST, at).saturating_sub(at))
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        self.load().is_open() && self.recent.is_clean() && self.held.waiting() == 0
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self::of(self.settings))
    }
}

/// Admission: what happens when a call wants to start.
impl QuietPeriod {
    #[inline(never)]
    fn admit_slowly(&self, permit: &guard::Permit, ask: Ask, now: &dyn Now) -> Answer {
        let permit = Permit::unpack(permit);
        let at = now.now().as_nanos();
        loop {
            let state = self.load();
            let admitted = match state.mode() {
                QuietState::Open => Some(Permit::Admitted { generation: state.generation() }),
                QuietState::Quiet | QuietState::Probing if at >= self.next_probe(state, at, ask) => {
                    let probing = state.probing(at);
                    if !self.swap(state, probing) {
                        continue;
                    }
                    Some(Permit::Probe { generation: probing.generation() })
                }
                QuietState::Returning => match self.release_next(state, permit, at) {
                    Ok(is_released) => is_released.then_some(Permit::Admitted { generation: state.generation() }),
                    Err(Raced) => continue,
                },
                QuietState::Quiet | QuietState::Probing => None,
            };
            let Some(admitted) = admitted else { return self.hold(state, permit, ask, at) };
            self.held.leave(permit);
            if state.mode() == QuietState::Returning {
                self.open_if_nobody_waits(state, at);
            }
            return Answer::Go(admitted.pack());
        }
    }

    /// Returns when this attempt could be another probe.
    fn next_probe(&self, state: PackedState, at: u64, ask: Ask) -> u64 {
        let next = match state.mode() {
            QuietState::Probing => state.time(at).saturating_add(self.settings.probe_wait),
            _ => state.time(at),
        };
        if ask.is_first { next } else { next.saturating_add(RETRY_LATER) }
    }

    /// Takes the next release of a return, if it is due. A call that has not waited does not overtake those that do.
    fn release_next(&self, state: PackedState, permit: Permit, at: u64) -> Result<bool, Raced> {
        let next = self.next.load(Ordering::Acquire);
        let has_waited = matches!(permit, Permit::Waiting { .. });
        if at < next || !has_waited && self.held.waiting() > 0 {
            return Ok(false);
        }
        let after = next.max(at.saturating_sub(LATENESS)).saturating_add(self.pace(state, at).interval_at(at));
        match self.next.compare_exchange(next, after, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(true),
            Err(_) => Err(Raced),
        }
    }

    /// Lets a call wait, or rejects it.
    fn hold(&self, state: PackedState, permit: Permit, ask: Ask, at: u64) -> Answer {
        let predicted = self.turn(state, self.held.before(permit), ask, at);
        let turn = self.held.hold(permit, ask.latest, at, predicted, None);
        if matches!(turn, Answer::No { .. }) {
            self.rejected_at.store(at.max(1), Ordering::Relaxed);
        }
        turn
    }

    /// Predicts when a call starts that has this many before it. The first of them is the probe.
    fn turn(&self, state: PackedState, before: u32, ask: Ask, at: u64) -> u64 {
        match state.mode() {
            QuietState::Open => at,
            QuietState::Quiet => {
                let end = state.time(at).max(at);
                self.pace_since(end).turn(end, before).max(self.next_probe(state, at, ask))
            }
            QuietState::Probing => {
                // A probe that has taken this long is assumed to take as long again.
                let taken = at.saturating_sub(state.time(at)).max(MIN_PROBE);
                let answer = at.saturating_add(taken).min(self.next_probe(state, at, ask));
                self.pace_since(answer).turn(answer.max(at), before)
            }
            QuietState::Returning => self.pace(state, at).turn(self.next.load(Ordering::Acquire).max(at), before),
        }
    }

    fn would_reject_slowly(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        let (state, at) = (self.load(), now.now().as_nanos());
        let start = at.saturating_add(nanos(after));
        // Only the end of a pause is certain: the attempt asks again when it is due.
        let held_until = match state.mode() {
            QuietState::Quiet if state.time(at) > start => state.time(at),
            _ => return false,
        };
        self.settings.hold.is_too_long(start, held_until, 0, latest)
    }

    /// Ends the return when nobody waits. If calls were rejected, they may come back together, so the return goes on
    /// until none has been rejected for a while.
    fn open_if_nobody_waits(&self, state: PackedState, at: u64) {
        let rejected_at = self.rejected_at.load(Ordering::Relaxed);
        let is_wanted = rejected_at != 0 && at < rejected_at.max(state.time(at)).saturating_add(UNREJECTED);
        if self.held.waiting() == 0 && !is_wanted {
            // If it fails, the pace was cut or a pause began: then calls are held again.
            let _ = self.swap(state, state.open());
        }
    }
}

/// What admission and results have in common.
impl QuietPeriod {
    /// Returns the pace of a return.
    pub(super) fn pace(&self, state: PackedState, at: u64) -> Pace {
        self.pace_since(state.time(at))
    }

    /// Returns the pace of a return that begins or was cut at this time.
    pub(super) fn pace_since(&self, since: u64) -> Pace {
        let interval = self.interval.load(Ordering::Acquire);
        Pace { since, interval, was_cut: self.was_cut.load(Ordering::Relaxed) != 0 }
    }

    pub(super) fn load(&self) -> PackedState {
        PackedState(self.state.load(Ordering::Acquire))
    }

    #[must_use]
    pub(super) fn swap(&self, from: PackedState, to: PackedState) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Another call has taken the release.
struct Raced;

/// What the settings say.
impl QuietPeriod {
    /// Returns what begins a pause.
    #[must_use]
    pub const fn trigger(&self) -> QuietTrigger {
        self.settings.trigger
    }

    /// Returns the longest pause that a hint can cause.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.settings.max)
    }

    /// Counts a refusal without a hint, and returns whether there are too many, if they begin a pause.
    pub(super) fn has_too_many_refusals(&self) -> bool {
        self.settings.trigger == QuietTrigger::HintsAndRefusals && self.recent.count(true) == Finding::TooManyRefusals
    }
}

impl Default for QuietPeriod {
    fn default() -> Self {
        Self::new()
    }
}
