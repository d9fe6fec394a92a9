use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::evaluator::Evaluator;
use super::pareto_front::{Candidate, Objective, ParetoFront, Prediction, non_dominated};
use super::ranges::{Point, Ranges};
use super::search_space::{Attempts, SearchSpace};
use super::simplest::simplest;
use crate::engine::progress::Progress;
use crate::lint::{DeploymentContext, Severity, check};

pub(super) struct Search<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) space: &'a SearchSpace,
    pub(super) ranges: &'a Ranges,
    pub(super) limits: Limits,
    pub(super) objective: Objective,
    /// What the linter is told of the fleet.
    pub(super) context: DeploymentContext,
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

/// Number of policies that are drawn from the whole search space. The first of them show which of the others are
/// hopeless.
const DRAWN: u64 = 240;
const FIRST_DRAWN: usize = 12;

/// Excess of the score from which on a policy is not simulated in the longer outages: 2.7 times the overload, say.
const HOPELESS: f64 = 1.0;

/// Factors by which the settings of the best policies are varied, round by round; and the number of policies varied.
const ROUNDS: [&[f64]; 5] = [&[0.5, 2.0], &[0.7, 1.4], &[0.8, 1.25], &[0.9, 1.1], &[0.96, 1.04]];
const VARIED: usize = 3;

/// The same for the best of the simulated policies.
const FINE_ROUNDS: [&[f64]; 4] = [&[0.8, 1.25], &[0.93, 1.07], &[0.97, 1.03], &[0.98, 1.02]];
const VARIED_FINELY: usize = 2;

/// The last rounds, in which random policies, and those around the best, compete with the best: their maximum number, the
/// number of each, and the factors by which those around it differ. Excess of the score from which on a policy is none
/// of the rivals.
const CHALLENGES: u64 = 6;
const RIVALS: u64 = 120;
const NEIGHBORS: u64 = 16;
const AROUND: [f64; 3] = [1.03, 1.1, 1.3];
const NO_RIVAL: f64 = 0.2;

/// Maximum numbers of policies simulated client by client: the best by their score, and others of the front.
const BEST_SIMULATED: usize = 6;
const OTHERS_SIMULATED: usize = 5;

/// Number of clients to simulate in each fine round over all its policies, and the range of their number.
const CLIENTS_OF_ROUND: u64 = 20_000;
const SIMULATED_FINELY: core::ops::RangeInclusive<u64> = 2..=10;

/// Maximum number of candidates of the front.
const SHOWN: usize = 12;

/// Minimum ratio of cap to base where a floor raises both.
const CAP_IN_BASES: u32 = 10;

impl Limits {
    /// Applies the limits to a policy whose base and cap were chosen without them.
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

