use core::cell::Cell;
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::time::Clock;
use stagger::{Instant, Seed, profile};
use stagger_cenkalti::{
    BackOff, ConstantBackOff, DEFAULT_INITIAL_INTERVAL, DEFAULT_MAX_ELAPSED_TIME, DEFAULT_MAX_INTERVAL,
    ExponentialBackOff, StopBackOff, ZeroBackOff, with_max_retries,
};

use super::support::{assert_uniform, ms, nanos};

/// The largest number below 1.
const R: f64 = 1.0 - f64::EPSILON / 2.0;
const SECOND: Duration = Duration::from_secs(1);

/// Returns the first delay of a backoff with the interval `current`, drawn with `r`.
fn randomized(factor: f64, current: Duration, r: f64) -> Duration {
    let options = ExponentialBackOff::options().initial_interval(current).randomization_factor(factor);
    options.random(move || r).build().unwrap().next_backoff().unwrap()
}

#[test]
fn ck_01_defaults_match_and_options_apply_before_the_first_reset() {
    let b = ExponentialBackOff::new();
    assert_eq!((b.initial_interval(), DEFAULT_INITIAL_INTERVAL), (ms(500), ms(500)));
    assert_eq!((b.max_interval(), DEFAULT_MAX_INTERVAL), (SECOND * 60, SECOND * 60));
    assert_eq!((b.max_elapsed_time(), DEFAULT_MAX_ELAPSED_TIME), (Some(SECOND * 900), SECOND * 900));
    assert_eq!((b.randomization_factor().to_bits(), b.multiplier().to_bits()), (0.5_f64.to_bits(), 1.5_f64.to_bits()));
    assert_eq!(b.current_interval(), b.initial_interval());

    // The stop value of the row is not supported: see CK-17.
    let b = ExponentialBackOff::options()
        .initial_interval(SECOND)
        .multiplier(2.0)
        .max_interval(SECOND * 10)
        .max_elapsed_time(SECOND * 30)
        .build()
        .unwrap();
    assert_eq!((b.initial_interval(), b.max_interval()), (SECOND, SECOND * 10));
    assert_eq!((b.multiplier().to_bits(), b.max_elapsed_time()), (2.0_f64.to_bits(), Some(SECOND * 30)));
    assert_eq!(b.current_interval(), SECOND);
}

#[test]
fn ck_03_nine_retries_stay_in_the_documented_ranges() {
    let printed = [
        [0.25, 0.75],
        [0.375, 1.125],
        [0.562, 1.687],
        [0.8435, 2.53],
        [1.265, 3.795],
        [1.897, 5.692],
        [2.846, 8.538],
        [4.269, 12.807],
        [6.403, 19.210],
    ];
    let options = ExponentialBackOff::options;
    let mut lowest = options().random(|| 0.0).build().unwrap();
    let mut highest = options().random(|| R).build().unwrap();
    let mut drawn: Vec<_> = (0..100).map(|n| options().seed(Seed::new(n)).build().unwrap()).collect();
    for (k, [low, high]) in (1..).zip(printed) {
        let bounds = [&mut lowest, &mut highest as &mut dyn BackOff].map(|b| b.next_backoff().unwrap());
        // The page truncates its figures to three digits and continues with the truncated values.
        for (exact, printed) in bounds.map(|bound| bound.as_secs_f64()).into_iter().zip([low, high]) {
            assert!((printed..=printed * 1.001).contains(&exact), "request {k}: {exact}, want {printed}");
        }
        for b in &mut drawn {
            let next = b.next_backoff().unwrap();
            assert!((bounds[0]..=bounds[1]).contains(&next), "request {k}: {next:?} outside {bounds:?}");
        }
    }
}

#[test]
fn ck_03_the_tenth_request_stops_at_the_elapsed_limit() {
    let clock = VirtualClock::new();
    let mut b = ExponentialBackOff::options().clock(clock.clone()).build().unwrap();
    for request in 1..=9 {
        assert!(b.next_backoff().is_some(), "request {request}");
    }
    clock.advance(DEFAULT_MAX_ELAPSED_TIME);
    assert_eq!(b.next_backoff(), None);
}

#[test]
fn ck_05_all_nanoseconds_of_the_interval_are_equally_likely() {
    for (r, want) in [(0.0, 1), (0.33, 1), (0.34, 2), (0.66, 2), (0.67, 3), (0.99, 3)] {
        assert_eq!(randomized(0.5, nanos(2), r), nanos(want), "r = {r}");
    }
}

