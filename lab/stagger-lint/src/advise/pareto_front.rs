use core::time::Duration;

use stagger_core::Policy;

use super::lengths::blind_spots;
use stagger_sim::reconnect::ReconnectScenario;

/// The non-dominated policies: each is better than every other one in at least one figure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParetoFront {
    /// The policies, ordered by ascending peak.
    pub candidates: Vec<Candidate>,
    /// The outages that every policy was judged on, in ascending order: the one that was given or all that are usual,
    /// others between them, and others up to a quarter beyond the longest.
    pub outages: Vec<Duration>,
    /// The simulated scenario, with the last of the outages; the others differ in nothing but the outage.
    pub scenario: ReconnectScenario,
    /// What was searched, as a sentence without a full stop.
    pub searched: String,
    /// Number of simulated clients. The figures of larger fleets are scaled in proportion; their peak is somewhat
    /// overestimated, because random variation averages out in larger fleets.
    pub simulated_clients: u64,
    /// Number of runs, with consecutive seeds from that of the question; the figures are means over the runs.
    pub runs: u32,
    /// Number of policies evaluated.
    pub tried_policies: usize,
    /// Lower bound on the time from the end of the outage until all clients are back: clients / capacity.
    pub min_recovery_time: Duration,
    /// Whether a policy was found that `check` does not warn of. Otherwise, the policies are the best of those that it
    /// warns of.
    pub is_clean: bool,
    pub(super) best: usize,
}

/// A policy with its predicted behavior.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The policy.
    pub policy: Policy,
    /// The predicted behavior over all outages: the highest peak, the longest recovery, the mean number of attempts,
    /// and the smallest share of recovered clients. The mean is that of [`ParetoFront::outages`], so that policies can
    /// be compared by it.
    pub predicted: Prediction,
    /// The predicted behavior in each of [`ParetoFront::outages_of`] this policy.
    pub by_outage: Vec<(Duration, Prediction)>,
}

/// The predicted behavior of all clients with a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Maximum number of attempts that arrive within one second.
    pub peak_second: f64,
    /// Time from the end of the outage until 99 % of the clients are back; `None` if they never are.
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

    /// Returns the outages that a policy is judged on: [`outages`](Self::outages), and those within their range after
    /// which it does worst, because the server returns just after all clients have made an attempt.
    #[must_use]
    pub fn outages_of(&self, policy: &Policy) -> Vec<Duration> {
        outages_of(&self.outages, policy)
    }
}

/// Returns the outages that a policy is judged on: first those of every policy, then its own.
pub(super) fn outages_of(shared: &[Duration], policy: &Policy) -> Vec<Duration> {
    let range = (shared.first().copied().unwrap_or_default(), shared.last().copied().unwrap_or_default());
    let own = blind_spots(policy, range).into_iter().filter(|spot| !shared.contains(spot));
    shared.iter().copied().chain(own).collect()
}

/// What the policy is optimized for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objective {
    /// The capacity per second. A peak below it is hardly an improvement.
    pub(super) capacity: f64,
    pub(super) deadline: Option<Duration>,
}

/// Seconds; longer than any recovery.
const NEVER: f64 = 1e9;

/// Differences in the share of recovered clients up to this do not decide.
const SIMILAR: f64 = 0.005;

/// The smallest difference in the share of recovered clients that is shown.
const VISIBLE: f64 = 0.0005;

/// The weight of the number of attempts, and of figures that only break ties.
const ATTEMPTS: f64 = 0.5;
const TIE: f64 = 0.01;

impl Candidate {
    /// Creates a candidate of which the first `shared` outages are those of every policy.
    pub(super) fn new(policy: Policy, by_outage: Vec<(Duration, Prediction)>, shared: usize) -> Self {
        let each = || by_outage.iter().map(|(_, predicted)| predicted);
        let count = each().take(shared).count().max(1) as f64;
        // Clients that are not back after one of the outages count as not back.
        let are_all_back = each().all(|it| it.recovery.is_some());
        let recovery = if are_all_back { each().filter_map(|it| it.recovery).max() } else { None };
        let predicted = Prediction {
            peak_second: each().map(|it| it.peak_second).fold(0.0, f64::max),
            recovery,
            attempts_per_client: each().take(shared).map(|it| it.attempts_per_client).sum::<f64>() / count,
            recovered_ratio: each().map(|it| it.recovered_ratio).fold(1.0, f64::min),
        };
        Self { policy, predicted, by_outage }
    }
}

