//! The changes of a breaker's state, and the data that belong to one.

use core::time::Duration;

use super::state::{Mode, PackedState, TransitionCause};
use super::window::{Record, Tally};
use crate::numbers::atomic::{AtomicU64, Ordering, Padded, fence, spin_loop};
use crate::numbers::instant::nanos;
use crate::numbers::random::{Purpose, Seed};
use crate::outcome::ServerHint;
use crate::policy::Policy;

/// The state of a breaker with its data. It is changed by one thread at a time.
pub(super) struct Transitions {
    state: AtomicU64,
    pub(super) open: Policy,
    seed: Seed,
    record: Padded<Record>,
    ledger: Padded<Ledger>,
}

impl Transitions {
    pub(super) fn new(record: Record, open: Policy, seed: Seed) -> Self {
        let state = AtomicU64::new(PackedState::FIRST.0);
        Self { state, open, seed, record: Padded(record), ledger: Padded(Ledger::default()) }
    }

    /// Returns the first state, with the same settings and nothing counted.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.record().fresh(), self.open, self.seed)
    }

    #[inline]
    pub(super) fn load(&self) -> PackedState {
        PackedState(self.state.load(Ordering::Acquire))
    }

    /// Returns whether this is the state, without making its data visible.
    #[inline]
    pub(super) fn is_at(&self, state: PackedState) -> bool {
        self.state.load(Ordering::Relaxed) == state.0
    }

    #[inline]
    pub(super) const fn record(&self) -> &Record {
        &self.record.0
    }

    #[inline]
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger.0
    }

    /// Returns the state when no change is in progress, for commands and snapshots, which may wait a few nanoseconds.
    pub(super) fn at_rest(&self) -> PackedState {
        loop {
            let state = self.load();
            if state.mode() != Mode::Changing {
                return state;
            }
            spin_loop();
        }
    }

    #[must_use]
    pub(super) fn swap(&self, from: PackedState, to: PackedState) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Changes the state to `to` of the next generation; `prepare` writes its data, and must neither panic nor wait.
    /// Returns false if the state has changed in the meantime.
    fn change(
        &self,
        from: PackedState,
        to: impl FnOnce(u64) -> PackedState,
        at: u64,
        cause: TransitionCause,
        prepare: impl FnOnce(&Ledger, u64),
    ) -> bool {
        let is_mine = from.mode() != Mode::Changing && self.swap(from, from.changing());
        // Pairs with the fence of a snapshot.
        fence(Ordering::Release);
        if is_mine {
            let generation = from.next_generation();
            prepare(self.ledger(), generation);
            self.ledger().enter(at, cause);
            self.state.store(to(generation).0, Ordering::Release);
        }
        is_mine
    }

    /// Opens the breaker from `at` on. Returns false if the state has changed in the meantime.
    pub(super) fn trip(
        &self,
        from: PackedState,
        at: u64,
        hint: Option<ServerHint>,
        cause: TransitionCause,
        tally: Tally,
        consecutive: u64,
    ) -> bool {
        let open = |generation| PackedState::new(Mode::Open, generation);
        self.change(from, open, at, cause, |ledger, _| {
            let opening = self.next_opening(from.mode(), at);
            let length = self.length(opening, hint);
            ledger.set_opening(opening);
            ledger.open_for.set(length);
            ledger.until.set(at.saturating_add(length));
            ledger.set_tripped_by(tally, consecutive);
        })
    }

    /// Returns the length of an open time, in nanoseconds.
    pub(super) fn length(&self, opening: Opening, hint: Option<ServerHint>) -> u64 {
        opening.length(hint, &self.open, self.seed)
    }

    /// Returns the next open time: open times grow, unless the breaker has been closed for long enough.
    fn next_opening(&self, from: Mode, at: u64) -> Opening {
        let opening = self.ledger().opening();
        if from == Mode::Closed && opening.number > 0 && self.is_stable(at) {
            opening.restart().next()
        } else {
            opening.next()
        }
    }

    /// Returns whether the state has lasted for so long that the next open time is a first one, if it is `Closed`.
    fn is_stable(&self, at: u64) -> bool {
        let ledger = self.ledger();
        let stable = match self.open.stable_after() {
            Some(length) => nanos(length),
            None => ledger.open_for.get(),
        };
        at.saturating_sub(ledger.since.get()) >= stable
    }

    /// Returns whether the breaker is closed, has no failure counted, and would open for a first open time.
    pub(super) fn is_as_new(&self, at: u64) -> bool {
        let state = self.load();
        let counted = self.record().tally(state.generation(), || at);
        state.mode() == Mode::Closed
            && (state.streak(), counted.failures, counted.slow) == (0, 0, 0)
            && (self.ledger().opening().number == 0 || self.is_stable(at))
            && self.is_at(state)
    }

    /// Moves the breaker to the half-open state, with one probe in flight.
    pub(super) fn half_open(&self, from: PackedState, at: u64) -> bool {
        let cause = TransitionCause::OpenTime;
        self.change(from, PackedState::half_open, at, cause, |ledger, _| ledger.probed.raise(at))
    }

    pub(super) fn close(&self, from: PackedState, at: u64) -> bool {
        let closed = |generation| PackedState::new(Mode::Closed, generation);
        self.change(from, closed, at, TransitionCause::Probes, |_, generation| self.record().begin(generation))
    }

    /// Enters a state with nothing counted and the open times at their first, for an operator.
    #[cold]
    pub(super) fn command(&self, mode: Mode, at: u64) {
        let entered = |generation| PackedState::new(mode, generation);
        let reset = |ledger: &Ledger, generation| {
            ledger.set_opening(ledger.opening().restart());
            ledger.set_tripped_by(Tally::default(), 0);
            self.record().begin(generation);
        };
        while !self.change(self.at_rest(), entered, at, TransitionCause::Command, reset) {}
    }
}

