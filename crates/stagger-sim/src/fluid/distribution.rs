use stagger_core::Policy;

use super::step::steps;

/// A piecewise uniform distribution of a delay. Times are in steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    pub(super) pieces: Vec<UniformPiece>,
}

/// A share of the probability that is uniform between two times, or a point mass if they are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UniformPiece {
    pub(super) share: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// Number of parts into which a distribution is divided before adjacent parts of equal density are merged.
const PARTS: usize = 256;

impl Distribution {
    pub(super) fn uniform(from: f64, to: f64) -> Self {
        Self { pieces: vec![UniformPiece { share: 1.0, from, to }] }
    }

    /// Returns the distribution of the delay before retry `n` of a policy; `None` if there is no such retry.
    pub(super) fn for_retry(policy: &Policy, n: u32) -> Option<Self> {
        let shares: [f64; PARTS + 1] = core::array::from_fn(|part| part as f64 / PARTS as f64);
        let ends = policy.quantiles(n, shares)?.map(steps);
        let mut pieces: Vec<UniformPiece> = Vec::new();
        for pair in ends.windows(2) {
            let width = pair[1] - pair[0];
            match pieces.last_mut() {
                Some(last) if (width - last.width_of_a_part()).abs() < 1e-3 => {
                    last.share += 1.0 / PARTS as f64;
                    last.to = pair[1];
                }
                _ => pieces.push(UniformPiece { share: 1.0 / PARTS as f64, from: pair[0], to: pair[1] }),
            }
        }
        Some(Self { pieces })
    }

    /// Returns the distribution of the sum of `ways` uniform network delays, as weights of whole steps.
    pub(super) fn network_weights(ways: u32, from: f64, to: f64) -> Vec<f64> {
        // Computes the density of the sum on a grid finer than a step.
        const FINE: usize = 64;
        let cells = (((to - from) * FINE as f64).round() as usize).max(1);
        let mut density = vec![1.0];
        for _ in 0..ways {
            // Convolution with a uniform density is a moving sum.
            let mut window = 0.0;
            let sum = (0..density.len() + cells - 1).map(|at| {
                window += density.get(at).copied().unwrap_or_default();
                window -= at.checked_sub(cells).map_or(0.0, |gone| density[gone]);
                window / cells as f64
            });
            let sum = sum.collect();
            density = sum;
        }
        let mut weights = Vec::new();
        for (at, share) in density.into_iter().enumerate() {
            // The middle of the cell, rounded to the nearest step, but never to the sending step, which is over.
            let time = f64::from(ways) * from + (at as f64 + f64::from(ways) / 2.0) / FINE as f64;
            let step = (time.round() as usize).max(1);
            if weights.len() <= step {
                weights.resize(step + 1, 0.0);
            }
            weights[step] += share;
        }
        weights
    }
}

impl UniformPiece {
    fn width_of_a_part(&self) -> f64 {
        (self.to - self.from) / (self.share * PARTS as f64)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use stagger_core::profile::Profile;

    use super::*;

    #[test]
    fn a_uniform_delay_is_one_piece_and_a_capped_delay_has_few() {
        let full = Policy::exponential(Duration::from_secs(1), Duration::from_secs(8)).build().unwrap();
        assert_eq!(Distribution::for_retry(&full, 2), Some(Distribution::uniform(0.0, 400.0)));
        let none = full.to_builder().jitter(stagger_core::Jitter::None).build().unwrap();
        assert_eq!(Distribution::for_retry(&none, 1), Some(Distribution::uniform(200.0, 200.0)));
        // A ceiling of 8 s ± 10 %, capped at 8.4 s after the draw.
        let cut = "stubborn-io cap=8400ms base=8s".parse().unwrap();
        let pieces = Distribution::for_retry(&cut, 1).unwrap().pieces;
        assert!(pieces.len() <= 3, "{pieces:?}");
    }

    #[test]
    fn pieces_sum_to_one_and_have_the_mean_of_the_delay() {
        for profile in Profile::all().filter(|profile| profile.policy().has_independent_delays()) {
            let policy = profile.policy();
            for n in 1..8 {
                let Some(Distribution { pieces }) = Distribution::for_retry(&policy, n) else { continue };
                let whole: f64 = pieces.iter().map(|piece| piece.share).sum();
                let mean: f64 = pieces.iter().map(|piece| piece.share * (piece.from + piece.to) / 2.0).sum();
                let want = steps(policy.mean(n).unwrap());
                assert!((whole - 1.0).abs() < 1e-9, "{} {n}: {whole}", profile.name());
                assert!((mean - want).abs() < 1e-3 * want + 1e-3, "{} {n}: {mean} is not {want}", profile.name());
            }
        }
    }

    #[test]
    fn network_weights_have_the_mean_and_variance_of_the_sum() {
        let weights = Distribution::network_weights(2, 2.0, 8.0);
        let whole: f64 = weights.iter().sum();
        let mean: f64 = weights.iter().enumerate().map(|(step, weight)| step as f64 * weight).sum();
        let square: f64 = weights.iter().enumerate().map(|(step, weight)| (step as f64 - mean).powi(2) * weight).sum();
        assert!((whole - 1.0).abs() < 1e-9 && (mean - 10.0).abs() < 0.01, "{whole} {mean}");
        // The variance of two uniform delays of six steps, plus 1/12 for rounding to steps.
        assert!((square - (2.0 * 36.0 + 1.0) / 12.0).abs() < 0.05, "{square}");
        assert_eq!(weights[..4], [0.0; 4]);
        let immediate = Distribution::network_weights(1, 0.0, 0.0);
        assert_eq!(immediate, [0.0, 1.0], "no message arrives in the step it was sent in");
    }
}
