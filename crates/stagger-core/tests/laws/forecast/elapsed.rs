//! Forecasts of the total time spent waiting before a retry.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::profile::Profile;
use stagger_core::{Jitter, Policy, Ratio, Seed};

use crate::laws::support::{any_delays, cases, length, mean, ms, secs};

const CALLS: u64 = 4_000;

fn elapsed(policy: &Policy, n: u32, calls: u64) -> Vec<Duration> {
    let call = |id| {
        let seed = Seed::new(12).for_call(id);
        policy.schedule(seed).take(n as usize).fold(policy.first_spread(seed), |sum, delay| sum + delay)
    };
    let mut all: Vec<_> = (0..calls).map(call).collect();
    all.sort();
    all
}

fn policies() -> Vec<Policy> {
    let exponential = Policy::exponential(ms(100), secs(3));
    let builders = [
        exponential.jitter(Jitter::None),
        exponential,
        exponential.jitter(Jitter::Equal),
        exponential.jitter(Jitter::Factor(Ratio::percent(20))),
        exponential.jitter(Jitter::Decorrelated),
        exponential.spread(secs(10)),
        exponential.jitter(Jitter::None).spread(secs(1)),
        exponential.jitter(Jitter::Decorrelated).spread(secs(1)),
        exponential.uncapped(),
        exponential.floor(ms(150)),
        exponential.cap(ms(100)),
        Policy::linear(ms(100), ms(70), secs(3)),
        Policy::constant(ms(100)),
        Policy::uniform(ms(20), ms(100)),
        Policy::list(&[ms(10), ms(500), ms(20)]),
        Policy::zero(),
        Policy::zero().spread(secs(2)),
    ];
    builders.into_iter().map(|builder| builder.build().unwrap()).collect()
}

#[test]
fn mean_and_quantiles_match_drawn_calls() {
    for policy in policies() {
        for n in [1, 2, 3, 6, 12] {
            let drawn = elapsed(&policy, n, CALLS);
            let (lo, hi) = policy.elapsed_bounds(n).unwrap();
            let whole = hi - lo;
            assert!(lo <= drawn[0] && *drawn.last().unwrap() <= hi, "{policy}, until retry {n}");
            let got = policy.elapsed_mean(n).unwrap().as_nanos() as f64;
            let within = 2.5 * whole.as_nanos() as f64 / (CALLS as f64).sqrt() + 1.0;
            assert!((got - mean(&drawn)).abs() < within, "{policy}, until retry {n}: {got}");
            for q in [0.01, 0.1, 0.5, 0.9, 0.99] {
                let x = policy.elapsed_quantile(n, q).unwrap();
                // The documented accuracy: 0.1 % of the range, or 2 % in q for decorrelated jitter.
                let (slack, coarse) = match policy.jitter() {
                    Jitter::Decorrelated => (Duration::ZERO, 0.02),
                    _ => (whole / 1000, 0.0),
                };
                let within = coarse + 5.0 * (q * (1.0 - q) / CALLS as f64).sqrt();
                let below = drawn.partition_point(|&t| t < x.saturating_sub(slack)) as f64 / CALLS as f64;
                let up_to = drawn.partition_point(|&t| t <= x + slack) as f64 / CALLS as f64;
                assert!(
                    below - within < q && q < up_to + within,
                    "{policy}, until retry {n}: {x:?} for {q}: {below}..{up_to}"
                );
            }
        }
    }
}

/// The inclusion-exclusion formula loses its digits to cancellation here: it gives 0.80 instead of 0.9987.
#[test]
fn the_sum_of_28_draws_is_accurate() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::Full).build().unwrap();
    // The sum of 28 uniform draws has mean 14 and variance 28/12 and is nearly normal: Φ(3.011) = 0.9987, apart from
    // the fourth moment (Edgeworth: −φ(z)·κ·He₃(z)/24 with κ = −1.2/28 adds 0.00014 to the distribution).
    for (q, z) in [(0.9987, 3.011), (0.5, 0.0), (0.0013, -3.011)] {
        let got = policy.elapsed_quantile(28, q).unwrap().as_secs_f64();
        let want = 14.0 + z * (28.0_f64 / 12.0).sqrt();
        assert!((got - want).abs() < 0.08, "{q}: {got}, not {want}");
    }
    let drawn = elapsed(&policy, 28, 20_000);
    let x = policy.elapsed_quantile(28, 0.9987).unwrap();
    let got = drawn.partition_point(|&t| t <= x) as f64 / 20_000.0;
    assert!((got - 0.9987).abs() < 5.0 * (0.9987_f64 * 0.0013 / 20_000.0).sqrt(), "{got}");
}