#[test]
fn ck_07_the_largest_draw_is_a_nanosecond_above_the_bound() {
    assert_eq!(randomized(0.5, ms(500), R), nanos(750_000_001));
}

#[test]
fn ck_09_without_randomization_the_delay_is_the_interval() {
    for r in [0.0, 0.5, R] {
        assert_eq!(randomized(0.0, nanos(123), r), nanos(123), "r = {r}");
    }
}

#[test]
fn ck_11_a_factor_of_a_tenth_of_five_seconds() {
    assert_eq!(randomized(0.1, SECOND * 5, 0.0), ms(4_500));
    assert_eq!(randomized(0.1, SECOND * 5, R), nanos(5_500_000_001));
}

#[test]
fn ck_13_an_overflowing_interval_saturates_at_the_maximum() {
    let longest = nanos(i64::MAX as u64);
    let mut b = ExponentialBackOff::options()
        .initial_interval(nanos(i64::MAX as u64 / 2))
        .multiplier(2.1)
        .max_interval(longest)
        .max_elapsed_time(None)
        .build()
        .unwrap();
    assert!(b.next_backoff().is_some());
    assert_eq!(b.current_interval(), longest);
    // The draw around it saturates. The package wraps to a negative delay.
    let mut b =
        ExponentialBackOff::options().initial_interval(longest).max_elapsed_time(None).random(|| R).build().unwrap();
    assert_eq!(b.next_backoff(), Some(longest));
}

/// A clock that advances by a second at each read.
#[derive(Debug, Default)]
struct Stepping(Cell<u64>);

impl Clock for Stepping {
    fn now(&self) -> Instant {
        self.0.set(self.0.get() + 1);
        Instant::ZERO.saturating_add(SECOND * self.0.get() as u32)
    }
}

#[test]
fn ck_15_elapsed_time_starts_at_the_last_reset() {
    let mut b = ExponentialBackOff::options().clock(Stepping::default()).build().unwrap();
    assert_eq!(b.elapsed(), SECOND);
    assert_eq!(b.elapsed(), SECOND * 2);
    b.reset();
    assert_eq!(b.elapsed(), SECOND);
}

/// Not supported: the package's own loops sleep for a custom stop value (here one minute) and then continue forever.
/// Here the stop value cannot be set, and the retries of the row stop.
#[test]
fn ck_17_the_stop_value_is_not_configurable() {
    let clock = VirtualClock::new();
    let mut b = ExponentialBackOff::options().clock(clock.clone()).build().unwrap();
    clock.advance(SECOND * 10_000);
    assert_eq!(b.next_backoff(), None);
}

#[test]
fn ck_19_the_next_delay_counts_toward_an_inclusive_limit() {
    for (limit, want) in
        [(nanos(14_999_999_999), None), (SECOND * 15, Some(SECOND * 5)), (nanos(15_000_000_001), Some(SECOND * 5))]
    {
        let clock = VirtualClock::new();
        let options = ExponentialBackOff::options().initial_interval(SECOND * 5).randomization_factor(0.0);
        let mut b = options.max_elapsed_time(limit).clock(clock.clone()).build().unwrap();
        clock.advance(SECOND * 10);
        assert_eq!(b.next_backoff(), want, "limit {limit:?}");
        // In both cases the interval has advanced.
        assert_eq!(b.current_interval(), ms(7_500));
    }
}

#[test]
fn an_elapsed_limit_of_zero_is_not_unlimited() {
    let at = |limit: Option<Duration>| {
        let clock = VirtualClock::new();
        let mut b = ExponentialBackOff::options().max_elapsed_time(limit).clock(clock.clone()).build().unwrap();
        clock.advance(Duration::MAX);
        b.next_backoff()
    };
    assert_eq!(at(Some(Duration::ZERO)), None);
    assert!(at(None).is_some());
    assert_eq!(at(Some(Duration::MAX)).map(|next| next > Duration::ZERO), Some(true));
}

/// Version 3 checked the limit before the draw, against the elapsed time alone. A custom backoff can implement that
/// rule.
#[test]
fn ck_21_a_custom_backoff_implements_the_rule_of_version_3() {
    struct VersionThree(ExponentialBackOff<VirtualClock>, Duration);

    impl BackOff for VersionThree {
        fn next_backoff(&mut self) -> Option<Duration> {
            if self.0.elapsed() > self.1 { None } else { self.0.next_backoff() }
        }

        fn reset(&mut self) {
            self.0.reset();
        }
    }

    let clock = VirtualClock::new();
    let options = ExponentialBackOff::options().initial_interval(SECOND * 5).randomization_factor(0.0);
    let inner = options.max_elapsed_time(None).clock(clock.clone()).build().unwrap();
    let mut b = VersionThree(inner, nanos(14_999_999_999));
    clock.advance(SECOND * 10);
    assert_eq!(b.next_backoff(), Some(SECOND * 5));
    clock.advance(SECOND * 5);
    assert_eq!(b.next_backoff(), None);
}

