use core::f64::consts::TAU;
use core::time::Duration;

/// Returns the share of delays that lie in clusters, and the start of the largest cluster. A cluster lies within 0.1 %
/// or 1 ms; it contains at least five delays, a tenth of all delays, and five times as many as an even distribution up
/// to the longest delay would.
pub(super) fn clustered(sorted: &[Duration]) -> (f64, Duration) {
    let longest = sorted.last().map_or(0.0, Duration::as_secs_f64).max(f64::MIN_POSITIVE);
    let (mut at, mut inside, mut largest) = (0, 0, (0, Duration::ZERO));
    while let Some(first) = sorted.get(at) {
        let width = (*first / 1_000).max(Duration::from_millis(1));
        let many = sorted[at..].partition_point(|delay| *delay <= first.saturating_add(width));
        let evenly = (width.as_secs_f64() / longest).min(0.2) * sorted.len() as f64;
        if many >= 5 && many * 10 >= sorted.len() && many as f64 >= 5.0 * evenly {
            inside += many;
            largest = largest.max((many, *first));
            at += many;
        } else {
            at += 1;
        }
    }
    (inside as f64 / sorted.len().max(1) as f64, largest.1)
}

/// Returns the mean resultant length of the phases of `times`: from 0, uniform over the period, to 1, all equal.
pub(super) fn resultant(times: &[Duration], period: Duration) -> f64 {
    let phase = |time: &Duration| (time.as_nanos() % period.as_nanos().max(1)) as f64 / period.as_nanos() as f64 * TAU;
    let (sines, cosines) = times.iter().map(phase).fold((0.0, 0.0), |(s, c), x| (s + x.sin(), c + x.cos()));
    f64::hypot(sines, cosines) / times.len().max(1) as f64
}

pub(super) fn busiest(sorted: &[Duration]) -> usize {
    let within = |at: usize| {
        let end = sorted[at].saturating_add(Duration::from_millis(100));
        sorted[at..].partition_point(|time| *time < end)
    };
    (0..sorted.len()).map(within).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(lengths: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        lengths.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn equal_delays_are_a_cluster_and_spread_delays_are_not() {
        assert_eq!(clustered(&millis([5_000; 8])), (1.0, Duration::from_secs(5)));
        assert!(clustered(&millis((0..100).map(|i| i * 50))).0 <= 0.0);
        let (share, most) = clustered(&millis((0..20).map(|i| i * 50).chain([3_000; 20])));
        assert_eq!((share, most), (0.5, Duration::from_secs(3)));
        assert!(clustered(&[]).0 <= 0.0);
        // Groups of five that a coarse clock produces are not clusters either.
        assert!(clustered(&millis((0..1_000).map(|i| i / 5 * 50))).0 <= 0.0);
        // Short delays are close together without being in step.
        let short = [0, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 4_500].map(Duration::from_micros);
        assert!(clustered(&short).0 <= 0.0);
        assert!(clustered(&[Duration::from_millis(5); 8]).0 >= 1.0);
    }

    #[test]
    fn equal_phases_have_a_resultant_length_of_one() {
        let period = Duration::from_secs(5);
        assert!(resultant(&millis((0..50).map(|i| i * 5_000 + 1_234)), period) > 0.999);
        assert!(resultant(&millis((0..50).map(|i| i * 5_100)), period) < 0.001);
    }

    #[test]
    fn the_busiest_100_ms_are_found() {
        assert_eq!(busiest(&millis([0, 50, 99, 100, 500, 501])), 3);
        assert_eq!(busiest(&[]), 0);
    }
}
