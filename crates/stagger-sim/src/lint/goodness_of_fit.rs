use core::array;
use core::time::Duration;

/// How drawn delays lie in their interval.
#[derive(Debug, Clone, PartialEq)]
pub struct GoodnessOfFit {
    /// The stretch of the interval, in shares of it, that the draws reach.
    pub reach: (f64, f64),
    /// The greatest distance between the draws' distribution and the forecast's: the statistic of
    /// Kolmogorov and Smirnov.
    pub distance: f64,
    /// How often draws that follow the forecast would lie at least so far from it.
    pub p_value: f64,
    /// The share of draws that were to be expected beyond the least or beyond the greatest of these,
    /// whichever is larger.
    pub missed: f64,
    /// How often draws that follow the forecast would miss so much of an end.
    pub p_ends: f64,
    /// How many draws fell in each hundredth of the forecast's probability, from the shortest
    /// delays up: level where the forecast holds.
    pub percentile_counts: [u32; 100],
}

/// A distance that is nobody's concern, however surely it is there, and a share of draws that may
/// be missing at an end: the forecast itself is computed on a grid.
const NEGLIGIBLE: f64 = 0.01;
const NEGLIGIBLE_END: f64 = 0.001;

/// Points at which the forecast's distribution is read.
const POINTS: usize = 129;

impl GoodnessOfFit {
    /// How `drawn` lies in a forecast whose bounds are these. It is sorted, from the shortest on; of nothing drawn
    /// there is nothing to say against it.
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
            // Draws of one length share its stretch of the forecast evenly.
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
        let ends = |length: Option<&Duration>| length.map_or((0.0, 1.0), |l| curve.around(*l));
        let (missed_below, _) = ends(drawn.first());
        let (_, reached) = ends(drawn.last());
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

    /// Whether the draws contradict the forecast, if chance may make it look so with `threshold`.
    #[must_use]
    pub fn is_rejected(&self, threshold: f64) -> bool {
        let far = self.distance > NEGLIGIBLE && self.p_value < threshold;
        let short = self.missed > NEGLIGIBLE_END && self.p_ends < threshold;
        far || short
    }

    /// How many draws it takes into account.
    fn count(&self) -> u32 {
        self.percentile_counts.iter().sum()
    }

    /// How far the draws lie above the forecast at each hundredth of its probability: the share of
    /// them that is at most so long, less the share that was to be expected.
    pub fn deviations(&self) -> impl Iterator<Item = f64> {
        let count = f64::from(self.count().max(1));
        self.percentile_counts.iter().enumerate().scan(0, move |sum, (i, more)| {
            *sum += more;
            Some(f64::from(*sum) / count - (i + 1) as f64 / 100.0)
        })
    }

    /// The distance beyond which draws count as astray, if chance may call them so with `threshold`.
    #[must_use]
    pub fn critical_distance(&self, threshold: f64) -> f64 {
        let count = f64::from(self.count().max(1));
        let (mut low, mut high) = (0.0, 1.0);
        // Twenty halvings are a millionth.
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

    /// How many draws fell in each tenth.
    #[must_use]
    pub fn decile_counts(&self) -> Vec<f64> {
        self.percentile_counts.chunks(10).map(|tenth| f64::from(tenth.iter().sum::<u32>())).collect()
    }
}

/// A forecast's distribution, read off its quantiles.
#[derive(Debug)]
pub struct QuantileCurve {
    /// Probabilities, and the lengths that are not exceeded with them.
    points: Vec<(f64, Duration)>,
}

impl QuantileCurve {
    /// The distribution whose quantiles these are; `None` where there is none. It asks for all of them at once.
    #[must_use]
    pub fn new(quantiles: impl FnOnce([f64; POINTS]) -> Option<[Duration; POINTS]>) -> Option<Self> {
        let shares = array::from_fn(|i| {
            let t = i as f64 / (POINTS - 1) as f64;
            // Closer to one another towards both ends, where a straight line from one to the next
            // would be furthest from a distribution that thins out.
            t * t * (3.0 - 2.0 * t)
        });
        Some(Self { points: shares.into_iter().zip(quantiles(shares)?).collect() })
    }

