//! Whether delays follow the forecast of a policy: a Kolmogorov–Smirnov test.

use core::array;
use core::time::Duration;

/// A goodness-of-fit test: how well measured or drawn delays match the forecast distribution.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GoodnessOfFit {
    /// The shortest and the longest draw, as fractions of the forecast interval.
    pub reach: (f64, f64),
    /// The greatest distance between the empirical and the forecast distribution function: the Kolmogorov–Smirnov
    /// statistic.
    pub distance: f64,
    /// Probability that draws from the forecast have at least this distance.
    pub p_value: f64,
    /// The forecast probability beyond the shortest or beyond the longest draw, whichever is larger.
    pub missed: f64,
    /// Probability that draws from the forecast miss at least this much at an end.
    pub p_ends: f64,
    /// Number of draws in each percentile of the forecast, from the shortest delays up: uniform if the forecast holds.
    pub percentile_counts: [u32; 100],
}

/// A distance, and a probability missed at an end, that do not count even if they are significant: the forecast itself
/// is computed on a grid.
const NEGLIGIBLE: f64 = 0.01;
const NEGLIGIBLE_END: f64 = 0.001;

/// Number of points at which the forecast distribution is evaluated.
const POINTS: usize = 129;

impl GoodnessOfFit {
    /// Tests `drawn` against a forecast with these bounds. `drawn` must be sorted in ascending order; an empty sample
    /// is never rejected.
    #[must_use]
    pub fn new(curve: &QuantileCurve, (min, max): (Duration, Duration), drawn: &[Duration]) -> Self {
        let count = drawn.len().max(1) as f64;
        let mut distance = 0.0_f64;
        let mut percentile_counts = [0; 100];
        let mut before = 0;
        for same in drawn.chunk_by(|a, b| a == b) {
            let (below, at) = curve.around(same[0]);
            let upto = before + same.len();
            distance = distance.max(upto as f64 / count - at).max(below - before as f64 / count);
            // Equal draws are distributed evenly over their probability interval.
            for i in 0..same.len() {
                let place = below + (at - below) * (i as f64 + 0.5) / same.len() as f64;
                percentile_counts[((place * 100.0) as usize).min(99)] += 1;
            }
            before = upto;
        }
        let width = max.saturating_sub(min).as_secs_f64();
        let share = |length: Option<&Duration>| match length {
            Some(length) if width > 0.0 => (length.as_secs_f64() - min.as_secs_f64()) / width,
            _ => 0.0,
        };
        let around = |length: Option<&Duration>| match length {
            Some(length) => curve.around(*length),
            None => (0.0, 1.0),
        };
        let (missed_below, _) = around(drawn.first());
        let (_, reached) = around(drawn.last());
        let missed = missed_below.max(1.0 - reached);
        Self {
            reach: (share(drawn.first()), share(drawn.last())),
            distance,
            p_value: kolmogorov(distance, count),
            missed,
            p_ends: (2.0 * (1.0 - missed).powf(count)).min(1.0),
            percentile_counts,
        }
    }

    /// Returns whether the draws contradict the forecast at significance level `threshold`.
    #[must_use]
    pub fn is_rejected(&self, threshold: f64) -> bool {
        let far = self.distance > NEGLIGIBLE && self.p_value < threshold;
        let short = self.missed > NEGLIGIBLE_END && self.p_ends < threshold;
        far || short
    }

    /// Returns the number of draws.
    fn count(&self) -> u32 {
        self.percentile_counts.iter().sum()
    }

    /// Returns the deviation of the draws at each percentile of the forecast: the empirical minus the expected share of
    /// draws up to that percentile.
    pub fn deviations(&self) -> impl Iterator<Item = f64> {
        let count = f64::from(self.count().max(1));
        self.percentile_counts.iter().enumerate().scan(0, move |sum, (i, more)| {
            *sum += more;
            Some(f64::from(*sum) / count - (i + 1) as f64 / 100.0)
        })
    }

    /// Returns the distance above which draws are rejected at significance level `threshold`.
    #[must_use]
    pub fn critical_distance(&self, threshold: f64) -> f64 {
        let count = f64::from(self.count().max(1));
        let (mut low, mut high) = (0.0, 1.0);
        // Twenty bisections give a precision of 1e-6.
        for _ in 0..20 {
            let middle = f64::midpoint(low, high);
            if kolmogorov(middle, count) < threshold {
                high = middle;
            } else {
                low = middle;
            }
        }
        high.max(NEGLIGIBLE)
    }

    /// Returns the number of draws in each decile of the forecast.
    #[must_use]
    pub fn decile_counts(&self) -> Vec<f64> {
        self.percentile_counts.chunks(10).map(|tenth| f64::from(tenth.iter().sum::<u32>())).collect()
    }
}

/// A distribution function, interpolated from the quantiles of a forecast.
#[derive(Debug)]
pub struct QuantileCurve {
    /// Probabilities and their quantiles.
    points: Vec<(f64, Duration)>,
}

impl QuantileCurve {
    /// Creates the distribution with these quantiles, which are requested in one call; `None` if there are none.
    #[must_use]
    pub fn new(quantiles: impl FnOnce([f64; POINTS]) -> Option<[Duration; POINTS]>) -> Option<Self> {
        let shares = array::from_fn(|i| {
            let t = i as f64 / (POINTS - 1) as f64;
            // Denser toward both ends, where linear interpolation would be worst for a distribution that thins out.
            t * t * (3.0 - 2.0 * t)
        });
        Some(Self { points: shares.into_iter().zip(quantiles(shares)?).collect() })
    }

