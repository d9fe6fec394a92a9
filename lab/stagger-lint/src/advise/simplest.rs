use core::time::Duration;

use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy, PolicyBuilder};

/// Returns the simplest policy with the same delays: a constant delay where delays do not grow, no cap beyond the last
/// ceiling, and no multiplier beyond the one that reaches the cap. Returns `None` if all delays are equal, so that
/// clients that have come together stay together.
pub(super) fn simplest(policy: &Policy) -> Option<Policy> {
    let (&Backoff::Exponential { base, multiplier }, Some(cap)) = (policy.backoff(), policy.cap()) else {
        return Some(*policy);
    };
    let retries = policy.max_attempts().map(|most| most.get() - 1);
    if policy.jitter() == Jitter::Decorrelated {
        let first = (base, cap.min(base.saturating_mul(3)));
        return match retries {
            _ if cap <= base => None,
            Some(1) => with_settings(Policy::uniform(first.0, first.1), policy),
            _ => Some(*policy),
        };
    }
    let last = retries.map_or(Duration::MAX, |retries| grown(base, multiplier, retries.saturating_sub(1)));
    if cap.min(last) <= base {
        let (shortest, longest) = policy.bounds(1)?;
        return match policy.floor() {
            floor if floor >= longest => None,
            // A constant delay has no floor; all jitters of the search are uniform between their bounds.
            floor if floor == shortest && !floor.is_zero() => with_settings(Policy::uniform(floor, longest), policy),
            _ => with_settings(Policy::constant(base).jitter(policy.jitter()), policy),
        };
    }
    let cap = cap.min(super::ranges::round_up(last));
    let least = (10.0 * cap.as_secs_f64() / base.as_secs_f64()).ceil() / 10.0;
    let builder = policy.to_builder().cap(cap).multiplier(multiplier.min(least.max(USUAL_MULTIPLIER)));
    builder.build().ok()
}

/// The multiplier of every policy that does not set another one.
const USUAL_MULTIPLIER: f64 = 2.0;

/// Returns the ceiling after this many multiplications.
fn grown(base: Duration, multiplier: f64, times: u32) -> Duration {
    let seconds = base.as_secs_f64() * multiplier.powi(i32::try_from(times).unwrap_or(i32::MAX));
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Builds a policy with the settings of another that do not concern its delays.
fn with_settings(builder: PolicyBuilder, of: &Policy) -> Option<Policy> {
    let mut builder = builder.spread(of.spread());
    builder = match of.max_attempts() {
        Some(most) => builder.max_attempts(most.get()),
        None => builder.unlimited_attempts(),
    };
    builder = match of.max_hint() {
        Some(longest) => builder.max_hint(longest),
        None => builder.unlimited_hint(),
    };
    if let Some(limit) = of.max_elapsed() {
        builder = builder.max_elapsed(limit);
    }
    if let Some(lived) = of.stable_after() {
        builder = builder.stable_after(lived);
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_effect_are_left_out() {
        for (policy, want) in [
            (
                "exponential base=17s cap=17s multiplier=3 jitter=±50% spread=34s",
                "constant base=17s jitter=±50% spread=34s",
            ),
            (
                "exponential base=1s cap=9s max-attempts=2 max-elapsed=5s",
                "constant base=1s jitter=full max-attempts=2 max-elapsed=5s",
            ),
            ("exponential base=5s cap=5s jitter=full floor=1s", "uniform range=1s..5s"),
            ("exponential base=5s cap=5s jitter=equal floor=1s", "constant base=5s jitter=equal"),
            (
                "exponential base=1s cap=30s multiplier=2 max-attempts=4",
                "exponential base=1s cap=4s multiplier=2 max-attempts=4",
            ),
            (
                "exponential base=4s cap=5s multiplier=6 max-attempts=inf",
                "exponential base=4s cap=5s multiplier=2 max-attempts=inf",
            ),
            ("exponential base=4s cap=20s multiplier=9", "exponential base=4s cap=20s multiplier=5"),
            ("exponential base=4s cap=20s multiplier=1.5", "exponential base=4s cap=9s multiplier=1.5"),
            (
                "exponential base=4s cap=20s multiplier=1.5 max-attempts=inf",
                "exponential base=4s cap=20s multiplier=1.5 max-attempts=inf",
            ),
            ("exponential base=2s cap=5s jitter=decorrelated max-attempts=2", "uniform range=2s..5s max-attempts=2"),
            ("exponential base=2s cap=5s jitter=decorrelated", "exponential base=2s cap=5s jitter=decorrelated"),
            ("constant base=2s", "constant base=2s"),
        ] {
            let policy: Policy = policy.parse().unwrap();
            assert_eq!(simplest(&policy), Some(want.parse().unwrap()), "{policy}");
        }
    }

    #[test]
    fn the_simplest_policy_has_the_same_bounds() {
        for policy in [
            "exponential base=1700ms cap=1700ms multiplier=3 jitter=±20% max-attempts=5",
            "exponential base=3s cap=3s jitter=full floor=500ms max-attempts=5",
            "exponential base=700ms cap=4200ms multiplier=9 jitter=equal max-attempts=5",
            "exponential base=2s cap=5s jitter=decorrelated max-attempts=2",
        ] {
            let policy: Policy = policy.parse().unwrap();
            let simple = simplest(&policy).unwrap();
            assert_ne!(simple, policy);
            let bounds = |policy: &Policy| (1..5).map(|retry| policy.bounds(retry)).collect::<Vec<_>>();
            assert_eq!(bounds(&simple), bounds(&policy), "{policy} {simple}");
        }
    }

    #[test]
    fn delays_that_are_all_equal_are_no_answer() {
        let policy: Policy = "exponential base=2s cap=9s jitter=full floor=4s max-attempts=2".parse().unwrap();
        assert_eq!(simplest(&policy), None);
    }
}
