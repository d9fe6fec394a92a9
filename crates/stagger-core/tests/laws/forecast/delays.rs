//! Forecasts of the delay before a retry.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, Seed};

use crate::laws::support::{JITTERS, any_delays, any_policy, cases, ks_limit, mean, ms, secs};

const CALLS: u64 = 4_000;

fn policies() -> Vec<Policy> {
    let exponential = Policy::exponential(ms(100), secs(3));
    let builders = [
        exponential.jitter(Jitter::None),
        exponential,
        exponential.jitter(Jitter::Equal),
        exponential.jitter(Jitter::Factor(Ratio::percent(50))),
        exponential.jitter(Jitter::Decorrelated),
        exponential.uncapped(),
        exponential.floor(ms(150)),
        exponential.cap(ms(100)),
        exponential.cap(ms(100)).jitter(Jitter::Decorrelated),
        Policy::linear(ms(100), ms(70), secs(3)),
        Policy::constant(ms(100)),
        Policy::list(&[ms(10), ms(500), ms(20)]),
        Policy::zero(),
    ];
    builders.into_iter().map(|builder| builder.build().unwrap()).collect()
}

#[test]
fn mean_and_quantiles_match_drawn_delays() {
    for policy in policies() {
        for n in [1, 2, 4, 9] {
            let mut drawn: Vec<_> = (0..CALLS).map(|id| policy.delay(n, Seed::new(6).for_call(id)).unwrap()).collect();
            drawn.sort();
            let (lo, hi) = policy.bounds(n).unwrap();
            let got = policy.mean(n).unwrap().as_nanos() as f64;
            // The standard deviation of one delay is at most half its range. Allow five of those of the mean.
            let within = 2.5 * (hi - lo).as_nanos() as f64 / (CALLS as f64).sqrt() + 1.0;
            assert!((got - mean(&drawn)).abs() < within, "{policy}, retry {n}: mean {got}, not {}", mean(&drawn));
            for q in [0.05, 0.25, 0.5, 0.75, 0.99] {
                let x = policy.quantile(n, q).unwrap();
                let below = drawn.partition_point(|&delay| delay < x) as f64 / CALLS as f64;
                let up_to = drawn.partition_point(|&delay| delay <= x) as f64 / CALLS as f64;
                let limit = ks_limit(CALLS as usize);
                assert!(below - limit < q && q < up_to + limit, "{policy}, retry {n}: {x:?} for {q}");
            }
        }
    }
}

#[test]
fn mean_and_quantiles_of_independent_delays_are_exact() {
    let policy = Policy::exponential(ms(100), secs(3)).jitter(Jitter::Equal).build().unwrap();
    assert_eq!(policy.bounds(3), Some((ms(200), ms(400))));
    assert_eq!(policy.mean(3), Some(ms(300)));
    for (q, want) in [(0.0, 200), (0.25, 250), (0.5, 300), (0.75, 350), (1.0, 400)] {
        assert_eq!(policy.quantile(3, q), Some(ms(want)), "{q}");
    }
    // The first delay of decorrelated jitter is uniform on [base, 3 · base].
    let policy = Policy::decorrelated(ms(100), secs(3)).build().unwrap();
    assert_eq!(policy.bounds(1), Some((ms(100), ms(300))));
    for (got, want) in [(policy.mean(1), 200), (policy.quantile(1, 0.5), 200), (policy.quantile(1, 0.9), 280)] {
        assert!(got.unwrap().abs_diff(ms(want)) < ms(1), "{got:?}, not {want} ms");
    }
}

/// The intervals are `[1, 2]`, `[2, 3]`, `[4, 5]`, and then begin above the cap.
#[test]
fn the_mean_of_added_jitter_is_cut_at_the_cap() {
    let policy = Policy::exponential(secs(1), secs(5)).jitter(Jitter::Added(secs(1))).build().unwrap();
    for (n, want) in [(1, ms(1_500)), (2, ms(2_500)), (3, ms(4_500)), (4, secs(5)), (9, secs(5))] {
        assert_eq!(policy.mean(n), Some(want), "retry {n}");
    }
}

#[test]
fn there_is_no_forecast_without_a_retry() {
    for (policy, n) in
        [(Policy::stop().build().unwrap(), 1), (Policy::DEFAULT, 0), (Policy::stop().build().unwrap(), 0)]
    {
        assert_eq!((policy.bounds(n), policy.mean(n), policy.quantile(n, 0.5)), (None, None, None));
        assert_eq!(
            (policy.elapsed_bounds(n), policy.elapsed_mean(n), policy.elapsed_quantile(n, 0.5)),
            (None, None, None)
        );
        assert_eq!(policy.delay(n, Seed::new(1)), None);
    }
    let policy = Policy::decorrelated(ms(100), secs(3)).build().unwrap();
    assert_eq!((policy.bounds(0), policy.mean(0), policy.elapsed_mean(0)), (None, None, None));
}

