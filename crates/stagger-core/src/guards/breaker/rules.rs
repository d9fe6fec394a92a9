use super::state::{Evidence, Probe, TransitionCause, age_of};
use super::window::{Mark, Tally};
use crate::guards::guard::Permit;
use crate::numbers::ratio::Ratio;
use crate::outcome::{Outcome, ServerHealth};

/// When a breaker trips and when it closes again; checked by the builder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Failures in a row; 0 for no such rule.
    pub(super) consecutive: u32,
    pub(super) failure_ratio: Option<Ratio>,
    pub(super) slow: Option<SlowRule>,
    pub(super) min_calls: u32,
    pub(super) probes: u32,
    pub(super) healthy_probes: u32,
    /// In nanoseconds.
    pub(super) probe_wait: u64,
}

/// The rule about slow calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowRule {
    /// Calls that take longer than this are slow, in nanoseconds.
    pub(super) after: u64,
    pub(super) ratio: Ratio,
}

impl Rules {
    /// Classifies a call. `None` says nothing about the server. Reads the clock if there is a rule about slow calls.
    pub(super) fn mark(&self, permit: &Permit, outcome: &Outcome, now: impl FnOnce() -> u64) -> Option<Mark> {
        let failed = match outcome.verdict() {
            ServerHealth::Healthy => false,
            ServerHealth::Ailing => true,
            ServerHealth::Unknown => return None,
        };
        let slow = self.slow.is_some_and(|slow| age_of(permit, now()) > slow.after);
        Some(Mark { failed, slow })
    }

    /// Returns the result of a probe: a slow one has failed.
    pub(super) fn probe(mark: Option<Mark>) -> Probe {
        match mark {
            None => Probe::Nothing,
            Some(Mark { failed: false, slow: false }) => Probe::Healthy,
            Some(_) => Probe::Ailing,
        }
    }

    /// Returns the rule by which the window trips the breaker, if any.
    pub(super) fn tripped(&self, tally: Tally, evidence: Evidence) -> Option<TransitionCause> {
        if tally.calls < u64::from(evidence.of(self.min_calls)) {
            return None;
        }
        let cause = if self.failure_ratio.is_some_and(|ratio| reaches(tally.failures, tally.calls, ratio)) {
            TransitionCause::FailureRatio
        } else if self.slow.is_some_and(|slow| reaches(tally.slow, tally.calls, slow.ratio)) {
            TransitionCause::SlowRatio
        } else {
            return None;
        };
        Some(if tally.calls < u64::from(self.min_calls) { TransitionCause::Advised } else { cause })
    }

    /// Returns whether so many failures in a row trip the breaker.
    pub(super) fn tripped_in_a_row(&self, streak: u64, evidence: Evidence) -> Option<TransitionCause> {
        match streak {
            _ if streak >= u64::from(self.consecutive) => Some(TransitionCause::Consecutive),
            _ if streak >= u64::from(evidence.of(self.consecutive)) => Some(TransitionCause::Advised),
            _ => None,
        }
    }
}

/// Returns whether `part / whole >= ratio`, exact: a window counts fewer than 2^28 calls, and a ratio has 20 bits.
const fn reaches(part: u64, whole: u64, ratio: Ratio) -> bool {
    part * 1_000_000 >= whole * ratio.as_millionths() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_reached_exactly() {
        for (part, whole, ratio, want) in [
            (3, 5, Ratio::percent(60), true),
            (3, 5, Ratio::millionths(600_001), false),
            (1, 3, Ratio::millionths(333_333), true),
            (1, 3, Ratio::millionths(333_334), false),
            (0, 7, Ratio::millionths(1), false),
            (167_772_150, 167_772_150, Ratio::ONE, true),
            (167_772_149, 167_772_150, Ratio::ONE, false),
        ] {
            assert_eq!(reaches(part, whole, ratio), want, "{part} of {whole}, {ratio}");
        }
    }
}
