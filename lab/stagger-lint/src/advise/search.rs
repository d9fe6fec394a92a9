use core::time::Duration;
use std::collections::BTreeSet;

use stagger_core::{Policy, Seed};

use super::evaluator::{Detail, Evaluator};
use super::pareto_front::{Candidate, Objective, ParetoFront, Prediction, non_dominated};
use super::ranges::{Point, Ranges};
use super::search_space::{Attempts, SearchSpace, simplest};
use crate::{DeploymentContext, warns};
use stagger_sim::Progress;

pub(super) struct Search<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) space: &'a SearchSpace,
    pub(super) ranges: &'a Ranges,
    pub(super) limits: Limits,
    pub(super) objective: Objective,
    /// What the linter is told of the fleet.
    pub(super) context: DeploymentContext,
    pub(super) seed: Seed,
    pub(super) warned: Warned,
}

/// What becomes of the policies that `check` warns of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Warned {
    /// They are no candidates.
    Out,
    /// They are candidates like all others: there is nothing else.
    In,
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

/// The last rounds, in which rivals compete with the recommended policy: their maximum number, the number of drawn
/// rivals, the factors by which others differ from the recommended one, and the number of each.
const CHALLENGES: usize = 8;
const RIVALS: u64 = 160;
const AROUND: [f64; 3] = [1.03, 1.1, 1.3];
const NEIGHBORS: u64 = 24;

/// Excess of the score, and of the logarithm of each figure, from which on a policy is no rival of the recommended one.
const NO_RIVAL: f64 = 0.1;
const WORSE: f64 = 0.02;

/// Maximum numbers of policies simulated client by client: the best by their score, and others of the front.
const BEST_SIMULATED: usize = 6;
const OTHERS_SIMULATED: usize = 5;

/// Number of clients to simulate in each fine round over all its policies, and the range of their number.
const CLIENTS_OF_ROUND: u64 = 20_000;
const SIMULATED_FINELY: core::ops::RangeInclusive<u64> = 2..=10;

/// Maximum number of candidates of the front, and the least distance of those that are there for comparison.
const SHOWN: usize = 12;
const VISIBLY_DIFFERENT: f64 = 0.05;

/// Maximum number of the best candidates of the front whose figures are those of more runs.
const BEST_REPORTED: usize = 6;

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
        match policy.bounds(1) {
            Some((shortest, _)) if shortest < self.min_delay => builder = builder.floor(self.min_delay),
            _ => {}
        }
        if let Some(limit) = self.max_elapsed {
            builder = builder.max_elapsed(limit);
        }
        builder.build().ok()
    }

    /// Returns whether all delays of a call together are within its patience.
    fn permit(self, policy: &Policy) -> bool {
        let (Some(patience), Some(most)) = (self.patience, policy.max_attempts()) else { return true };
        match policy.elapsed_bounds(most.get() - 1) {
            Some((_, longest)) => longest <= patience,
            None => true,
        }
    }
}

/// The policies that were evaluated, with the points they were made from.
#[derive(Default)]
struct Known {
    points: Vec<Point>,
    candidates: Vec<Candidate>,
}

/// A score beyond which a policy is hopeless, and whether the recovery time only breaks ties in it.
#[derive(Clone, Copy)]
struct Bound {
    score: f64,
    is_in_time: bool,
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
    /// Runs the search, at first among the policies that `check` does not warn of; returns `None` if none was evaluated
    /// before it was cancelled.
    pub(super) fn run(self, progress: &Progress) -> Option<ParetoFront> {
        self.run_once(progress).or_else(|| Self { warned: Warned::In, ..self }.run_once(progress))
    }