impl Prediction {
    /// Returns the four figures, all to be minimized: peak, recovery in seconds, attempts, share that is lost.
    fn figures(&self) -> [f64; 4] {
        let recovery = self.recovery.map_or(NEVER, |recovery| recovery.as_secs_f64());
        [self.peak_second, recovery, self.attempts_per_client, 1.0 - self.recovered_ratio]
    }

    /// Returns by how much the logarithm of a figure exceeds the other's, in the worst of those that differ. Below 0,
    /// it is better in all of them.
    pub(super) fn excess(&self, other: &Self) -> f64 {
        let pairs = self.figures().into_iter().zip(other.figures());
        let excess = pairs.map(|(one, other)| ((one + 1e-3) / (other + 1e-3)).ln());
        excess.filter(|excess| excess.abs() > f64::EPSILON).reduce(f64::max).unwrap_or(0.0)
    }

    /// Returns the largest difference of a figure: of the logarithms of peak, recovery and attempts, and of the shares.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let [peak, recovery, attempts, lost] = self.figures();
        let [other_peak, other_recovery, other_attempts, other_lost] = other.figures();
        let pairs = [(peak, other_peak), (recovery, other_recovery), (attempts, other_attempts)];
        let ratios = pairs.map(|(one, other)| ((one + 1e-3) / (other + 1e-3)).ln().abs());
        ratios.into_iter().fold((lost - other_lost).abs(), f64::max)
    }

    /// Returns whether it is at least as good in all figures, and better in one.
    fn dominates(&self, other: &Self) -> bool {
        let pairs = || self.figures().into_iter().zip(other.figures());
        pairs().all(|(one, other)| one <= other) && pairs().any(|(one, other)| one < other)
    }
}

impl Objective {
    /// Returns the indices of all eligible candidates, the best first.
    ///
    /// Candidates that serve fewer clients than others are out. Of the rest, and with a deadline of those that recover
    /// in time, the one with the lowest [`score`](Self::score) is the best. The score grows with each figure, so that
    /// no candidate dominates the best.
    pub(super) fn ranked(&self, candidates: &[Candidate]) -> Vec<usize> {
        let served = || candidates.iter().map(|it| it.predicted.recovered_ratio);
        let (least, most) = (served().fold(1.0, f64::min), served().fold(0.0, f64::max));
        let eligible = |ratio: f64| ratio >= most - SIMILAR && (most - least <= VISIBLE || ratio > least + VISIBLE);
        let in_time = |at: usize| self.is_in_time(&candidates[at].predicted);
        let mut ranked: Vec<usize> =
            (0..candidates.len()).filter(|&at| eligible(candidates[at].predicted.recovered_ratio)).collect();
        let any_in_time = ranked.iter().any(|&at| in_time(at));
        ranked.retain(|&at| !any_in_time || in_time(at));
        let score = |at: usize| self.score(&candidates[at].predicted, any_in_time);
        ranked.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
        ranked
    }

    /// Returns whether there is a deadline, and it is met.
    pub(super) fn is_in_time(&self, predicted: &Prediction) -> bool {
        match (self.deadline, predicted.recovery) {
            (Some(deadline), Some(recovery)) => recovery <= deadline,
            _ => false,
        }
    }

    /// Returns the sum of the logarithms of overload, recovery time and number of attempts. If the deadline is met, the
    /// recovery time only breaks ties, as does a peak below the capacity.
    pub(super) fn score(&self, predicted: &Prediction, is_in_time: bool) -> f64 {
        let [peak, recovery, attempts, lost] = predicted.figures();
        let overload = (peak / self.capacity).max(1.0).ln() + TIE * peak.max(1e-3).ln();
        let recovery = recovery.max(1e-3).ln() * if is_in_time { TIE } else { 1.0 };
        overload + recovery + ATTEMPTS * attempts.max(1e-3).ln() + lost
    }
}

