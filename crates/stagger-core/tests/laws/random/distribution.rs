//! Distributions of the delays of many calls.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::schedule::{Backoff, draw};
use stagger_core::{FailureKind, Jitter, Outcome, Policy, PolicyBuilder, Ratio, Seed, ServerHint};

use crate::laws::support::{Call, any_delays, any_policy, cases, ks_distance, ks_limit, length, ms, secs};

const CALLS: u64 = 20_000;

fn drawn(builder: PolicyBuilder, n: u32) -> Vec<Duration> {
    let policy = builder.build().unwrap();
    (0..CALLS).map(|id| policy.delay(n, Seed::new(11).for_call(id)).unwrap()).collect()
}

fn assert_uniform(sample: &[Duration], lo: Duration, hi: Duration, what: &str) {
    let (lo, hi) = (lo.as_nanos() as f64, hi.as_nanos() as f64);
    let cdf = |x: f64| ((x - lo) / (hi - lo)).clamp(0.0, 1.0);
    let distance = ks_distance(sample, cdf, cdf);
    assert!(distance < ks_limit(sample.len()), "{what}: {distance}");
}

/// The first retry, a ceiling below the cap, and ceilings at the cap.
#[test]
fn every_independent_jitter_is_uniform_on_its_interval() {
    let exponential = Policy::exponential(ms(100), secs(3));
    for (n, ceiling) in [(1, ms(100)), (4, ms(800)), (6, secs(3)), (50, secs(3))] {
        let fifth = ceiling / 5;
        for (jitter, lo, hi) in [
            (Jitter::Full, Duration::ZERO, ceiling),
            (Jitter::Equal, ceiling / 2, ceiling),
            (Jitter::Factor(Ratio::percent(20)), ceiling - fifth, ceiling + fifth),
            (Jitter::Factor(Ratio::ONE), Duration::ZERO, 2 * ceiling),
            (Jitter::Added(ms(250)), ceiling, ceiling + ms(250)),
        ] {
            // Additive jitter is truncated at the cap, so remove the cap.
            let exponential =
                if matches!(jitter, Jitter::Added(_)) { exponential.cap(ceiling).uncapped() } else { exponential };
            if matches!(jitter, Jitter::Added(_)) && n > 4 {
                continue;
            }
            assert_uniform(&drawn(exponential.jitter(jitter), n), lo, hi, &format!("{jitter}, retry {n}"));
        }
    }
    assert_uniform(&drawn(exponential.floor(ms(50)), 1), ms(50), ms(100), "a floor");
    assert_uniform(&drawn(Policy::linear(ms(50), ms(50), secs(3)), 3), ms(0), ms(150), "linear");
    assert_uniform(&drawn(Policy::uniform(ms(50), ms(70)), 9), ms(50), ms(70), "uniform");
    assert_uniform(&drawn(Policy::list(&[ms(50), ms(70)]), 9), ms(35), ms(70), "a list");
}

#[test]
fn additive_jitter_is_truncated_at_the_cap() {
    let policy = Policy::exponential(secs(1), secs(5)).jitter(Jitter::Added(secs(2)));
    assert_uniform(&drawn(policy, 2), secs(2), secs(4), "below the cap");
    let at_cap = drawn(policy, 3).iter().filter(|delay| **delay == secs(5)).count() as f64 / CALLS as f64;
    assert!((at_cap - 0.5).abs() < 0.02, "the half of [4 s, 6 s] that exceeds the cap must be the cap: {at_cap}");
    assert!(drawn(policy, 4).iter().all(|delay| *delay == secs(5)));
}

/// Checks the power of the test: delays that are capped after the draw are not uniform.
#[test]
fn the_test_detects_delays_accumulated_at_the_cap() {
    let capped: Vec<_> = drawn(Policy::exponential(secs(4), secs(4)), 1).into_iter().map(|d| d.min(secs(3))).collect();
    let cdf = |x: f64| (x / 3e9).clamp(0.0, 1.0);
    assert!(ks_distance(&capped, cdf, cdf) > 10.0 * ks_limit(capped.len()));
}

#[test]
fn the_spread_is_uniform() {
    let policy = Policy::DEFAULT.to_builder().spread(secs(30)).build().unwrap();
    let sample: Vec<_> = (0..CALLS).map(|id| policy.first_spread(Seed::new(11).for_call(id))).collect();
    assert_uniform(&sample, Duration::ZERO, secs(30), "spread");
}

#[test]
fn the_jitter_added_to_a_hint_is_uniform() {
    let policy = Policy::exponential(secs(1), secs(30)).max_attempts(2).build().unwrap();
    let hinted = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(secs(20))) };
    let sample: Vec<_> = (0..CALLS).map(|seed| Call::new(&policy).seed(seed).run([hinted]).waits[0]).collect();
    assert_uniform(&sample, secs(20), secs(30), "hint");
}

