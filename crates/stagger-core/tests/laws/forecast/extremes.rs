//! Forecasts at the extremes: the highest retry number, the longest delays, the narrowest intervals.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Ratio, Seed};

use crate::laws::support::{JITTERS, ms, secs};

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