    /// Returns the probabilities of a draw below `length`, and of a draw of at most `length`. They differ only for a
    /// duration that has a positive probability of its own.
    fn around(&self, length: Duration) -> (f64, f64) {
        let below = self.points.partition_point(|(_, quantile)| *quantile < length);
        let to = self.points.partition_point(|(_, quantile)| *quantile <= length);
        (self.share(below, length), self.share(to, length))
    }

    /// Returns the probability at `length`, which lies between the points `after − 1` and `after`.
    fn share(&self, after: usize, length: Duration) -> f64 {
        let Some(before) = after.checked_sub(1) else {
            return 0.0;
        };
        let (Some((low, shorter)), Some((high, longer))) = (self.points.get(before), self.points.get(after)) else {
            return 1.0;
        };
        let past = |from: &Duration, to: &Duration| to.saturating_sub(*from).as_secs_f64();
        low + (high - low) * past(shorter, &length) / past(shorter, longer).max(f64::MIN_POSITIVE)
    }
}

/// Returns the probability that `count` draws have at least `distance` from the distribution they follow.
///
/// Source: Kolmogorov's limit distribution with the correction of M. A. Stephens, "Use of the
/// Kolmogorov–Smirnov … Statistics Without Extensive Tables", 1970, good from 5 draws on.
fn kolmogorov(distance: f64, count: f64) -> f64 {
    let root = count.sqrt();
    let x = (root + 0.12 + 0.11 / root) * distance;
    // Below this the series converges slowly, to 1.
    if x < 0.2 {
        return 1.0;
    }
    let term = |j: u32| {
        let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(j * j) * x * x).exp()
    };
    (1..=100).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distribution whose quantiles are these multiples of a second.
    fn curve(quantile: impl Fn(f64) -> f64) -> QuantileCurve {
        QuantileCurve::new(|shares| Some(shares.map(|q| Duration::from_secs(1).mul_f64(quantile(q))))).unwrap()
    }

    fn even(drawn: impl IntoIterator<Item = u64>) -> GoodnessOfFit {
        let ms = Duration::from_millis;
        let mut drawn: Vec<Duration> = drawn.into_iter().map(ms).collect();
        drawn.sort();
        GoodnessOfFit::new(&curve(|q| 1.0 + q), (ms(1000), ms(2000)), &drawn)
    }

    #[test]
    fn the_limit_distribution_is_kolmogorovs() {
        // D·√n of 1.2238, 1.3581 and 1.6276 are exceeded in 10 %, 5 % and 1 % of samples.
        for (x, p) in [(1.2238, 0.1), (1.3581, 0.05), (1.6276, 0.01)] {
            let count = 1e8_f64;
            assert!((kolmogorov(x / count.sqrt(), count) - p).abs() < 1e-4, "{x}");
        }
        // M. A. Stephens, 1970: for n = 10 the 5 % point is 0.409.
        assert!((kolmogorov(0.409, 10.0) - 0.05).abs() < 2e-3);
    }

    #[test]
    fn draws_are_rejected_beyond_the_critical_distance() {
        let fit = even((0..1000).map(|i| 1000 + i));
        let (threshold, critical) = (1e-4, fit.critical_distance(1e-4));
        assert!(kolmogorov(critical * 1.001, 1000.0) < threshold);
        assert!(kolmogorov(critical * 0.999, 1000.0) > threshold);
    }

    #[test]
    fn reach_is_a_fraction_of_the_interval_and_deciles_are_of_probability() {
        let fit = even([1250, 1500, 1750]);
        assert_eq!(fit.reach, (0.25, 0.75));
        assert_eq!(fit.decile_counts(), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        assert!((fit.distance - 0.25).abs() < 1e-9);
    }

    #[test]
    fn equal_draws_are_distributed_over_their_probability_interval() {
        // Half of the probability lies at the upper end, where a cap has cut off the rest.
        let ms = Duration::from_millis;
        let curve = curve(|q| (1.0 + 2.0 * q).min(2.0));
        let drawn: Vec<Duration> = (0..500).map(|i| ms(1000 + 2 * i)).chain((0..500).map(|_| ms(2000))).collect();
        let fit = GoodnessOfFit::new(&curve, (ms(1000), ms(2000)), &drawn);
        assert!(fit.decile_counts().iter().all(|&draws| (draws - 100.0).abs() <= 4.0), "{:?}", fit.decile_counts());
        assert!(fit.distance < 0.02, "{}", fit.distance);
    }

    #[test]
    fn distances_above_and_below_the_forecast_count() {
        assert!((even([1900, 1950]).distance - 0.9).abs() < 1e-9);
        assert!((even([1050, 1100]).distance - 0.9).abs() < 1e-9);
    }

    #[test]
    fn draws_that_follow_the_forecast_have_no_deviations() {
        let deviations: Vec<f64> = even((0..1000).map(|i| 1000 + i)).deviations().collect();
        assert!(deviations.iter().all(|share| share.abs() < 0.002), "{deviations:?}");
        assert_eq!(even([1001, 1002]).deviations().next(), Some(0.99));
    }

    #[test]
    fn a_constant_delay_has_probability_one() {
        let (second, curve) = (Duration::from_secs(1), curve(|_| 1.0));
        assert_eq!(curve.around(second), (0.0, 1.0));
        assert_eq!(curve.around(second / 2), (0.0, 0.0));
        assert_eq!(curve.around(second * 2), (1.0, 1.0));
    }
}