#[test]
fn ck_23_zero_backoff_always_returns_zero() {
    assert_eq!([(); 10].map(|()| ZeroBackOff.next_backoff()), [Some(Duration::ZERO); 10]);
}

#[test]
fn ck_25_constant_backoff_is_constant_across_resets() {
    let mut b = ConstantBackOff::new(SECOND);
    assert_eq!([(); 3].map(|()| b.next_backoff()), [Some(SECOND); 3]);
    b.reset();
    assert_eq!((b.next_backoff(), b.interval()), (Some(SECOND), SECOND));
}

#[test]
fn stop_backoff_always_stops() {
    StopBackOff.reset();
    assert_eq!([(); 3].map(|()| StopBackOff.next_backoff()), [None; 3]);
}

/// Counts its calls.
#[derive(Default)]
struct CountCalls(u32);

impl BackOff for CountCalls {
    fn next_backoff(&mut self) -> Option<Duration> {
        self.0 += 1;
        Some(SECOND)
    }

    fn reset(&mut self) {}
}

#[test]
fn ck_29_the_inner_backoff_is_not_called_beyond_max_retries() {
    let mut b = with_max_retries(CountCalls::default(), 3);
    let delays: Vec<_> = (0..6).map_while(|_| b.next_backoff()).collect();
    assert_eq!((delays, b.next_backoff(), b.backoff().0), (vec![SECOND; 3], None, 3));
    b.reset();
    assert_eq!((b.next_backoff(), b.backoff().0), (Some(SECOND), 4));
}

#[test]
fn max_retries_of_zero_returns_no_delay() {
    let mut b = with_max_retries(CountCalls::default(), 0);
    assert_eq!((b.next_backoff(), b.backoff().0), (None, 0));
}

#[test]
fn the_first_interval_is_not_capped() {
    let options = ExponentialBackOff::options().initial_interval(SECOND * 90).randomization_factor(0.0);
    let mut b = options.max_elapsed_time(None).build().unwrap();
    assert_eq!([(); 3].map(|()| b.next_backoff()), [Some(SECOND * 90), Some(SECOND * 60), Some(SECOND * 60)]);
}

/// 90 ns · 2.3 is 206.999… ns, but 207 ns / 2.3 is 90 ns: the comparison decides, and not the product.
#[test]
fn the_interval_is_compared_with_the_max_interval_by_division() {
    let options = ExponentialBackOff::options().initial_interval(nanos(90)).max_interval(nanos(207)).multiplier(2.3);
    let mut b = options.build().unwrap();
    b.next_backoff();
    assert_eq!(b.current_interval(), nanos(207));
}

#[test]
fn a_multiplier_of_one_is_constant_up_to_the_max_interval() {
    for (initial, want) in [(SECOND, SECOND), (SECOND * 60, SECOND * 60), (SECOND * 61, SECOND * 60)] {
        let mut b = ExponentialBackOff::options().initial_interval(initial).multiplier(1.0).build().unwrap();
        let _ = b.next_backoff();
        assert_eq!(b.current_interval(), want, "{initial:?}");
    }
}

#[test]
fn every_interval_is_truncated_to_whole_nanoseconds() {
    let options = ExponentialBackOff::options().initial_interval(nanos(3)).randomization_factor(0.0);
    let mut b = options.build().unwrap();
    // If truncated only at the end, the last would be 22.
    assert_eq!([(); 6].map(|()| b.next_backoff().unwrap().as_nanos()), [3, 4, 6, 9, 13, 19]);
}

#[test]
fn a_reset_restores_the_initial_state() {
    let clock = VirtualClock::new();
    let mut b = ExponentialBackOff::options().seed(Seed::new(1)).clock(clock.clone()).build().unwrap();
    let first: Vec<_> = (0..5).map(|_| b.next_backoff()).collect();
    clock.advance(SECOND * 900);
    assert_eq!(b.next_backoff(), None);
    b.reset();
    assert_eq!((b.elapsed(), b.current_interval()), (Duration::ZERO, ms(500)));
    assert_eq!((0..5).map(|_| b.next_backoff()).collect::<Vec<_>>(), first, "a fixed seed repeats its draws");
}

