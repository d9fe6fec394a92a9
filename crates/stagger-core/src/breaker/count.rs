//! Counting: what a result does.

use super::circuit::CircuitBreaker;
use super::packed_state::{Mode, PackedState, Probe, generation_of};
use super::rules::Rules;
use super::snapshot::TransitionCause;
use super::window::{Mark, Tally};
use crate::{Outcome, ServerHint, guard::BreakerPermit, guard::Now};

impl CircuitBreaker {
    /// Not inlined: the usual success has been dealt with before.
    #[inline(never)]
    pub(super) fn record_slowly(&self, permit: &BreakerPermit, outcome: &Outcome, now: &dyn Now) {
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

    /// A result while it is closed.
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
        // Again and again, until it is done, or another state has begun.
        state = self.load();
        while is_still(state) && !self.trip(state, now.now().as_nanos(), hint_of(outcome), cause, tally, state.streak())
        {
            state = self.load();
        }
    }

    /// A result while it is half-open.
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

    pub(super) fn probes_found(&self, state: PackedState) -> Tally {
        Tally { calls: state.healthy() + state.ailing(), failures: state.ailing(), slow: 0 }
    }
}

const fn hint_of(outcome: &Outcome) -> Option<ServerHint> {
    match outcome {
        Outcome::Failed { hint, .. } => *hint,
        _ => None,
    }
}
