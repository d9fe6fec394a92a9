use core::time::Duration;

use stagger_core::{Jitter, Policy};

use super::evaluator::Evaluator;
use super::pareto_front::{Candidate, Objective, ParetoFront, non_dominated};
use super::search_space::{Attempts, CAP_IN_BASES, MULTIPLIERS, SearchSpace};
use crate::engine::progress::Progress;

pub(super) struct Search<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) space: &'a SearchSpace,
    pub(super) limits: Limits,
    /// Time the server needs to accept each client once: clients / capacity.
    pub(super) acceptance_time: Duration,
    pub(super) outage: Duration,
    pub(super) objective: Objective,
}

/// Constraints on every recommended policy.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) min_delay: Duration,
    pub(super) max_elapsed: Option<Duration>,
}

/// Spreads to try, as multiples of the time the server needs to accept each client once. The lint warns of less than 1.
const SPREADS: [f64; 5] = [1.0, 1.1, 1.25, 1.5, 2.0];

/// Factors by which the spread and the base of the best policy are varied.
const VARIATIONS: [f64; 6] = [0.8, 0.9, 0.96, 1.04, 1.1, 1.25];

const MAX_ROUNDS: usize = 4;

/// Maximum number of policies of the front that are simulated client by client.
const MAX_SIMULATED: usize = 16;

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
}

impl Search<'_> {
    /// Runs the search; returns `None` if no policy was evaluated before it was cancelled.
    pub(super) fn run(&self, progress: &Progress) -> Option<ParetoFront> {
        let mut screened = self.evaluator.screen(&self.space(), progress);
        for _ in 0..MAX_ROUNDS {
            let best = screened[self.objective.best(&screened)?].policy;
            let mut near = self.near(&best);
            near.retain(|policy| screened.iter().all(|known| known.policy != *policy));
            if near.is_empty() {
                break;
            }
            screened.extend(self.evaluator.screen(&near, progress));
        }
        let best = screened[self.objective.best(&screened)?];
        let mut chosen: Vec<Policy> =
            sample_front(&non_dominated(&screened)).iter().map(|known| known.policy).collect();
        if !chosen.contains(&best.policy) {
            chosen.push(best.policy);
        }
        let verified = self.evaluator.simulate(&chosen, progress);
        let candidates =
            non_dominated(&verified.iter().map(|(known, most)| self.limited(known, *most)).collect::<Vec<_>>());
        Some(ParetoFront {
            best: self.objective.best(&candidates)?,
            candidates,
            simulated_clients: self.evaluator.simulated(),
            runs: self.evaluator.runs(),
            tried_policies: screened.len(),
            min_recovery_time: self.evaluator.min_recovery_time,
        })
    }

    /// Returns a coarse grid over the search space.
    fn space(&self) -> Vec<Policy> {
        let SearchSpace { bases, caps, jitters, .. } = *self.space;
        let mut space = Vec::new();
        for (&base, &cap) in bases.iter().flat_map(|base| caps.iter().map(move |cap| (base, cap))) {
            for (&jitter, multiplier) in jitters.iter().flat_map(|jitter| MULTIPLIERS.map(|by| (jitter, by))) {
                // Decorrelated jitter draws from the previous delay and has no multiplier.
                let again = jitter == Jitter::Decorrelated && multiplier.total_cmp(&MULTIPLIERS[0]).is_ne();
                if cap < base * u64::from(CAP_IN_BASES) && base * u64::from(CAP_IN_BASES) <= 60_000 || again {
                    continue;
                }
                let [base, cap] = [base, cap].map(Duration::from_millis);
                for spread in self.spreads() {
                    let builder = self.space.builder(base, cap, multiplier, jitter).spread(spread);
                    space.extend(builder.build().ok().and_then(|policy| self.limits.apply(&policy)));
                }
            }
        }
        space.dedup();
        space
    }

    fn spreads(&self) -> Vec<Duration> {
        if let Attempts::AtMost(_) = self.space.attempts {
            return vec![Duration::ZERO];
        }
        let mut spreads: Vec<_> = SPREADS.map(|by| round_up(self.acceptance_time.mul_f64(by))).into();
        if !self.outage.is_zero() {
            // Clients that arrive during the outage have to retry.
            spreads.extend(SPREADS.map(|by| round_up((self.acceptance_time + self.outage).mul_f64(by))));
        }
        spreads
    }

    /// Returns policies that differ from `policy` in one setting.
    fn near(&self, policy: &Policy) -> Vec<Policy> {
        let (spread, base) = (policy.spread(), policy.base());
        let [shortest, longest] = [self.space.bases.first(), self.space.bases.last()]
            .map(|base| Duration::from_millis(base.copied().unwrap_or(0)));
        let varied = |length: Duration| VARIATIONS.into_iter().map(move |by| round_up(length.mul_f64(by)));
        let spreads = varied(spread)
            .filter(|varied| !spread.is_zero() && *varied >= self.acceptance_time)
            .map(|varied| policy.to_builder().spread(varied));
        let bases = varied(base)
            .filter(|varied| (shortest.max(self.limits.min_delay)..=longest).contains(varied))
            .map(|varied| policy.to_builder().base(varied));
        spreads.chain(bases).filter_map(|builder| builder.build().ok()).collect()
    }

    /// Adds a limit of attempts that no client reached, so that the figures stay the same.
    fn limited(&self, known: &Candidate, most: u64) -> Candidate {
        let Attempts::Enough(least) = self.space.attempts else { return *known };
        let limit = u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1).max(least);
        let policy = known.policy.to_builder().max_attempts(limit).build().unwrap_or(known.policy);
        Candidate { policy, ..*known }
    }
}

/// Rounds up to two digits, so that the simulated policy is exactly the printed one.
fn round_up(length: Duration) -> Duration {
    let ms = length.as_micros().div_ceil(1_000);
    let digits = ms.checked_ilog10().unwrap_or(0).saturating_sub(1);
    let step = 10_u128.pow(digits);
    Duration::from_millis(u64::try_from(ms.div_ceil(step) * step).unwrap_or(u64::MAX))
}

/// Picks at most `MAX_SIMULATED` candidates, including both ends.
fn sample_front(front: &[Candidate]) -> Vec<Candidate> {
    if front.len() <= MAX_SIMULATED {
        return front.to_vec();
    }
    (0..MAX_SIMULATED).map(|at| front[at * (front.len() - 1) / (MAX_SIMULATED - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_durations_have_two_digits() {
        for (ms, want) in [(0, 0), (7, 7), (99, 99), (101, 110), (20_000, 20_000), (20_001, 21_000), (123_456, 130_000)]
        {
            assert_eq!(round_up(Duration::from_millis(ms)), Duration::from_millis(want), "{ms}");
        }
    }
}
