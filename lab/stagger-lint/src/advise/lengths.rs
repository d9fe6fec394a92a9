//! The lengths of outage that a policy is judged on.
//!
//! Nobody knows in advance how long an outage lasts. A policy that is judged only on the lengths it was asked for is
//! best if it retries just after each of them, and is of no use after an outage that lasts a little longer.

use core::time::Duration;

use stagger_core::Policy;

use super::ranges::round_up;

/// Where lengths between two others lie, as shares of their distance: for a few, and for many of them.
const BETWEEN_FEW: [f64; 2] = [0.2, 0.55];
const BETWEEN_MANY: [f64; 1] = [0.4];
const FEW: usize = 3;

/// Lengths beyond the longest one, as multiples of it.
const BEYOND: [f64; 2] = [1.1, 1.25];

/// Maximum number of lengths for a single policy, and the number of its attempts among which they are found.
const MOST_BLIND_SPOTS: usize = 2;
const ATTEMPTS: u32 = 12;

/// The time in which all clients have failed, and the longest way to the server and back, both of a default scenario.
const DISCONNECT_WINDOW: Duration = Duration::from_millis(300);
const ROUND_TRIP: Duration = Duration::from_millis(80);

/// Returns the lengths that every policy is judged on, in ascending order: those asked for, others between them, and
/// others up to a quarter beyond the longest, of at most `limit`.
pub(super) fn judged(asked: &[Duration], limit: Duration) -> Vec<Duration> {
    let mut lengths = asked.to_vec();
    lengths.sort_unstable();
    let between: &[f64] = if lengths.len() > FEW { &BETWEEN_MANY } else { &BETWEEN_FEW };
    let mut others = Vec::new();
    for pair in lengths.windows(2) {
        others.extend(between.iter().map(|share| round_up(pair[0] + (pair[1] - pair[0]).mul_f64(*share))));
    }
    let longest = lengths.last().copied().unwrap_or_default();
    let beyond = BEYOND.into_iter().map(|times| exact(longest.as_secs_f64() * times));
    others.extend(beyond.filter(|length| *length <= limit));
    lengths.extend(others);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Returns lengths within `range` after which this policy does worst: the server returns just after all clients have
/// made an attempt, and they wait for the next one, the longest first.
///
/// ```text
///  attempts  ▂█▂          ▂▄█▄▂
///  outage    ──────┤ here     ← all of them wait that long
/// ```
///
/// There are none if the ranges of the attempts overlap.
pub(super) fn blind_spots(policy: &Policy, range: (Duration, Duration)) -> Vec<Duration> {
    let most = policy.max_attempts().map_or(ATTEMPTS, |most| most.get().min(ATTEMPTS));
    let limit = policy.max_elapsed().unwrap_or(Duration::MAX);
    let mut last = policy.spread();
    let mut spots = Vec::new();
    for retry in 1..most {
        let Some((first, latest)) = policy.elapsed_bounds(retry) else { break };
        if first > limit {
            break;
        }
        let spot = round_up(last + DISCONNECT_WINDOW + ROUND_TRIP * retry);
        if spot < first && (range.0..=range.1).contains(&spot) {
            spots.push((latest.min(limit) - spot, spot));
        }
        last = latest;
    }
    spots.sort_unstable_by(|one, other| other.cmp(one));
    spots.into_iter().take(MOST_BLIND_SPOTS).map(|(_, spot)| spot).collect()
}

/// Returns a length in whole milliseconds.
fn exact(seconds: f64) -> Duration {
    let exact = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Duration::from_millis(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(lengths: &[Duration]) -> Vec<f64> {
        lengths.iter().map(Duration::as_secs_f64).collect()
    }

    fn of(asked: &[u64], limit: u64) -> Vec<f64> {
        let asked: Vec<_> = asked.iter().map(|asked| Duration::from_secs(*asked)).collect();
        seconds(&judged(&asked, Duration::from_secs(limit)))
    }

    #[test]
    fn lengths_lie_between_those_asked_for_and_a_quarter_beyond() {
        assert_eq!(of(&[0, 5, 30], 60), [0.0, 1.0, 2.8, 5.0, 10.0, 19.0, 30.0, 33.0, 37.5]);
        assert_eq!(of(&[10], 60), [10.0, 11.0, 12.5]);
        assert_eq!(of(&[0], 60), [0.0]);
        let many = [0.0, 2.0, 5.0, 15.0, 30.0, 66.0, 120.0, 320.0, 600.0, 660.0, 750.0];
        assert_eq!(of(&[0, 5, 30, 120, 600], 3_600), many);
        assert_eq!(of(&[0, 5], 6), [0.0, 1.0, 2.8, 5.0, 5.5], "a call has no time for more");
    }

    #[test]
    fn the_blind_spots_of_a_policy_are_just_after_its_attempts() {
        let all = (Duration::ZERO, Duration::from_secs(38));
        for (policy, want) in [
            ("exponential base=5.5s cap=25s multiplier=4.6 jitter=±2% max-attempts=3", &[6.1, 0.38][..]),
            ("constant base=20s jitter=±5% max-attempts=5", &[0.38, 22.0]),
            ("constant base=20s jitter=full max-attempts=5", &[]),
            ("constant base=20s jitter=±5% spread=21s max-attempts=inf", &[]),
            ("constant base=20s jitter=±5% max-attempts=5 max-elapsed=10s", &[]),
        ] {
            assert_eq!(seconds(&blind_spots(&policy.parse().unwrap(), all)), want, "{policy}");
        }
        let policy = "constant base=20s jitter=±5% max-attempts=5".parse().unwrap();
        let others = (Duration::from_secs(1), Duration::from_secs(20));
        assert!(blind_spots(&policy, others).is_empty(), "not within the range");
    }
}