    /// Applies the limits to a policy whose base is not below the minimum delay.
    fn restrict(self, policy: &Policy) -> Option<Policy> {
        let mut builder = policy.to_builder();
        if policy.bounds(1).is_some_and(|(shortest, _)| shortest < self.min_delay) {
            builder = builder.floor(self.min_delay);
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

/// The policies that were simulated client by client.
#[derive(Default)]
struct Verified {
    points: Vec<Point>,
    candidates: Vec<Candidate>,
    /// The maximum number of attempts of a client.
    attempts: Vec<u64>,
}

impl Search<'_> {
    /// Runs the search; returns `None` if no policy was evaluated before it was cancelled.
    pub(super) fn run(&self, progress: &Progress) -> Option<ParetoFront> {
        let mut known = Known::default();
        let drawn: Vec<Point> = (0..DRAWN).map(|n| self.ranges.draw(self.seed.for_call(n))).collect();
        let (first, others) = drawn.split_at(FIRST_DRAWN);
        self.screen(first.to_vec(), HOPELESS, &mut known, progress);
        self.screen(others.to_vec(), HOPELESS, &mut known, progress);
        for factors in ROUNDS {
            let best = self.objective.ranked(&known.candidates);
            let varied = best.into_iter().take(VARIED).map(|at| known.points[at]);
            let near = varied.flat_map(|point| self.ranges.near(&point, factors)).collect();
            self.screen(near, HOPELESS, &mut known, progress);
        }
        let mut verified = Verified::default();
        self.verify(&self.chosen(&known.candidates), &known, &mut verified, progress);
        for factors in FINE_ROUNDS {
            // What the simulation shows to be the best need not be what screening showed.
            let best = self.objective.ranked(&verified.candidates).into_iter().take(VARIED_FINELY);
            let near = best.flat_map(|at| self.ranges.near(&verified.points[at], factors)).collect();
            self.screen(near, HOPELESS, &mut known, progress);
            self.verify(&self.next(&known, &verified), &known, &mut verified, progress);
        }
        self.challenge(&mut known, &mut verified, progress);
        let limited = verified.candidates.iter().zip(&verified.attempts);
        let limited: Vec<Candidate> = limited.map(|(known, most)| self.limited(known, *most)).collect();
        let candidates = non_dominated(&limited);
        // What the linter warns of is recommended only if there is nothing else.
        let is_clean: Vec<bool> = candidates.iter().map(|known| self.is_clean(&known.policy)).collect();
        let ranked = self.objective.ranked(&candidates);
        let best = ranked.iter().copied().find(|at| is_clean[*at]).or(ranked.first().copied())?;
        let (best, candidates) = shown(&candidates, best);
        Some(ParetoFront {
            best,
            candidates,
            outages: self.evaluator.outages.clone(),
            scenarios: self.evaluator.scenarios().to_vec(),
            searched: self.ranges.text(),
            simulated_clients: self.evaluator.simulated(),
            runs: self.evaluator.runs(),
            tried_policies: known.candidates.len(),
            min_recovery_time: self.evaluator.acceptance_time,
        })
    }

    /// Lets random policies, and those around the best ones, compete with the best policy until none is better.
    fn challenge(&self, known: &mut Known, verified: &mut Verified, progress: &Progress) {
        for round in 0..CHALLENGES {
            let seed = self.seed.for_call(DRAWN + round);
            let mut rivals: Vec<Point> = (0..RIVALS).map(|n| self.ranges.draw(seed.for_call(n))).collect();
            let ranked = self.objective.ranked(&verified.candidates);
            for (&at, factor) in ranked.iter().take(VARIED_FINELY).flat_map(|at| AROUND.map(|factor| (at, factor))) {
                let first = rivals.len() as u64;
                let point = &verified.points[at];
                rivals.extend((first..first + NEIGHBORS).map(|n| self.ranges.around(point, factor, seed.for_call(n))));
            }
            self.screen(rivals, NO_RIVAL, known, progress);
            self.verify(&self.next(known, verified), known, verified, progress);
            let best = self.objective.ranked(&verified.candidates).first().copied();
            if round > 0 && best == ranked.first().copied() {
                break;
            }
        }
    }

    /// Evaluates the policies of these points, unless they are known. Leaves out those whose score will exceed that of
    /// the best by more than `slack`.
    fn screen(&self, points: Vec<Point>, slack: f64, known: &mut Known, progress: &Progress) {
        let mut new: Vec<(Point, Policy)> = Vec::new();
        for point in points {
            let policy = self.space.policy(&point).and_then(|policy| self.limits.restrict(&policy));
            let policy = policy.and_then(|policy| simplest(&policy));
            let Some(policy) = policy.filter(|policy| self.limits.permit(policy)) else { continue };
            let is_known = known.candidates.iter().any(|known| known.policy == policy);
            if !is_known && new.iter().all(|(_, other)| *other != policy) {
                new.push((point, policy));
            }
        }
        let policies: Vec<Policy> = new.iter().map(|(_, policy)| *policy).collect();
        let scores = known.candidates.iter().map(|known| self.objective.score(&known.predicted, false));
        let limit = scores.fold(f64::INFINITY, f64::min) + slack;
        let is_hopeless = |policy: &Policy, by_outage: &[Prediction]| {
            // All clients of a policy without limits are served; one with limits may serve more at a higher peak.
            policy.max_attempts().is_none()
                && policy.max_elapsed().is_none()
                && self.objective.score(&Candidate::new(*policy, by_outage.to_vec()).predicted, false) > limit
        };
        for candidate in self.evaluator.screen(&policies, is_hopeless, progress) {
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

    /// Simulates policies, unless they were simulated before.
    fn verify(&self, policies: &[Policy], known: &Known, verified: &mut Verified, progress: &Progress) {
        for (candidate, most) in self.evaluator.simulate(policies, progress) {
            if let Some(at) = known.candidates.iter().position(|known| known.policy == candidate.policy) {
                verified.points.push(known.points[at]);
                verified.candidates.push(candidate);
                verified.attempts.push(most);
            }
        }
    }

    /// Returns the best policies that were not simulated yet.
    fn next(&self, known: &Known, verified: &Verified) -> Vec<Policy> {
        let each = self.evaluator.simulated() * u64::from(self.evaluator.runs()) * self.evaluator.outages.len() as u64;
        let count = CLIENTS_OF_ROUND / each.max(1);
        let count = count.clamp(*SIMULATED_FINELY.start(), *SIMULATED_FINELY.end()) as usize;
        let is_new = |policy: &Policy| verified.candidates.iter().all(|verified| verified.policy != *policy);
        let ranked = self.objective.ranked(&known.candidates).into_iter().map(|at| known.candidates[at].policy);
        ranked.filter(is_new).take(count).collect()
    }

    /// Returns whether the linter has no warning about this policy.
    fn is_clean(&self, policy: &Policy) -> bool {
        check(policy, &self.context).iter().all(|finding| finding.rule().severity() != Severity::Warning)
    }

    /// Adds a limit of attempts that no client reached, so that the figures stay the same.
    fn limited(&self, known: &Candidate, most: u64) -> Candidate {
        let Attempts::Enough(least) = self.space.attempts else { return known.clone() };
        let limit = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1).max(least);
        let policy = known.policy.to_builder().max_attempts(limit).build().unwrap_or(known.policy);
        Candidate { policy, ..known.clone() }
    }
}

/// Returns the index of the best candidate, and at most `SHOWN` candidates with it and both ends among them.
fn shown(front: &[Candidate], best: usize) -> (usize, Vec<Candidate>) {
    let last = front.len().saturating_sub(1);
    let mut kept: Vec<usize> = match last {
        0..SHOWN => (0..front.len()).collect(),
        _ => (0..SHOWN).map(|at| at * last / (SHOWN - 1)).collect(),
    };
    if let Err(at) = kept.binary_search(&best) {
        // Between both ends, so that one of them may give way.
        kept[at.min(SHOWN - 2)] = best;
    }
    let best = kept.iter().position(|at| *at == best).unwrap_or(0);
    (best, kept.into_iter().map(|at| front[at].clone()).collect())
}

/// Picks at most `OTHERS_SIMULATED` candidates, including both ends.
fn sample(front: &[Candidate]) -> Vec<Candidate> {
    if front.len() <= OTHERS_SIMULATED {
        return front.to_vec();
    }
    (0..OTHERS_SIMULATED).map(|at| front[at * (front.len() - 1) / (OTHERS_SIMULATED - 1)].clone()).collect()
}