/// The data of a state besides its packed word.
///
/// Only the thread that is changing the state writes here (except for the counts of rejections, and the time of the
/// last probe, which only grows), and it stores the packed state last. So a thread that has loaded the packed state
/// sees its data.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// When the state was entered.
    pub(super) since: LedgerCell,
    pub(super) cause: LedgerCell,
    pub(super) transitions: LedgerCell,
    /// When the open time ends.
    pub(super) until: LedgerCell,
    /// How long the last open time was.
    pub(super) open_for: LedgerCell,
    opening: LedgerCell,
    /// When the last probe was admitted.
    pub(super) probed: LedgerCell,
    calls: LedgerCell,
    failures: LedgerCell,
    slow: LedgerCell,
    pub(super) consecutive: LedgerCell,
    pub(super) rejections: LedgerCell,
    /// An [`Evidence`](super::Evidence), as a number.
    pub(super) evidence: LedgerCell,
}

/// The position of an open time: its number in the policy's schedule, and how many times the schedule was restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) number: u32,
    episode: u32,
}

/// From here on the open times no longer grow, and are drawn with other seeds: the delay of a decorrelated policy takes
/// time proportional to its number.
const MOST_OPENINGS: u32 = 4_096;

impl Opening {
    pub(super) const fn next(self) -> Self {
        if self.number < MOST_OPENINGS {
            Self { number: self.number + 1, episode: self.episode }
        } else {
            Self { number: self.number, episode: self.episode.wrapping_add(1) }
        }
    }

    /// Restarts with another series of draws: a client whose first draw is short must not be first every time.
    pub(super) const fn restart(self) -> Self {
        Self { number: 0, episode: self.episode.wrapping_add(1) }
    }

    /// Returns the length of the open time, in nanoseconds, with the server's hint if there is one.
    pub(super) fn length(self, hint: Option<ServerHint>, policy: &Policy, seed: Seed) -> u64 {
        let seed = seed.for_call(u64::from(self.episode));
        // The builder accepts only policies with delays.
        let drawn = nanos(policy.delay(self.number, seed).unwrap_or_default());
        let Some(hint) = hint else { return drawn };
        // A breaker does not give up: a hint that is too long counts as the longest.
        let longest = policy.max_hint().unwrap_or(Duration::MAX);
        let hint = match hint {
            ServerHint::AtLeast(asked) => ServerHint::AtLeast(asked.min(longest)),
            ServerHint::Reserved(asked) => ServerHint::Reserved(asked.min(longest)),
            ServerHint::DoNotRetry => ServerHint::DoNotRetry,
        };
        let (_, ceiling) = policy.bounds(self.number).unwrap_or_default();
        let ceiling = nanos(ceiling);
        policy.hinted(hint, policy.capped_last(ceiling), drawn, seed.bits(0, self.number, Purpose::Hint))
    }
}

impl Ledger {
    pub(super) fn opening(&self) -> Opening {
        let opening = self.opening.get();
        Opening { number: opening as u32, episode: (opening >> 32) as u32 }
    }

    pub(super) fn set_opening(&self, opening: Opening) {
        self.opening.set(u64::from(opening.number) | u64::from(opening.episode) << 32);
    }

    pub(super) fn tripped_by(&self) -> Tally {
        Tally { calls: self.calls.get(), failures: self.failures.get(), slow: self.slow.get() }
    }

    pub(super) fn set_tripped_by(&self, tally: Tally, consecutive: u64) {
        self.calls.set(tally.calls);
        self.failures.set(tally.failures);
        self.slow.set(tally.slow);
        self.consecutive.set(consecutive);
    }

    /// Records a change of state.
    pub(super) fn enter(&self, at: u64, cause: TransitionCause) {
        self.since.set(at);
        self.cause.set(cause as u64);
        self.transitions.set(self.transitions.get().wrapping_add(1));
    }
}

/// A number whose ordering the packed state provides.
#[derive(Debug)]
pub(super) struct LedgerCell(AtomicU64);

impl Default for LedgerCell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl LedgerCell {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn raise(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}
