//! Distributions of the delays of many calls.

use core::time::Duration;

use stagger_core::{FailureKind, Jitter, Outcome, Policy, PolicyBuilder, Ratio, Seed, ServerHint};

use crate::laws::support::{Call, ks_distance, ks_limit, ms, secs};

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