#[test]
fn the_sum_of_two_uniform_draws_is_triangular() {
    let policy = Policy::constant(secs(1)).jitter(Jitter::Full).build().unwrap();
    for q in [0.02, 0.08, 0.32, 0.5] {
        let (low, high) = (policy.elapsed_quantile(2, q).unwrap(), policy.elapsed_quantile(2, 1.0 - q).unwrap());
        let want = (2.0 * q).sqrt();
        assert!((low.as_secs_f64() - want).abs() < 0.002, "{q}: {low:?}, not {want}");
        assert!((high.as_secs_f64() - (2.0 - want)).abs() < 0.002, "{q}: {high:?}");
    }
}

/// Polly's delays are distances between points on one curve, so their sum is the last point.
#[test]
fn the_sum_of_polly_delays_is_bounded_by_its_curve() {
    let policy: Policy = "polly-v8 base=1s max-attempts=inf".parse().unwrap();
    let (lo, hi) = policy.elapsed_bounds(6).unwrap();
    assert!(lo.abs_diff(Duration::from_nanos(22_851_178_314)) < Duration::from_micros(1), "{lo:?}");
    assert!(hi.abs_diff(Duration::from_nanos(45_709_205_306)) < Duration::from_micros(1), "{hi:?}");
    let drawn = elapsed(&policy, 6, CALLS);
    assert!(drawn[0] - lo < ms(50) && hi - *drawn.last().unwrap() < ms(50), "{:?}", (drawn[0], drawn.last()));
    let sum_of_bounds: Duration = (1..=6).map(|n| policy.bounds(n).unwrap().1).sum();
    assert!(sum_of_bounds > secs(68));
    let spread = policy.to_builder().spread(secs(5)).build().unwrap();
    assert_eq!(spread.elapsed_bounds(6), Some((lo, hi + secs(5))));
    // With other backoffs its delays are independent.
    let linear: Policy = "linear base=1s jitter=polly-v8".parse().unwrap();
    assert_eq!(linear.elapsed_bounds(2), Some((ms(2250), ms(3750))));
}

#[test]
fn bounds_of_the_elapsed_time_hold_for_every_profile_and_are_approached() {
    let capped = ["polly-v8 base=1s cap=1s", "polly-v8 base=1s cap=3s", "polly-v8 base=1s cap=10s spread=1s"];
    let capped = capped.map(|text| text.parse().unwrap());
    for policy in Profile::all().map(Profile::policy).chain(capped) {
        for n in [1, 2, 3, 6] {
            let (lo, hi) = policy.elapsed_bounds(n).unwrap();
            let drawn = elapsed(&policy, n, 20_000);
            let (least, most) = (drawn[0], *drawn.last().unwrap());
            assert!(lo <= least && most <= hi, "{policy}, until retry {n}: {least:?}..{most:?} of {lo:?}..{hi:?}");
            // A sum of few draws comes close to its ends.
            if n <= 3 {
                let near = (hi - lo) / 5;
                assert!(least - lo <= near, "{policy}, until retry {n}: {least:?} of {lo:?}..{hi:?}");
                assert!(hi - most <= near, "{policy}, until retry {n}: {most:?} of {lo:?}..{hi:?}");
            }
        }
    }
}

/// Many retries reach the end of the numbers that the curve is computed with.
#[test]
fn bounds_of_polly_sums_are_ordered_beyond_the_numbers() {
    for text in ["polly-v8", "polly-v8 cap=1m"] {
        let policy: Policy = text.parse().unwrap();
        let mut before = (Duration::ZERO, Duration::ZERO);
        for n in [30, 60, 1_000, 1_023, 1_024, 1_025, 2_000] {
            let (lo, hi) = policy.elapsed_bounds(n).unwrap();
            assert!(lo <= hi && before.0 <= lo && before.1 <= hi, "{policy}, until retry {n}: {lo:?}..{hi:?}");
            before = (lo, hi);
        }
        assert!(before.0 > secs(1000), "{before:?}");
    }
}