/// Consecutive calls, consecutive retries, and the spread and first delay of a call are uncorrelated.
#[test]
fn neighboring_draws_are_independent() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::Full).spread(secs(1)).build().unwrap();
    let delay = |id: u64, n| policy.delay(n, Seed::new(11).for_call(id)).unwrap().as_secs_f64() - 0.5;
    let spread = |id: u64| policy.first_spread(Seed::new(11).for_call(id)).as_secs_f64() - 0.5;
    let correlation = |pair: &dyn Fn(u64) -> (f64, f64)| {
        let sum: f64 = (0..CALLS).map(pair).map(|(a, b)| a * b).sum();
        sum / CALLS as f64 * 12.0
    };
    let limit = 5.0 / (CALLS as f64).sqrt();
    for (what, got) in [
        ("calls", correlation(&|id| (delay(id, 1), delay(id + 1, 1)))),
        ("retries", correlation(&|id| (delay(id, 1), delay(id, 2)))),
        ("spread", correlation(&|id| (spread(id), delay(id, 1)))),
    ] {
        assert!(got.abs() < limit, "{what}: {got}");
    }
    let one_call: Vec<_> = policy.schedule(Seed::new(5)).take(CALLS as usize).collect();
    assert_uniform(&one_call, Duration::ZERO, secs(1), "along one call");
}

// Delays are within their bounds for every seed, and reach them.

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_delay_is_within_its_bounds(policy in any_policy(), seed in any::<u64>()) {
        let mut delays = policy.schedule(Seed::new(seed));
        for n in 1..40 {
            let bounds = policy.bounds(n);
            let delay = delays.next();
            prop_assert_eq!(delay.is_none(), *policy.backoff() == Backoff::Stop);
            prop_assert_eq!(policy.delay(n, Seed::new(seed)), delay);
            if let (Some((lo, hi)), Some(delay)) = (bounds, delay) {
                prop_assert!(lo <= delay && delay <= hi, "retry {n}: {delay:?} outside {lo:?}..{hi:?}");
            }
        }
    }

    /// `min(cap, U[ceiling, ceiling + length])`, as documented for `Jitter::Added`.
    #[test]
    fn additive_jitter_is_between_the_ceiling_and_the_cap(
        base in 1..1_000_000_u64, cap in prop::option::of(1..1_000_000_000_u64), added in length(), seed in any::<u64>()
    ) {
        let builder = Policy::exponential(Duration::from_nanos(base), Duration::MAX).jitter(Jitter::Added(added));
        let cap = cap.map_or(u64::MAX, |cap| cap.max(base));
        let builder = if cap == u64::MAX { builder.uncapped() } else { builder.cap(Duration::from_nanos(cap)) };
        let policy = builder.build().unwrap();
        for (n, delay) in (1..40_u32).zip(policy.schedule(Seed::new(seed))) {
            let ceiling = base << (n - 1).min(40);
            let longest = ceiling.saturating_add(u64::try_from(added.as_nanos()).unwrap_or(u64::MAX));
            let want = [ceiling, longest].map(|nanos| Duration::from_nanos(nanos.min(cap).min(i64::MAX as u64)));
            prop_assert_eq!(policy.bounds(n), Some((want[0], want[1])));
            prop_assert!(want[0] <= delay && delay <= want[1], "retry {n}: {delay:?} outside {want:?}");
            prop_assert_eq!(policy.delay(n, Seed::new(seed)), Some(delay));
        }
        prop_assert_eq!(policy.to_string().parse(), Ok(policy));
    }

    #[test]
    fn the_drawn_spread_is_at_most_the_configured_spread(longest in length(), seed in any::<u64>()) {
        let policy = Policy::DEFAULT.to_builder().spread(longest).build().unwrap();
        prop_assert!(policy.first_spread(Seed::new(seed)) <= longest);
    }

    #[test]
    fn draws_are_monotonic_and_reach_both_ends(lo in length(), more in length(), a in any::<u64>(), b in any::<u64>()) {
        let hi = lo.saturating_add(more);
        let (a, b) = (a.min(b), a.max(b));
        prop_assert!(draw(lo, hi, a) <= draw(lo, hi, b));
        let hi = hi.min(Duration::from_nanos(i64::MAX as u64));
        prop_assert_eq!((draw(lo, hi, 0), draw(lo, hi, u64::MAX)), (lo, hi));
        prop_assert_eq!(draw(hi, lo, a), hi);
    }

    /// A clone continues from the position of the original, and they advance independently.
    #[test]
    fn a_cloned_schedule_yields_the_same_delays(policy in any_delays(), seed in any::<u64>(), taken in 0..20_usize) {
        let mut schedule = policy.schedule(Seed::new(seed));
        schedule.by_ref().take(taken).for_each(drop);
        let clone = schedule.clone();
        prop_assert!(schedule.take(10).eq(clone.take(10)));
    }

    #[test]
    fn the_number_of_delays_is_the_number_of_retries(policy in any_policy(), seed in any::<u64>()) {
        let want = match (policy.backoff(), policy.max_attempts()) {
            (Backoff::Stop, _) => 0,
            (_, Some(most)) => 100.min(most.get() as usize - 1),
            (_, None) => 100,
        };
        prop_assert_eq!(policy.delays(Seed::new(seed)).take(100).count(), want);
    }
}
