use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::evaluator::Evaluator;
use super::pareto_front::{Candidate, Objective, ParetoFront, non_dominated};
use super::search_space::{Attempts, Point, Ranges, SearchSpace};
use crate::engine::progress::Progress;

pub(super) struct Search<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) space: &'a SearchSpace,
    pub(super) ranges: &'a Ranges,
    pub(super) limits: Limits,
    pub(super) objective: Objective,
    pub(super) seed: Seed,
}

/// Constraints on every recommended policy.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) min_delay: Duration,
    pub(super) max_elapsed: Option<Duration>,
    /// The longest sum of all delays of a call without a time limit.
    pub(super) patience: Option<Duration>,
}

/// Number of policies that are drawn from the whole search space.
const DRAWN: u64 = 200;

/// Factors by which the settings of the best policies are varied, round by round; and the number of policies varied.
const ROUNDS: [&[f64]; 5] = [&[0.5, 2.0], &[0.7, 1.4], &[0.8, 1.25], &[0.9, 1.1], &[0.96, 1.04]];
const VARIED: usize = 3;

/// Maximum numbers of policies simulated client by client: the best by their score, and others of the front.
const BEST_SIMULATED: usize = 6;
const OTHERS_SIMULATED: usize = 5;

/// Minimum ratio of cap to base where a floor raises both.
const CAP_IN_BASES: u32 = 10;

impl Limits {
    pub(super) fn apply(self, policy: &Policy) -> Option<Policy> {
        let mut builder = policy.to_builder();
        if !self.min_delay.is_zero() {
            let cap = policy.cap().unwrap_or(Duration::MAX).max(self.min_delay.saturating_mul(CAP_IN_BASES));
            builder = builder.cap(cap).floor(self.min_delay);
            if policy.base() < self.min_delay {
                builder = builder.base(self.min_delay);
            }
        }
        if let Some(limit) = self.max_elapsed {
            builder = builder.max_elapsed(limit);
        }
        builder.build().ok()
    }

    /// Returns whether all delays of a call together are within its patience.
    fn permit(self, policy: &Policy) -> bool {
        let retries = policy.max_attempts().map(|most| most.get() - 1);
        let longest = retries.and_then(|retries| policy.elapsed_bounds(retries)).map(|(_, longest)| longest);
        self.patience.is_none_or(|patience| longest.is_none_or(|longest| longest <= patience))
    }
}

/// The policies that were evaluated, with the points they were made from.
#[derive(Default)]
struct Known {
    points: Vec<Point>,
    candidates: Vec<Candidate>,
}

impl Search<'_> {
    /// Runs the search; returns `None` if no policy was evaluated before it was cancelled.
    pub(super) fn run(&self, progress: &Progress) -> Option<ParetoFront> {
        let mut known = Known::default();
        self.screen((0..DRAWN).map(|n| self.ranges.draw(self.seed.for_call(n))).collect(), &mut known, progress);
        for factors in ROUNDS {
            let best = self.objective.ranked(&known.candidates);
            let varied = best.into_iter().take(VARIED).map(|at| known.points[at]);
            let near = varied.flat_map(|point| self.ranges.near(&point, factors)).collect();
            self.screen(near, &mut known, progress);
        }
        let chosen = self.chosen(&known.candidates);
        let verified = self.evaluator.simulate(&chosen, progress);
        let candidates =
            non_dominated(&verified.iter().map(|(known, most)| self.limited(known, *most)).collect::<Vec<_>>());
        Some(ParetoFront {
            best: self.objective.best(&candidates)?,
            candidates,
            outages: self.evaluator.outages.clone(),
            searched: self.ranges.text(),
            simulated_clients: self.evaluator.simulated(),
            runs: self.evaluator.runs(),
            tried_policies: known.candidates.len(),
            min_recovery_time: self.evaluator.acceptance_time,
        })
    }

    /// Evaluates the policies of these points, unless they are known.
    fn screen(&self, points: Vec<Point>, known: &mut Known, progress: &Progress) {
        let mut new: Vec<(Point, Policy)> = Vec::new();
        for point in points {
            let policy = self.space.policy(&point).and_then(|policy| self.limits.apply(&policy));
            let Some(policy) = policy.filter(|policy| self.limits.permit(policy)) else { continue };
            let is_known = known.candidates.iter().any(|known| known.policy == policy);
            if !is_known && new.iter().all(|(_, other)| *other != policy) {
                new.push((point, policy));
            }
        }
        let policies: Vec<Policy> = new.iter().map(|(_, policy)| *policy).collect();
        for candidate in self.evaluator.screen(&policies, progress) {
            // A cancelled evaluation is missing from the candidates.
            if let Some((point, _)) = new.iter().find(|(_, policy)| *policy == candidate.policy) {
                known.points.push(*point);
                known.candidates.push(candidate);
            }
        }
    }

    /// Returns the policies to simulate: the best, and a sample of the front.
    fn chosen(&self, screened: &[Candidate]) -> Vec<Policy> {
        let best = self.objective.ranked(screened).into_iter().take(BEST_SIMULATED);
        let mut chosen: Vec<Policy> = best.map(|at| screened[at].policy).collect();
        for other in sample(&non_dominated(screened)) {
            if !chosen.contains(&other.policy) {
                chosen.push(other.policy);
            }
        }
        chosen
    }

    /// Adds a limit of attempts that no client reached, so that the figures stay the same.
    fn limited(&self, known: &Candidate, most: u64) -> Candidate {
        let Attempts::Enough(least) = self.space.attempts else { return known.clone() };
        let limit = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1).max(least);
        let policy = known.policy.to_builder().max_attempts(limit).build().unwrap_or(known.policy);
        Candidate { policy, ..known.clone() }
    }
}

/// Picks at most `OTHERS_SIMULATED` candidates, including both ends.
fn sample(front: &[Candidate]) -> Vec<Candidate> {
    if front.len() <= OTHERS_SIMULATED {
        return front.to_vec();
    }
    (0..OTHERS_SIMULATED).map(|at| front[at * (front.len() - 1) / (OTHERS_SIMULATED - 1)].clone()).collect()
}
