use core::time::Duration;

use stagger_core::Policy;

/// The non-dominated policies: any policy that recovers sooner than one of them has a higher peak.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParetoFront {
    /// The policies, ordered by ascending peak.
    pub candidates: Vec<Candidate>,
    /// Number of simulated clients. The figures of larger fleets are scaled in proportion; their peak is somewhat
    /// overestimated, because random variation averages out in larger fleets.
    pub simulated_clients: u64,
    /// Number of runs, each with its own seed; the figures are means over the runs.
    pub runs: u32,
    /// Number of policies evaluated.
    pub tried_policies: usize,
    /// Lower bound on the time until all clients are back: the outage plus clients / capacity.
    pub min_recovery_time: Duration,
    pub(super) best: usize,
}

/// A policy with its predicted behavior.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The policy.
    pub policy: Policy,
    /// The predicted behavior.
    pub predicted: Prediction,
}

/// The predicted behavior of all clients with a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Maximum number of attempts that arrive within one second.
    pub peak_second: f64,
    /// Time from the start until 99 % of the clients are back; `None` if they never are.
    pub recovery: Option<Duration>,
    /// Mean number of attempts per client.
    pub attempts_per_client: f64,
    /// Share of the clients that recover, in 0..=1; the others give up.
    pub recovered_ratio: f64,
}

impl ParetoFront {
    /// Returns the recommended policy.
    #[must_use]
    pub fn best(&self) -> &Candidate {
        &self.candidates[self.best]
    }
}

/// What the policy is optimized for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objective {
    /// The capacity per second. A peak below it is not an improvement.
    pub(super) capacity: f64,
    pub(super) deadline: Option<Duration>,
}

/// Seconds; longer than any recovery.
const NEVER: f64 = 1e9;

impl Prediction {
    /// Returns the two objectives, both to be minimized: peak, and recovery in seconds. Without recovery, policies with
    /// more recovered clients are better.
    pub(super) fn objectives(&self) -> [f64; 2] {
        let recovery = self.recovery.map_or(NEVER * (2.0 - self.recovered_ratio), |recovery| recovery.as_secs_f64());
        [self.peak_second, recovery]
    }

    /// Returns whether it is at least as good in both objectives, and better in one.
    fn dominates(&self, other: &Self) -> bool {
        let ([a, b], [c, d]) = (self.objectives(), other.objectives());
        a <= c && b <= d && (a < c || b < d)
    }
}

impl Objective {
    /// Returns the index of the best candidate; `None` if there are no candidates.
    ///
    /// With a deadline: the lowest peak above the capacity among the candidates that recover in time, and of these the
    /// one that recovers soonest. Without a deadline, or if no candidate recovers in time: the lowest product of both
    /// objectives.
    pub(super) fn best(&self, candidates: &[Candidate]) -> Option<usize> {
        let in_time = |candidate: &Candidate| {
            self.deadline.zip(candidate.predicted.recovery).is_some_and(|(deadline, recovery)| recovery <= deadline)
        };
        let any_in_time = candidates.iter().any(in_time);
        let key = |candidate: &Candidate| {
            let [peak, recovery] = candidate.predicted.objectives();
            let overload = (peak / self.capacity).max(1.0);
            match any_in_time {
                true if in_time(candidate) => [overload, recovery],
                true => [f64::INFINITY, recovery],
                // A peak below the capacity only breaks ties.
                false => [overload.ln() + recovery.max(1e-3).ln() + 0.01 * peak.max(1e-3).ln(), 0.0],
            }
        };
        let keys: Vec<_> = candidates.iter().map(key).collect();
        let less = |a: &[f64; 2], b: &[f64; 2]| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
        (0..keys.len()).min_by(|&a, &b| less(&keys[a], &keys[b]))
    }
}

/// Returns the non-dominated candidates, ordered by peak; of equal candidates, the first.
pub(super) fn non_dominated(candidates: &[Candidate]) -> Vec<Candidate> {
    let bits = |candidate: &Candidate| candidate.predicted.objectives().map(f64::to_bits);
    let mut front: Vec<Candidate> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let dominated = candidates.iter().any(|other| other.predicted.dominates(&candidate.predicted));
        let again = candidates[..at].iter().any(|other| bits(other) == bits(candidate));
        if !dominated && !again {
            front.push(*candidate);
        }
    }
    front.sort_by(|a, b| a.predicted.peak_second.total_cmp(&b.predicted.peak_second));
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(peak: f64, recovery: Option<u64>, back: f64) -> Candidate {
        let recovery = recovery.map(Duration::from_secs);
        let predicted = Prediction { peak_second: peak, recovery, attempts_per_client: 1.0, recovered_ratio: back };
        Candidate { policy: Policy::DEFAULT, predicted }
    }

    fn peaks(candidates: &[Candidate]) -> Vec<f64> {
        candidates.iter().map(|candidate| candidate.predicted.peak_second).collect()
    }

    #[test]
    fn dominated_policies_are_not_on_the_pareto_front() {
        let front = non_dominated(&[
            candidate(900.0, Some(20), 1.0),
            candidate(500.0, Some(30), 1.0),
            candidate(600.0, Some(31), 1.0),
            candidate(500.0, Some(30), 1.0),
            candidate(100.0, None, 0.5),
            candidate(200.0, None, 0.4),
            candidate(200.0, None, 0.9),
        ]);
        assert_eq!(peaks(&front), [100.0, 200.0, 500.0, 900.0]);
        assert_eq!(front[1].predicted.recovered_ratio.to_string(), "0.9", "more recovered clients are better");
    }

    #[test]
    fn the_best_has_the_lowest_product_and_a_peak_below_capacity_is_no_improvement() {
        let objective = Objective { capacity: 500.0, deadline: None };
        let best = |candidates: &[Candidate]| objective.best(candidates).unwrap();
        assert_eq!(best(&[candidate(1_000.0, Some(30), 1.0), candidate(600.0, Some(40), 1.0)]), 1);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(250.0, Some(40), 1.0)]), 0);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(450.0, Some(30), 1.0)]), 1);
        assert_eq!(objective.best(&[]), None);
    }

    #[test]
    fn with_a_deadline_the_best_has_the_lowest_overload_of_those_in_time() {
        let objective = Objective { capacity: 500.0, deadline: Some(Duration::from_secs(35)) };
        let all = [candidate(450.0, Some(40), 1.0), candidate(700.0, Some(35), 1.0), candidate(900.0, Some(20), 1.0)];
        assert_eq!(objective.best(&all), Some(1));
        let hasty = Objective { deadline: Some(Duration::from_secs(1)), ..objective };
        assert_eq!(hasty.best(&all), Some(2), "none recovers in time: the lowest product");
    }
}