    /// How probable it is to draw less than `length`, and not more than it. The two differ only for
    /// a length that is drawn again and again.
    fn around(&self, length: Duration) -> (f64, f64) {
        let below = self.points.partition_point(|(_, quantile)| *quantile < length);
        let to = self.points.partition_point(|(_, quantile)| *quantile <= length);
        (self.share(below, length), self.share(to, length))
    }

    /// The probability at `length`, which lies between the points `after − 1` and `after`.
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

/// How often `count` draws lie at least `distance` from the distribution they follow.
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

    fn even(drawn: impl IntoIterator<Item = u64>) -> GoodnessOfFit {
        let ms = Duration::from_millis;
        let curve = QuantileCurve::new(|shares| Some(shares.map(|q| ms(1000).mul_f64(1.0 + q)))).unwrap();
        let mut drawn: Vec<Duration> = drawn.into_iter().map(ms).collect();
        drawn.sort();
        GoodnessOfFit::new(&curve, (ms(1000), ms(2000)), &drawn)
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
    fn what_is_allowed_is_where_draws_begin_to_stray() {
        let fit = even((0..1000).map(|i| 1000 + i));
        let (threshold, allowed) = (1e-4, fit.critical_distance(1e-4));
        assert!(kolmogorov(allowed * 1.001, 1000.0) < threshold);
        assert!(kolmogorov(allowed * 0.999, 1000.0) > threshold);
    }

    #[test]
    fn reach_is_measured_in_the_interval_and_tenths_in_probability() {
        let fit = even([1250, 1500, 1750]);
        assert_eq!(fit.reach, (0.25, 0.75));
        assert_eq!(fit.decile_counts(), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        assert!((fit.distance - 0.25).abs() < 1e-9);
    }

    #[test]
    fn draws_of_one_length_share_its_stretch_of_the_forecast() {
        // Half of the probability lies on the upper end, where a cap has cut the rest off.
        let ms = Duration::from_millis;
        let curve =
            QuantileCurve::new(|shares| Some(shares.map(|q| ms(1000).mul_f64((1.0 + 2.0 * q).min(2.0))))).unwrap();
        let drawn: Vec<Duration> = (0..500).map(|i| ms(1000 + 2 * i)).chain((0..500).map(|_| ms(2000))).collect();
        let fit = GoodnessOfFit::new(&curve, (ms(1000), ms(2000)), &drawn);
        assert!(fit.decile_counts().iter().all(|&draws| (draws - 100.0).abs() <= 4.0), "{:?}", fit.decile_counts());
        assert!(fit.distance < 0.02, "{}", fit.distance);
    }

    #[test]
    fn a_distance_counts_on_both_sides_of_the_forecast() {
        assert!((even([1900, 1950]).distance - 0.9).abs() < 1e-9);
        assert!((even([1050, 1100]).distance - 0.9).abs() < 1e-9);
    }

    #[test]
    fn draws_that_follow_the_forecast_have_no_excess_at_its_end() {
        let excess: Vec<f64> = even((0..1000).map(|i| 1000 + i)).deviations().collect();
        assert!(excess.iter().all(|share| share.abs() < 0.002), "{excess:?}");
        assert_eq!(even([1001, 1002]).deviations().next(), Some(0.99));
    }

    #[test]
    fn a_length_that_is_always_drawn_has_all_the_probability() {
        let second = Duration::from_secs(1);
        let curve = QuantileCurve::new(|shares| Some(shares.map(|_| second))).unwrap();
        assert_eq!(curve.around(second), (0.0, 1.0));
        assert_eq!(curve.around(second / 2), (0.0, 0.0));
        assert_eq!(curve.around(second * 2), (1.0, 1.0));
    }
}