#[test]
fn deterministic_waits_are_exact() {
    let policy = Policy::exponential(ms(100), secs(3)).jitter(Jitter::None).build().unwrap();
    assert_eq!(policy.elapsed_bounds(4), Some((ms(1500), ms(1500))));
    assert_eq!(policy.elapsed_mean(4), Some(ms(1500)));
    assert_eq!(policy.elapsed_quantile(4, 0.3), Some(ms(1500)));
    let spread = policy.to_builder().spread(secs(1)).build().unwrap();
    assert_eq!(spread.elapsed_bounds(4), Some((ms(1500), ms(2500))));
    assert_eq!(spread.elapsed_mean(4), Some(ms(2000)));
    assert!(spread.elapsed_quantile(4, 0.25).unwrap().abs_diff(ms(1750)) < ms(1));
    // The resolution depends on the random part only, however long the deterministic part is.
    let hours = Policy::constant(secs(3600)).jitter(Jitter::None).spread(secs(1)).build().unwrap();
    let quarter = hours.elapsed_quantile(10, 0.25).unwrap();
    assert!(quarter.abs_diff(secs(36_000) + ms(250)) < ms(1), "{quarter:?}");
    let full = Policy::exponential(ms(100), secs(3)).spread(secs(1)).build().unwrap();
    assert_eq!(full.elapsed_bounds(2), Some((Duration::ZERO, ms(1300))));
    assert_eq!(full.elapsed_mean(2), Some(ms(650)));
}

proptest! {
    #![proptest_config(cases(48))]

    /// A sum of independent symmetric draws has its median at its mean.
    #[test]
    fn the_median_of_independent_delays_equals_the_mean(policy in any_delays(), n in 1..30_u32, spread in length()) {
        prop_assume!(policy.jitter() != Jitter::Decorrelated);
        let policy = policy.to_builder().spread(spread).build().unwrap();
        let (lo, hi) = policy.elapsed_bounds(n).unwrap();
        prop_assume!(hi < Duration::from_nanos(i64::MAX as u64));
        let (median, mean) = (policy.elapsed_quantile(n, 0.5).unwrap(), policy.elapsed_mean(n).unwrap());
        // The mean is a sum of n means, each rounded to whole nanoseconds.
        let within = (hi - lo) / 1000 + Duration::from_nanos(2 + u64::from(n));
        prop_assert!(median.abs_diff(mean) <= within, "median {median:?}, mean {mean:?} of {lo:?}..{hi:?}");
    }

    #[test]
    fn elapsed_quantiles_are_ordered_within_the_bounds(policy in any_delays(), n in 1..12_u32, spread in length()) {
        let policy = policy.to_builder().spread(spread).build().unwrap();
        // Simulating decorrelated calls is slow without optimization, and is tested above.
        prop_assume!(policy.jitter() != Jitter::Decorrelated);
        let (lo, hi) = policy.elapsed_bounds(n).unwrap();
        let mut before = lo;
        for q in [0.0, 0.001, 0.2, 0.5, 0.8, 0.999, 1.0] {
            let x = policy.elapsed_quantile(n, q).unwrap();
            prop_assert!(before <= x && x <= hi, "{q}: {before:?}, then {x:?} of {lo:?}..{hi:?}");
            before = x;
        }
        prop_assert_eq!(before, hi);
    }

    #[test]
    fn elapsed_bounds_and_mean_are_sums_over_the_delays(policy in any_delays(), n in 1..12_u32, spread in length()) {
        let policy = policy.to_builder().spread(spread).build().unwrap();
        let (mut least, mut most, mut middle) = (Duration::ZERO, spread, spread / 2);
        for k in 1..=n {
            let (lo, hi) = policy.bounds(k).unwrap();
            (least, most, middle) = (least + lo, most + hi, middle + policy.mean(k).unwrap());
        }
        prop_assume!(most < Duration::from_nanos(i64::MAX as u64));
        prop_assert_eq!(policy.elapsed_bounds(n), Some((least, most)));
        let mean = policy.elapsed_mean(n).unwrap();
        let tolerance = Duration::from_nanos(u64::from(n) + 1) + most / 1_000_000;
        prop_assert!(mean.abs_diff(middle) <= tolerance, "{mean:?}, not {middle:?}");
    }
}