#[test]
fn probabilities_are_clamped_and_nan_gives_none() {
    for policy in policies() {
        let (lo, hi) = policy.bounds(3).unwrap();
        assert_eq!((policy.quantile(3, -1.0), policy.quantile(3, 7.0)), (Some(lo), Some(hi)), "{policy}");
        assert_eq!(policy.quantile(3, f64::NAN), None);
        let (lo, hi) = policy.elapsed_bounds(3).unwrap();
        assert_eq!(
            (policy.elapsed_quantile(3, -1.0), policy.elapsed_quantile(3, 7.0)),
            (Some(lo), Some(hi)),
            "{policy}"
        );
        assert_eq!(policy.elapsed_quantile(3, f64::NAN), None);
    }
}

#[test]
fn several_quantiles_equal_single_quantiles_in_any_order() {
    let shares = [0.9, 0.1, 1.0, 0.5, 0.5, 0.0];
    for policy in policies() {
        for n in [1, 4] {
            let one_by_one = shares.map(|q| policy.quantile(n, q).unwrap());
            assert_eq!(policy.quantiles(n, shares), Some(one_by_one), "{policy}");
            let one_by_one = shares.map(|q| policy.elapsed_quantile(n, q).unwrap());
            assert_eq!(policy.elapsed_quantiles(n, shares), Some(one_by_one), "{policy}");
        }
        let with_nan = [0.5, f64::NAN];
        assert_eq!((policy.quantiles(3, with_nan), policy.elapsed_quantiles(3, with_nan)), (None, None));
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn mean_and_quantiles_are_ordered_within_the_bounds(
        policy in any_delays(), n in 1..30_u32, a in 0.0..=1.0, b in 0.0..=1.0,
    ) {
        let (lo, hi) = policy.bounds(n).unwrap();
        let (a, b): (f64, f64) = if a < b { (a, b) } else { (b, a) };
        let (below, above) = (policy.quantile(n, a).unwrap(), policy.quantile(n, b).unwrap());
        prop_assert!(lo <= below && below <= above && above <= hi, "{lo:?} {below:?} {above:?} {hi:?}");
        // An `f64` cannot represent the longest delays exactly.
        let mean = policy.mean(n).unwrap();
        let unit = Duration::from_nanos(1) + hi / 1_000_000;
        prop_assert!(lo <= mean + unit && mean <= hi + unit, "{lo:?} {mean:?} {hi:?}");
        prop_assert_eq!((policy.quantile(n, 0.0), policy.quantile(n, 1.0)), (Some(lo), Some(hi)));
    }

    #[test]
    fn a_forecast_is_none_only_for_the_stop_backoff(policy in any_policy(), n in 1..30_u32) {
        let none = *policy.backoff() == Backoff::Stop;
        prop_assert_eq!(policy.bounds(n).is_none(), none);
        prop_assert_eq!(policy.mean(n).is_none(), none);
        prop_assert_eq!(policy.elapsed_bounds(n).is_none(), none);
        prop_assert_eq!(policy.elapsed_mean(n).is_none(), none);
    }
}

// Forecasts at the extremes: the highest retry number, the longest delays, the narrowest intervals.

const LAST: u32 = u32::MAX;
const NANO: Duration = Duration::from_nanos(1);

/// A forecast must not iterate over four billion retries.
#[test]
fn the_highest_retry_number_is_forecast_quickly() {
    let growing = [
        Policy::exponential(ms(100), secs(30)),
        Policy::exponential(ms(100), secs(30)).uncapped(),
        Policy::exponential(NANO, Duration::MAX).multiplier(1.01),
        Policy::linear(ms(100), ms(1), secs(30)),
    ];
    let fixed = [Policy::constant(ms(100)), Policy::list(&[ms(1), ms(2), ms(3)])];
    for builder in growing.into_iter().chain(fixed) {
        for jitter in JITTERS {
            let Ok(policy) = builder.jitter(jitter).build() else { continue };
            let (lo, hi) = policy.bounds(LAST).unwrap();
            assert_eq!(policy.bounds(LAST - 1), Some((lo, hi)), "{policy}: the bounds must have converged long before");
            let (mean, middle) = (policy.mean(LAST).unwrap(), policy.quantile(LAST, 0.5).unwrap());
            assert!(lo <= mean && mean <= hi && lo <= middle && middle <= hi, "{policy}");
            if jitter != Jitter::Decorrelated {
                let delay = policy.delay(LAST, Seed::new(1)).unwrap();
                assert!(lo <= delay && delay <= hi, "{policy}");
            }
        }
    }
}

#[test]
fn uncapped_delays_end_at_292_years_and_sums_saturate() {
    let longest = Duration::from_nanos(i64::MAX as u64);
    for jitter in JITTERS {
        let policy = Policy::exponential(secs(86_400), secs(86_400)).uncapped().jitter(jitter).build().unwrap();
        let (_, hi) = policy.bounds(200).unwrap();
        let want = if jitter == Jitter::Factor(Ratio::ONE) { 2 * longest } else { longest };
        let want = if jitter == Jitter::Factor(Ratio::percent(20)) { want + want / 5 } else { want };
        assert!(hi.abs_diff(want) < Duration::from_micros(10), "{policy}: {hi:?}");
        let (least, most) = policy.elapsed_bounds(200).unwrap();
        assert_eq!(most, Duration::from_nanos(u64::MAX), "{policy}");
        let median = policy.elapsed_quantile(200, 0.5).unwrap();
        assert!(least <= median && median <= most);
        assert!(policy.elapsed_mean(200).unwrap() <= most);
    }
}

#[test]
fn decorrelated_jitter_with_cap_equal_to_base_is_constant() {
    let policy = Policy::decorrelated(ms(100), ms(100)).build().unwrap();
    for n in [1, 2, 50] {
        assert_eq!(policy.bounds(n), Some((ms(100), ms(100))));
        assert_eq!((policy.mean(n), policy.quantile(n, 0.3)), (Some(ms(100)), Some(ms(100))));
        assert_eq!(policy.elapsed_quantile(n, 0.7), Some(ms(100) * n));
        assert_eq!(policy.elapsed_mean(n), Some(ms(100) * n));
    }
}

#[test]
fn intervals_of_a_few_nanoseconds_are_forecast() {
    for builder in [Policy::constant(NANO), Policy::exponential(NANO, 3 * NANO)] {
        for jitter in JITTERS {
            let Ok(policy) = builder.jitter(jitter).build() else { continue };
            for n in [1, 2, 9] {
                let (lo, hi) = policy.bounds(n).unwrap();
                assert!(hi <= 6 * NANO && lo <= hi);
                let (mean, middle) = (policy.mean(n).unwrap(), policy.quantile(n, 0.5).unwrap());
                assert!(lo <= mean && mean <= hi && lo <= middle && middle <= hi, "{policy}: {mean:?}, {middle:?}");
            }
        }
    }
}

/// The grid of the convolution must represent a long and a short wait at once.
#[test]
fn a_narrow_draw_only_shifts_the_sum_with_a_wide_one() {
    let list = |wide: Duration| -> PolicyBuilder { Policy::list(&[NANO * 1000, wide]).jitter(Jitter::Full) };
    for wide in [ms(100), secs(1), secs(3600)] {
        let policy = list(wide).build().unwrap();
        for q in [0.1, 0.5, 0.9] {
            let got = policy.elapsed_quantile(2, q).unwrap();
            let want = wide.mul_f64(q) + NANO * 500;
            assert!(got.abs_diff(want) < wide / 1000, "{wide:?}, {q}: {got:?}, not {want:?}");
        }
    }
}

#[test]
fn the_sum_of_a_thousand_delays_is_accurate() {
    let policy = Policy::exponential(ms(100), secs(1)).build().unwrap();
    let (n, mean) = (1_000, policy.elapsed_mean(1_000).unwrap());
    let median = policy.elapsed_quantile(n, 0.5).unwrap();
    assert!(median.abs_diff(mean) < policy.elapsed_bounds(n).unwrap().1 / 1000, "{median:?}, not {mean:?}");
    // Nearly a thousand draws from one second each: the standard deviation of the sum is 9.1 s.
    let above = policy.elapsed_quantile(n, 0.8413).unwrap();
    assert!((above - median).as_secs_f64() > 8.0 && (above - median).as_secs_f64() < 10.2, "{above:?}");
}

/// The distribution of decorrelated delays converges; from there on every retry adds its mean.
#[test]
fn many_decorrelated_retries_add_the_converged_mean() {
    let policy = Policy::decorrelated(ms(100), secs(5)).build().unwrap();
    let converged = policy.mean(512).unwrap();
    assert_eq!(policy.mean(5_000), Some(converged));
    for more in [1, 4_488] {
        let added = policy.elapsed_mean(512 + more).unwrap() - policy.elapsed_mean(512).unwrap();
        // The reported mean is rounded to whole nanoseconds.
        assert!(added.abs_diff(converged * more) <= NANO * (more + 2), "{more}: {added:?}, not {converged:?} each");
    }
}
