//! Counting: what a result does.

use super::circuit::CircuitBreaker;
use super::rules::Rules;
use super::snapshot::TransitionCause;
use super::window::{Mark, Tally};
use super::word::{Mode, Probe, Word, generation_of};
use crate::{Outcome, ServerHint, guard::BreakerPermit, guard::Now};

impl CircuitBreaker {
    /// Not inlined: the usual success has been dealt with before.
    #[inline(never)]
    pub(super) fn settle(&self, pass: &BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        let word = self.load();
        // The result of a call that another state admitted says nothing about this one.
        if generation_of(pass) != word.generation() {
            return;
        }
        match word.mode() {
            Mode::Closed => {
                let Some(mark) = self.rules.mark(pass, outcome, || now.now().as_nanos()) else { return };
                self.count(word, mark, outcome, now);
            }
            Mode::HalfOpen => {
                let mark = self.rules.mark(pass, outcome, || now.now().as_nanos());
                self.judge(word, Rules::probe(mark), outcome, now);
            }
            Mode::Open | Mode::ForcedOpen | Mode::ForcedClosed | Mode::Changing => {}
        }
    }

    /// A result while it is closed.
    fn count(&self, mut word: Word, mark: Mark, outcome: &Outcome, now: &dyn Now) {
        let generation = word.generation();
        let is_still = |word: Word| (word.mode(), word.generation()) == (Mode::Closed, generation);
        let tally = self.record.0.count(generation, mark, || now.now().as_nanos());
        while self.rules.consecutive > 0 && is_still(word) {
            let streak = if mark.failed { word.streak() + 1 } else { 0 };
            if streak >= u64::from(self.rules.consecutive) {
                let tally = tally.unwrap_or_default();
                if self.trip(word, now.now().as_nanos(), hint_of(outcome), TransitionCause::Consecutive, tally, streak)
                {
                    return;
                }
            } else if streak == word.streak() || self.swap(word, word.with_streak(streak)) {
                break;
            }
            word = self.load();
        }
        let Some(tally) = tally else { return };
        let Some(cause) = self.rules.tripped(tally) else { return };
        // Again and again, until it is done, or another state has begun.
        word = self.load();
        while is_still(word) && !self.trip(word, now.now().as_nanos(), hint_of(outcome), cause, tally, word.streak()) {
            word = self.load();
        }
    }

    /// A result while it is half-open.
    fn judge(&self, mut word: Word, probe: Probe, outcome: &Outcome, now: &dyn Now) {
        let generation = word.generation();
        while (word.mode(), word.generation()) == (Mode::HalfOpen, generation) {
            let Some(back) = word.back(probe) else { return };
            let can_fail = u64::from(self.rules.probes - self.rules.healthy_probes);
            let done = if back.healthy() >= u64::from(self.rules.healthy_probes) {
                self.close(word, now.now().as_nanos())
            } else if back.ailing() > can_fail {
                let found = self.probes_found(back);
                self.trip(word, now.now().as_nanos(), hint_of(outcome), TransitionCause::Probes, found, 0)
            } else {
                self.swap(word, back)
            };
            if done {
                return;
            }
            word = self.load();
        }
    }

    pub(super) fn probes_found(&self, word: Word) -> Tally {
        Tally { calls: word.healthy() + word.ailing(), failures: word.ailing(), slow: 0 }
    }
}

const fn hint_of(outcome: &Outcome) -> Option<ServerHint> {
    match outcome {
        Outcome::Failed { hint, .. } => *hint,
        _ => None,
    }
}
