//! Changing: from one state to the next, by one thread at a time.

use super::circuit::CircuitBreaker;
use super::ledger::Opening;
use super::packed_state::{Mode, PackedState};
use super::snapshot::TransitionCause;
use super::window::Tally;
use crate::instant::nanos;
use crate::sync::{Ordering, fence, spin_loop};
use crate::{ServerHint, guard::Now};

impl CircuitBreaker {
    #[must_use]
    pub(super) fn swap(&self, from: PackedState, to: PackedState) -> bool {
        self.state.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes the right to change the state. Whoever gets it ends with `enter`; nothing in between can panic or wait.
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

    /// Opens it, from `at` on. `false`: its state is another by now.
    pub(super) fn trip(
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

    /// Its open times grow, unless it has been closed for long enough.
    fn next_opening(&self, from: Mode, at: u64) -> Opening {
        let ledger = &self.ledger.0;
        let opening = ledger.opening();
        let stable = self.open.stable_after().map_or(ledger.open_for.get(), nanos);
        if from == Mode::Closed && opening.number > 0 && at.saturating_sub(ledger.since.get()) >= stable {
            opening.begin_again().next()
        } else {
            opening.next()
        }
    }

    /// Half-opens it, with one probe on its way.
    pub(super) fn half_open(&self, from: PackedState, at: u64) -> bool {
        if !self.begin_change(from) {
            return false;
        }
        self.ledger.0.probed.raise(at);
        self.enter(PackedState::half_open(from.next_generation()), at, TransitionCause::OpenTime);
        true
    }

    pub(super) fn close(&self, from: PackedState, at: u64) -> bool {
        if !self.begin_change(from) {
            return false;
        }
        self.record.0.begin(from.next_generation());
        self.enter(PackedState::new(Mode::Closed, from.next_generation()), at, TransitionCause::Probes);
        true
    }

    #[cold]
    pub(super) fn command(&self, mode: Mode, now: &dyn Now) {
        let at = now.now().as_nanos();
        let from = loop {
            let state = self.at_rest();
            if self.begin_change(state) {
                break state;
            }
        };
        let ledger = &self.ledger.0;
        ledger.set_opening(ledger.opening().begin_again());
        ledger.set_tripped_by(Tally::default(), 0);
        self.record.0.begin(from.next_generation());
        self.enter(PackedState::new(mode, from.next_generation()), at, TransitionCause::Command);
    }

    /// The word, when no change is on its way: for commands and reports, which may wait for the few nanoseconds.
    pub(super) fn at_rest(&self) -> PackedState {
        loop {
            let state = self.load();
            if state.mode() != Mode::Changing {
                return state;
            }
            spin_loop();
        }
    }
}