#[test]
fn backoffs_of_cloned_options_draw_distinct_delays() {
    let options = ExponentialBackOff::options().max_interval(SECOND);
    let [mut a, mut b] = [options.clone(), options].map(|options| options.build().unwrap());
    assert_eq!(a.max_interval(), b.max_interval());
    assert_ne!([(); 4].map(|()| a.next_backoff()), [(); 4].map(|()| b.next_backoff()));
}

#[test]
fn backoffs_draw_distinct_delays_also_after_a_reset() {
    let delays = |b: &mut ExponentialBackOff| [(); 4].map(|()| b.next_backoff());
    let (mut a, mut b) = (ExponentialBackOff::new(), ExponentialBackOff::new());
    let first = delays(&mut a);
    assert_ne!(first, delays(&mut b));
    a.reset();
    assert_ne!(first, delays(&mut a));
}

#[test]
fn all_invalid_options_are_reported_at_once() {
    let options = ExponentialBackOff::options;
    for (share, multiplier) in [(1.5, 0.5), (-0.1, 0.0), (f64::NAN, f64::NAN), (f64::INFINITY, f64::INFINITY)] {
        let error = options().randomization_factor(share).multiplier(multiplier).build().unwrap_err().to_string();
        assert!(error.contains("randomization factor") && error.contains("multiplier"), "{error}");
    }
    let error = options().multiplier(0.5).build().unwrap_err();
    assert_eq!(error.to_string(), "multiplier 0.5 is not a finite number of at least 1; use one, such as 1.5");
    for share in [0.0, 1.0] {
        options().randomization_factor(share).multiplier(1.0).build().unwrap();
    }
}

#[test]
fn out_of_range_randomness_is_clamped() {
    for (r, want) in
        [(-1.0, ms(250)), (f64::NAN, ms(250)), (1.0, nanos(750_000_001)), (f64::INFINITY, nanos(750_000_001))]
    {
        assert_eq!(randomized(0.5, ms(500), r), want, "r = {r}");
    }
}

#[test]
fn the_cenkalti_profile_draws_from_the_same_intervals() {
    let policy = profile::CENKALTI.policy();
    let [mut lowest, mut highest] = [0.0, R].map(|r| ExponentialBackOff::options().random(move || r).build().unwrap());
    for n in 1..=30 {
        let [low, high] = [&mut lowest, &mut highest].map(|b| b.next_backoff().unwrap());
        let (least, most) = policy.bounds(n).unwrap();
        // The rounding of the package can be one nanosecond higher.
        assert!(
            low.abs_diff(least) <= nanos(1) && high.abs_diff(most) <= nanos(1),
            "{n}: {low:?} {least:?} {high:?} {most:?}"
        );
    }
}

#[test]
fn delays_are_uniform_around_the_interval_at_every_retry() {
    let mut backoffs: Vec<_> =
        (0..10_000).map(|n| ExponentialBackOff::options().seed(Seed::new(n)).build().unwrap()).collect();
    for _ in 0..6 {
        let share = |b: &mut ExponentialBackOff| {
            let interval = b.current_interval().as_secs_f64();
            b.next_backoff().unwrap().as_secs_f64() / interval - 0.5
        };
        assert_uniform(backoffs.iter_mut().map(share).collect());
    }
}

#[test]
fn successive_delays_of_a_backoff_are_uniform() {
    let options = ExponentialBackOff::options().multiplier(1.0).max_elapsed_time(None).seed(Seed::new(7));
    let mut b = options.build().unwrap();
    assert_uniform((0..20_000).map(|_| b.next_backoff().unwrap().as_secs_f64() / 0.5 - 0.5).collect());
}

#[test]
fn the_mean_delay_is_the_interval() {
    let mut b = ExponentialBackOff::options().multiplier(1.0).max_elapsed_time(None).build().unwrap();
    let n = 20_000;
    let mean = (0..n).map(|_| b.next_backoff().unwrap().as_secs_f64()).sum::<f64>() / f64::from(n);
    // The standard deviation of a delay is 500 ms / √12. Allows five standard errors of the mean.
    assert!((mean - 0.5).abs() < 5.0 * 0.5 / 12.0_f64.sqrt() / f64::from(n).sqrt(), "{mean}");
    assert_eq!(b.current_interval(), ms(500));
}