    fn run_once(&self, progress: &Progress) -> Option<ParetoFront> {
        let mut known = Known::default();
        let drawn: Vec<Point> = (0..DRAWN).map(|n| self.ranges.draw(self.seed.for_call(n))).collect();
        let (first, others) = drawn.split_at(FIRST_DRAWN);
        self.screen_all(first.to_vec(), &mut known, progress);
        self.screen_all(others.to_vec(), &mut known, progress);
        for factors in ROUNDS {
            let best = self.objective.ranked(&known.candidates);
            let varied = best.into_iter().take(VARIED).map(|at| known.points[at]);
            let near = varied.flat_map(|point| self.ranges.near(&point, factors)).collect();
            self.screen_all(near, &mut known, progress);
        }
        let (detail, mut verified) = (self.evaluator.searched(), Verified::default());
        self.verify(&self.chosen(&known.candidates), detail, &known, &mut verified, progress);
        for factors in FINE_ROUNDS {
            // What the simulation shows to be the best need not be what screening showed.
            let best = self.objective.ranked(&verified.candidates).into_iter().take(VARIED_FINELY);
            let near = best.flat_map(|at| self.ranges.near(&verified.points[at], factors)).collect();
            self.screen_all(near, &mut known, progress);
            let next = self.next(&known, &verified, self.count_of_round(), &|_| true);
            self.verify(&next, detail, &known, &mut verified, progress);
        }
        self.challenge(&mut known, &mut verified, progress);
        // The best of many in few runs had some luck in them, so that the figures to report are those of more runs.
        let mut reported = Verified::default();
        self.verify(&self.finalists(&verified)?, self.evaluator.reported(), &known, &mut reported, progress);
        let (best, shown) = self.shown(&reported)?;
        let candidates = shown.iter().map(|at| self.limited(&reported, *at)).collect();
        Some(ParetoFront {
            best,
            candidates,
            outages: self.evaluator.outages.clone(),
            scenario: self.evaluator.reported_scenario()?,
            searched: self.ranges.text(),
            simulated_clients: self.evaluator.simulated(),
            runs: self.evaluator.reported_runs(),
            tried_policies: known.candidates.len(),
            min_recovery_time: self.evaluator.acceptance_time,
            is_clean: self.warned == Warned::Out,
        })
    }

    /// Lets drawn policies, and those around the recommended one, compete with it until none is better.
    fn challenge(&self, known: &mut Known, verified: &mut Verified, progress: &Progress) {
        for (round, factors) in FINE_ROUNDS.into_iter().cycle().take(CHALLENGES).enumerate() {
            let Some(at) = self.recommended(verified) else { return };
            let (point, policy) = (verified.points[at], verified.candidates[at].policy);
            let seed = self.seed.for_call(DRAWN + round as u64);
            let mut rivals: Vec<Point> = (0..RIVALS).map(|n| self.ranges.draw(seed.for_call(n))).collect();
            rivals.extend(self.ranges.near(&point, factors));
            let mut draws = RIVALS..;
            for factor in AROUND {
                for n in draws.by_ref().take(NEIGHBORS as usize) {
                    rivals.push(self.ranges.around(&point, factor, seed.for_call(n)));
                }
            }
            let Some(recommended) = known.candidates.iter().find(|known| known.policy == policy).cloned() else {
                return;
            };
            self.screen(rivals, self.bound(&recommended, NO_RIVAL), known, progress);
            // Around those that come closest to being better in everything.
            for factors in [FINE_ROUNDS[0], factors] {
                let mut closest: Vec<usize> = (0..known.candidates.len()).collect();
                let excess = |at: usize| known.candidates[at].predicted.excess(&recommended.predicted);
                closest.retain(|&at| known.candidates[at].policy != policy);
                closest.sort_by(|&a, &b| excess(a).total_cmp(&excess(b)));
                let near = closest.iter().take(VARIED).flat_map(|at| self.ranges.near(&known.points[*at], factors));
                self.screen(near.collect(), self.bound(&recommended, NO_RIVAL), known, progress);
            }
            let is_rival = |it: &Candidate| it.predicted.excess(&recommended.predicted) <= WORSE;
            let count = self.count_of_round();
            let mut next = self.next(known, verified, count / 2, &|_| true);
            let others = self.next(known, verified, count, &is_rival).into_iter();
            next.extend(others.filter(|other| !next.contains(other)).take(count - next.len()).collect::<Vec<_>>());
            self.verify(&next, self.evaluator.searched(), known, verified, progress);
            if round > 0 && self.recommended(verified) == Some(at) {
                return;
            }
        }
    }

    /// Returns which simulated policy is the best.
    fn recommended(&self, verified: &Verified) -> Option<usize> {
        Front::of(verified, self).map(|front| front.indices[front.best])
    }

    /// Returns a bound on scores that exceeds the score of this policy by `slack`.
    fn bound(&self, of: &Candidate, slack: f64) -> Bound {
        let is_in_time = self.objective.is_in_time(&of.predicted);
        Bound { score: self.objective.score(&of.predicted, is_in_time) + slack, is_in_time }
    }

    /// Evaluates the policies of these points, unless they are known or hopeless compared with the best.
    fn screen_all(&self, points: Vec<Point>, known: &mut Known, progress: &Progress) {
        let best = self.objective.ranked(&known.candidates).first().map(|at| &known.candidates[*at]);
        let bound = match best {
            Some(best) => self.bound(best, HOPELESS),
            None => Bound { score: f64::INFINITY, is_in_time: false },
        };
        self.screen(points, bound, known, progress);
    }

