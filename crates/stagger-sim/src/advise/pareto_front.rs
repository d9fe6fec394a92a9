use core::time::Duration;

use stagger_core::Policy;

/// Policies that nothing beats: whatever brings the clients back sooner than one of them makes the peak higher.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParetoFront {
    /// By their peak, the lowest first.
    pub candidates: Vec<Candidate>,
    /// With how many clients the figures were simulated; of larger fleets they are in proportion, and the peak is somewhat
    /// higher than it would be, for chance evens out.
    pub simulated_clients: u64,
    /// With how many seeds: figures are means of as many runs.
    pub runs: u32,
    /// How many policies were tried in all.
    pub tried_policies: usize,
    /// Nothing brings all clients back sooner: how long the server is down, and their number by its capacity.
    pub min_recovery_time: Duration,
    pub(super) best: usize,
}

/// A policy, and what it would do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The policy.
    pub policy: Policy,
    /// What it would do.
    pub predicted: Prediction,
}

/// What a policy would do, for all clients.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The most attempts that arrive in a second.
    pub peak_second: f64,
    /// When 99 % of the clients are back, from the beginning; `None` if they never are.
    pub recovery: Option<Duration>,
    /// Attempts for each client.
    pub attempts_per_client: f64,
    /// The share of the clients that comes back, in 0..=1; the others have given up.
    pub back: f64,
}

impl ParetoFront {
    /// The one that is advised.
    #[must_use]
    pub fn best(&self) -> &Candidate {
        &self.candidates[self.best]
    }
}

/// What is asked of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objective {
    /// What the server takes in a second: a peak below that is no better.
    pub(super) capacity: f64,
    pub(super) deadline: Option<Duration>,
}

/// Longer than anything that comes to an end.
const NEVER: f64 = 1e9;

impl Prediction {
    /// The two goals, less is better: peak, and seconds of recovery. Without one, more clients that come back are better.
    pub(super) fn objectives(&self) -> [f64; 2] {
        let recovery = self.recovery.map_or(NEVER * (2.0 - self.back), |recovery| recovery.as_secs_f64());
        [self.peak_second, recovery]
    }

    /// Whether it is at least as good in both goals, and better in one.
    fn dominates(&self, other: &Self) -> bool {
        let ([a, b], [c, d]) = (self.objectives(), other.objectives());
        a <= c && b <= d && (a < c || b < d)
    }
}

impl Objective {
    /// The one that comes nearest, and its place; `None` of nothing.
    ///
    /// Where there is patience: the least peak above what the server takes among those that are back in time, and the
    /// soonest of these. Else, or if none is: the least product of both goals, as shares of what is best.
    pub(super) fn best(&self, candidates: &[Candidate]) -> Option<usize> {
        let in_time = |candidate: &Candidate| {
            let (deadline, recovery) = (self.deadline?, candidate.predicted.recovery?);
            Some(recovery <= deadline)
        };
        let any_in_time = candidates.iter().any(|candidate| in_time(candidate) == Some(true));
        let key = |candidate: &Candidate| {
            let [peak, recovery] = candidate.predicted.objectives();
            let overload = (peak / self.capacity).max(1.0);
            match any_in_time {
                true if in_time(candidate) == Some(true) => [overload, recovery],
                true => [f64::INFINITY, recovery],
                // What lies below the capacity counts only where nothing else differs.
                false => [overload.ln() + recovery.max(1e-3).ln() + 0.01 * peak.max(1e-3).ln(), 0.0],
            }
        };
        let keys: Vec<_> = candidates.iter().map(key).collect();
        let less = |a: &[f64; 2], b: &[f64; 2]| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
        (0..keys.len()).min_by(|&a, &b| less(&keys[a], &keys[b]))
    }
}

/// Those that nothing beats, by their peak; of those that come to the same, the first.
pub(super) fn non_dominated(candidates: &[Candidate]) -> Vec<Candidate> {
    let mut front: Vec<Candidate> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let dominated = candidates.iter().any(|other| other.predicted.dominates(&candidate.predicted));
        let again =
            candidates[..at].iter().any(|other| same(&other.predicted.objectives(), &candidate.predicted.objectives()));
        if !dominated && !again {
            front.push(*candidate);
        }
    }
    front.sort_by(|a, b| a.predicted.peak_second.total_cmp(&b.predicted.peak_second));
    front
}

fn same(a: &[f64; 2], b: &[f64; 2]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.total_cmp(b).is_eq())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(peak: f64, recovery: Option<u64>, back: f64) -> Candidate {
        let recovery = recovery.map(Duration::from_secs);
        let predicted = Prediction { peak_second: peak, recovery, attempts_per_client: 1.0, back };
        Candidate { policy: Policy::DEFAULT, predicted }
    }

    fn peaks(candidates: &[Candidate]) -> Vec<f64> {
        candidates.iter().map(|candidate| candidate.predicted.peak_second).collect()
    }

    #[test]
    fn what_is_beaten_in_both_goals_is_not_on_the_front() {
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
        assert_eq!(front[1].predicted.back.to_string(), "0.9", "who brings more back is better");
    }

    #[test]
    fn the_best_is_the_least_product_and_what_lies_below_the_capacity_is_no_better() {
        let objective = Objective { capacity: 500.0, deadline: None };
        let best = |candidates: &[Candidate]| objective.best(candidates).unwrap();
        assert_eq!(best(&[candidate(1_000.0, Some(30), 1.0), candidate(600.0, Some(40), 1.0)]), 1);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(250.0, Some(40), 1.0)]), 0);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(450.0, Some(30), 1.0)]), 1);
        assert_eq!(objective.best(&[]), None);
    }

    #[test]
    fn patience_takes_the_lowest_overload_that_is_back_in_time() {
        let objective = Objective { capacity: 500.0, deadline: Some(Duration::from_secs(35)) };
        let all = [candidate(450.0, Some(40), 1.0), candidate(700.0, Some(35), 1.0), candidate(900.0, Some(20), 1.0)];
        assert_eq!(objective.best(&all), Some(1));
        let hasty = Objective { deadline: Some(Duration::from_secs(1)), ..objective };
        assert_eq!(hasty.best(&all), Some(2), "none is back in time: the least product");
    }
}
