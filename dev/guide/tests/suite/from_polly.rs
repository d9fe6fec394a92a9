//! Checks `docs/guide/from-polly.md`. Polly needs .NET, so its formulas (`RetryHelper.cs`) are reimplemented here.

use core::time::Duration;

use stagger::{Jitter, Policy, Ratio, Seed};

use super::delays::{Numbers, assert_same, columns, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-polly.md");
/// `BackoffType = Exponential, UseJitter = true`.
const SAME: &str = "exponential base=2s cap=none multiplier=2 jitter=polly-v8 max-attempts=4";
/// The same policy without jitter.
const WITHOUT_JITTER: &str = "exponential base=2s cap=none multiplier=2 jitter=none max-attempts=4";
/// `new RetryStrategyOptions()`.
const CONSTANT: &str = "constant base=2s jitter=none max-attempts=4";
/// The policy that the page suggests instead of [`SAME`].
const SUGGESTED: &str = "exponential base=4s cap=30s multiplier=2 jitter=full max-attempts=4";

const BASE: f64 = 2.0;

/// Returns the delays of a new call on each call, with different random numbers.
fn delays<F>(delays: F) -> impl FnMut() -> Box<dyn Iterator<Item = Duration>>
where
    F: Fn(Numbers) -> Box<dyn Iterator<Item = f64>>,
{
    let mut calls = 0;
    move || {
        calls += 1;
        Box::new(delays(Numbers::new(Seed::new(calls))).map(Duration::from_secs_f64))
    }
}

/// Returns the delays of `DecorrelatedJitterBackoffV2`: differences of `2^t · tanh(2 √t)` at `t = attempt + U[0, 1)`,
/// divided by 1.4.
fn exponential_with_jitter(mut numbers: Numbers) -> Box<dyn Iterator<Item = f64>> {
    let mut previous = 0.0;
    Box::new((0..).map(move |attempt| {
        let t = f64::from(attempt) + numbers.next();
        let point = t.exp2() * (4.0 * t).sqrt().tanh();
        let delay = (point - previous).max(0.0) * BASE / 1.4;
        previous = point;
        delay
    }))
}

#[test]
fn the_profile_has_the_distribution_of_exponential_with_jitter() {
    assert_same(delays(exponential_with_jitter), &printed(PAGE, SAME), 6);
}

#[test]
fn the_sum_of_the_delays_depends_on_the_last_draw_alone() {
    let profile = printed(PAGE, SAME);
    let sums = columns(|seed| vec![profile.schedule(seed).take(3).sum()], 1).remove(0);
    // After three delays, t is in [2, 3), so the sum is between 5.7 s and 11.4 s. Three independent delays with these
    // bounds would range from 0 to 17 s.
    let point = |t: f64| t.exp2() * (4.0 * t).sqrt().tanh() * BASE / 1.4;
    assert!(sums.iter().all(|&sum| (point(2.0) - 1e-6..=point(3.0) + 1e-6).contains(&sum)));
}

#[test]
fn the_defaults_are_constant_delays_without_jitter() {
    let policy = printed(PAGE, CONSTANT);
    assert_eq!(policy.delays(Seed::new(1)).collect::<Vec<_>>(), [Duration::from_secs(2); 3]);
    let exponential = printed(PAGE, WITHOUT_JITTER);
    let seconds: Vec<_> = exponential.delays(Seed::new(1)).map(|delay| delay.as_secs()).collect();
    assert_eq!(seconds, [2, 4, 8]);
}

#[test]
fn the_jitter_of_constant_and_linear_delays_is_25_percent() {
    let base = Duration::from_secs(2);
    let quarter = Jitter::Factor(Ratio::percent(25));
    let around = |mut numbers: Numbers, delay: fn(i32) -> f64| -> Box<dyn Iterator<Item = f64>> {
        Box::new((0..).map(move |attempt| delay(attempt) * (0.75 + 0.5 * numbers.next())))
    };
    let constant = Policy::constant(base).jitter(quarter).build().unwrap();
    assert_same(delays(|numbers| around(numbers, |_| BASE)), &constant, 3);
    let linear = Policy::linear(base, base, base).uncapped().jitter(quarter).build().unwrap();
    assert_same(delays(|numbers| around(numbers, |attempt| f64::from(attempt + 1) * BASE)), &linear, 5);
}

#[test]
fn at_the_max_delay_the_profile_synchronizes_clients_and_full_jitter_does_not() {
    let capped: Policy = "polly-v8 cap=10s".parse().unwrap();
    let cap = Duration::from_secs(10);
    let share = (0..10_000).filter(|&id| capped.delay(6, Seed::new(id)) == Some(cap)).count();
    assert!(share > 9_000, "{share} of 10,000 wait exactly the cap");
    let full: Policy = "exponential base=4s cap=10s jitter=full".parse().unwrap();
    assert_eq!(full.bounds(6), Some((Duration::ZERO, cap)));
}

#[test]
fn full_jitter_with_twice_the_delay_has_the_delay_as_median() {
    assert_eq!(printed(PAGE, SUGGESTED).quantile(1, 0.5), Some(Duration::from_secs(2)));
}