    /// Evaluates the policies of these points, unless they are known. Leaves out those that will exceed the bound.
    fn screen(&self, points: Vec<Point>, bound: Bound, known: &mut Known, progress: &Progress) {
        let mut new: Vec<(Point, Policy)> = Vec::new();
        for point in points {
            let Some(policy) = self.policy(&point) else { continue };
            let is_known = known.candidates.iter().any(|known| known.policy == policy);
            if !is_known && new.iter().all(|(_, other)| *other != policy) {
                new.push((point, policy));
            }
        }
        let policies: Vec<Policy> = new.iter().map(|(_, policy)| *policy).collect();
        let is_hopeless = |so_far: &Candidate| {
            // All clients of a policy without limits are served; one with limits may serve more at a higher peak.
            so_far.policy.max_attempts().is_none()
                && so_far.policy.max_elapsed().is_none()
                && self.objective.score(&so_far.predicted, bound.is_in_time) > bound.score
        };
        for candidate in self.evaluator.screen(&policies, is_hopeless, progress) {
            // A cancelled evaluation is missing from the candidates.
            if let Some((point, _)) = new.iter().find(|(_, policy)| *policy == candidate.policy) {
                known.points.push(*point);
                known.candidates.push(candidate);
            }
        }
    }

    /// Returns the simplest policy of a point within the limits, of which `check` does not warn; `None` if there is
    /// none.
    fn policy(&self, point: &Point) -> Option<Policy> {
        let policy = self.limits.restrict(&self.space.policy(point)?)?;
        let policy = simplest(&policy)?;
        let fits =
            self.limits.permit(&policy) && is_jittered(&policy) && self.is_candidate(&self.with_limit(&policy, 0));
        if fits { Some(policy) } else { None }
    }

    /// Returns the policies to simulate: the best, and a sample of the front.
    fn chosen(&self, screened: &[Candidate]) -> Vec<Policy> {
        let best = self.objective.ranked(screened).into_iter().take(BEST_SIMULATED);
        let mut chosen: Vec<Policy> = best.map(|at| screened[at].policy).collect();
        for other in sample(&non_dominated(screened)).map(|at| screened[at].policy) {
            if !chosen.contains(&other) {
                chosen.push(other);
            }
        }
        chosen
    }

    /// Simulates policies, unless they were simulated before.
    fn verify(&self, policies: &[Policy], detail: Detail, known: &Known, verified: &mut Verified, progress: &Progress) {
        for (candidate, most) in self.evaluator.simulate(policies, detail, progress) {
            if let Some(at) = known.candidates.iter().position(|known| known.policy == candidate.policy) {
                verified.points.push(known.points[at]);
                verified.candidates.push(candidate);
                verified.attempts.push(most);
            }
        }
    }

    /// Returns the number of policies to simulate in a round.
    fn count_of_round(&self) -> usize {
        let count = CLIENTS_OF_ROUND / self.evaluator.clients_of_policy().max(1);
        count.clamp(*SIMULATED_FINELY.start(), *SIMULATED_FINELY.end()) as usize
    }

    /// Returns the best of these policies, as screened, that were not simulated yet.
    fn next(&self, known: &Known, verified: &Verified, count: usize, of: &dyn Fn(&Candidate) -> bool) -> Vec<Policy> {
        let is_new = |policy: &Policy| verified.candidates.iter().all(|verified| verified.policy != *policy);
        let these: Vec<Candidate> =
            known.candidates.iter().filter(|it| of(it) && is_new(&it.policy)).cloned().collect();
        self.objective.ranked(&these).into_iter().take(count).map(|at| these[at].policy).collect()
    }

    /// Returns whether no rule of `check` warns of this policy, or it may.
    fn is_candidate(&self, policy: &Policy) -> bool {
        self.warned == Warned::In || !warns(policy, &self.context)
    }

    /// Returns the candidate with a limit of attempts that no client reached, so that the figures stay the same, and
    /// its outages in ascending order.
    fn limited(&self, verified: &Verified, at: usize) -> Candidate {
        let mut known = verified.candidates[at].clone();
        known.by_outage.sort_unstable_by_key(|(outage, _)| *outage);
        Candidate { policy: self.with_limit(&known.policy, verified.attempts[at]), ..known }
    }