/// Returns the indices of the non-dominated candidates, ordered by peak; of equal candidates, the first.
pub(super) fn non_dominated(candidates: &[Candidate]) -> Vec<usize> {
    let bits = |candidate: &Candidate| candidate.predicted.figures().map(f64::to_bits);
    let is_shown = |at: usize| {
        let candidate = &candidates[at];
        let again = candidates[..at].iter().any(|other| bits(other) == bits(candidate));
        !again && !candidates.iter().any(|other| other.predicted.dominates(&candidate.predicted))
    };
    let mut front: Vec<usize> = (0..candidates.len()).filter(|&at| is_shown(at)).collect();
    let peak = |at: usize| candidates[at].predicted.peak_second;
    front.sort_by(|&a, &b| peak(a).total_cmp(&peak(b)));
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate_of(each: &[Prediction]) -> Candidate {
        let by_outage = each.iter().map(|predicted| (Duration::ZERO, *predicted)).collect();
        Candidate::new(Policy::DEFAULT, by_outage, each.len())
    }

    fn candidate(peak: f64, recovery: Option<u64>, back: f64) -> Candidate {
        let recovery = recovery.map(Duration::from_secs);
        let predicted = Prediction { peak_second: peak, recovery, attempts_per_client: 1.0, recovered_ratio: back };
        candidate_of(&[predicted])
    }

    #[test]
    fn dominated_policies_are_not_on_the_pareto_front() {
        let candidates = [
            candidate(900.0, Some(20), 1.0),
            candidate(500.0, Some(30), 1.0),
            candidate(600.0, Some(31), 1.0),
            candidate(500.0, Some(30), 1.0),
            candidate(100.0, None, 0.5),
            candidate(200.0, None, 0.4),
            candidate(200.0, None, 0.9),
        ];
        // Of those with a peak of 200, the one with more recovered clients is better.
        assert_eq!(non_dominated(&candidates), [4, 6, 1, 0]);
    }

    #[test]
    fn the_excess_is_that_of_the_worst_figure_that_differs() {
        let [one, other, third] = [(900.0, 20, 1.0), (900.0, 30, 1.0), (450.0, 40, 1.0)]
            .map(|(peak, recovery, back)| candidate(peak, Some(recovery), back).predicted);
        assert!((one.excess(&other) + 1.5_f64.ln()).abs() < 1e-3, "better in the only figure that differs");
        assert!((one.excess(&third) - 2.0_f64.ln()).abs() < 1e-3, "twice the peak");
        assert!(one.excess(&one).abs() < 1e-9);
    }

    #[test]
    fn the_figures_over_all_outages_are_the_worst_and_the_mean_of_the_attempts() {
        let [mut short, long] =
            [candidate(900.0, Some(20), 1.0), candidate(500.0, Some(30), 0.9)].map(|it| it.predicted);
        short.attempts_per_client = 3.0;
        let both = candidate_of(&[short, long]).predicted;
        let in_millionths = both.figures().map(|figure| (figure * 1e6).round() as u64);
        assert_eq!(in_millionths, [900_000_000, 30_000_000, 2_000_000, 100_000]);
        let never = candidate_of(&[short, candidate(1.0, None, 0.5).predicted]).predicted;
        assert_eq!(never.recovery, None);
    }

    #[test]
    fn the_best_has_the_lowest_product_and_a_peak_below_capacity_is_no_improvement() {
        let objective = Objective { capacity: 500.0, deadline: None };
        let best = |candidates: &[Candidate]| objective.ranked(candidates)[0];
        assert_eq!(best(&[candidate(1_000.0, Some(30), 1.0), candidate(600.0, Some(40), 1.0)]), 1);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(250.0, Some(40), 1.0)]), 0);
        assert_eq!(best(&[candidate(500.0, Some(30), 1.0), candidate(450.0, Some(30), 1.0)]), 1);
        assert!(objective.ranked(&[]).is_empty());
    }

    #[test]
    fn with_a_deadline_the_best_has_the_lowest_overload_of_those_in_time() {
        let objective = Objective { capacity: 500.0, deadline: Some(Duration::from_secs(35)) };
        let all = [candidate(450.0, Some(40), 1.0), candidate(700.0, Some(35), 1.0), candidate(900.0, Some(20), 1.0)];
        assert_eq!(objective.ranked(&all).first().copied(), Some(1));
        let hasty = Objective { deadline: Some(Duration::from_secs(1)), ..objective };
        assert_eq!(hasty.ranked(&all).first().copied(), Some(2), "none recovers in time: the lowest product");
    }

    #[test]
    fn the_candidate_that_serves_the_fewest_is_never_the_best() {
        let objective = Objective { capacity: 500.0, deadline: None };
        let best = |candidates: &[Candidate]| objective.ranked(candidates).first().copied();
        assert_eq!(best(&[candidate(1_000.0, None, 0.5), candidate(2_000.0, None, 0.9)]), Some(1));
        assert_eq!(best(&[candidate(1_000.0, None, 0.902), candidate(2_000.0, None, 0.904)]), Some(1));
        assert_eq!(best(&[candidate(1_000.0, None, 0.9001), candidate(2_000.0, None, 0.9002)]), Some(0));
    }
}