    /// Returns the policy with a limit of more attempts than this, if it needs one.
    fn with_limit(&self, policy: &Policy, attempts: u64) -> Policy {
        let Attempts::Enough(least) = self.space.attempts else { return *policy };
        let limit = u32::try_from(attempts).unwrap_or(u32::MAX).saturating_add(1).max(least);
        policy.to_builder().max_attempts(limit).build().unwrap_or(*policy)
    }

    /// Returns the policies of the front to report on: those that are shown, and the best ones, which may change
    /// places.
    fn finalists(&self, verified: &Verified) -> Option<Vec<Policy>> {
        let front = Front::of(verified, self)?;
        let finalists: BTreeSet<usize> = front.shown().into_iter().chain(front.best_ones()).collect();
        Some(finalists.into_iter().map(|at| verified.candidates[front.indices[at]].policy).collect())
    }

    /// Returns the indices of the policies of the front that are shown, and which of these is the best.
    fn shown(&self, verified: &Verified) -> Option<(usize, Vec<usize>)> {
        let front = Front::of(verified, self)?;
        let shown = front.shown();
        let best = shown.iter().position(|at| *at == front.best).unwrap_or(0);
        Some((best, shown.into_iter().map(|at| front.indices[at]).collect()))
    }
}

/// The policies that no other dominates, in the order of their peaks.
struct Front {
    /// Their indices among all that were simulated. All other indices here are positions in this list.
    indices: Vec<usize>,
    predicted: Vec<Prediction>,
    /// From the best on.
    ranked: Vec<usize>,
    best: usize,
}

impl Front {
    fn of(verified: &Verified, search: &Search<'_>) -> Option<Self> {
        let indices = non_dominated(&verified.candidates);
        let candidates: Vec<Candidate> = indices.iter().map(|at| verified.candidates[*at].clone()).collect();
        let ranked = search.objective.ranked(&candidates);
        // The limit of attempts is known only now.
        let is_candidate = |at: &usize| search.is_candidate(&search.limited(verified, indices[*at]).policy);
        let best = ranked.iter().copied().find(is_candidate)?;
        let predicted = candidates.into_iter().map(|candidate| candidate.predicted).collect();
        Some(Self { indices, predicted, ranked, best })
    }

    fn best_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranked.iter().copied().take(BEST_REPORTED)
    }

    /// Returns at most `SHOWN` policies: both ends, the best, the one that serves the most, and others that differ
    /// visibly from all of these.
    fn shown(&self) -> BTreeSet<usize> {
        let all = 0..self.indices.len();
        let served = |at: &usize| self.predicted[*at].recovered_ratio;
        let most = all.clone().max_by(|a, b| served(a).total_cmp(&served(b)));
        let last = self.indices.len().saturating_sub(1);
        let mut shown: BTreeSet<usize> = [0, last, self.best].into_iter().chain(most).collect();
        let distance = |at: usize, from: &BTreeSet<usize>| {
            let each = from.iter().map(|other| self.predicted[at].distance(&self.predicted[*other]));
            each.fold(f64::INFINITY, f64::min)
        };
        while shown.len() < SHOWN {
            let farthest = all.clone().map(|at| (at, distance(at, &shown))).max_by(|a, b| a.1.total_cmp(&b.1));
            match farthest {
                Some((at, distance)) if distance >= VISIBLY_DIFFERENT => shown.insert(at),
                _ => break,
            };
        }
        shown
    }
}

/// The smallest jitter, as a share of the mean delay on either side. With less, clients that have come together stay
/// nearly together, and the policy depends on the exact length of the outage.
const LEAST_JITTER: f64 = 0.0499;

/// Number of retries whose jitter is examined.
const EXAMINED: u32 = 4;

/// Returns whether the first delays are drawn from a range of some width.
fn is_jittered(policy: &Policy) -> bool {
    let most = policy.max_attempts().map_or(EXAMINED, |most| (most.get() - 1).min(EXAMINED));
    (1..=most).filter_map(|retry| policy.bounds(retry)).all(|(shortest, longest)| {
        let (shortest, longest) = (shortest.as_secs_f64(), longest.as_secs_f64());
        longest - shortest >= LEAST_JITTER * (longest + shortest)
    })
}

/// Picks at most `OTHERS_SIMULATED` of the indices, including both ends.
fn sample(front: &[usize]) -> impl Iterator<Item = usize> + '_ {
    let last = front.len().saturating_sub(1);
    let count = front.len().min(OTHERS_SIMULATED);
    (0..count).map(move |at| front[at * last / (count - 1).max(1)])
}
