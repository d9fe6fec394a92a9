//! Checks the pages about cenkalti/backoff, failsafe-go and resilience4j. They need Go and Java, so their formulas
//! (`exponential.go`, `retryexecutor.go`, `IntervalFunction.java`) are reimplemented here.

use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Jitter, Policy, Seed, StopReason, blocking};

use super::delays::{Numbers, assert_same, calls, printed};

const CENKALTI_PAGE: &str = include_str!("../../../../docs/guide/from-cenkalti.md");
const CENKALTI: &str = "exponential base=500ms cap=1m multiplier=1.5 jitter=cenkalti max-attempts=inf max-elapsed=15m";

const FAILSAFE_PAGE: &str = include_str!("../../../../docs/guide/from-failsafe-go.md");
const FAILSAFE: &str = "exponential base=500ms cap=30s multiplier=2 jitter=±50% max-attempts=4";

const RESILIENCE4J_PAGE: &str = include_str!("../../../../docs/guide/from-resilience4j.md");
const RESILIENCE4J: &str = "exponential base=500ms cap=none multiplier=1.5 jitter=resilience4j max-attempts=3";

/// The policy that the pages about failsafe-go and resilience4j suggest.
const SUGGESTED: &str = "exponential base=500ms cap=30s multiplier=2 jitter=full max-attempts=4";

/// Computes the step of retry `n` as resilience4j does: each one truncated to whole milliseconds.
fn step(n: i32) -> f64 {
    (1..n).fold(500.0_f64, |step, _| (step * 1.5).trunc())
}

#[test]
fn the_profile_has_the_distribution_of_the_package_in_go() {
    let delay = |n: i32, numbers: &mut Numbers| {
        let ceiling = (0.5 * 1.5_f64.powi(n - 1)).min(60.0);
        numbers.between(0.5 * ceiling, 1.5 * ceiling)
    };
    assert_same(calls(delay), &printed(CENKALTI_PAGE, CENKALTI), 14);
}

#[test]
fn the_defaults_of_the_package_in_go_end_by_time_alone() {
    let policy = printed(CENKALTI_PAGE, CENKALTI);
    let call = blocking::retry(&policy, || Err::<(), _>("down")).timer(VirtualClock::new()).seed(Seed::new(1));
    let report = call.with_report().run();
    assert_eq!(report.stop_reason(), Some(StopReason::Elapsed));
    assert!(report.attempts > 15 && report.elapsed <= Duration::from_secs(15 * 60), "{report:?}");
}

#[test]
fn a_jitter_factor_of_failsafe_go_is_a_factor_after_the_cap() {
    let delay = |n: i32, numbers: &mut Numbers| {
        let ceiling = (0.5 * 2_f64.powi(n - 1)).min(30.0);
        numbers.between(0.5 * ceiling, 1.5 * ceiling)
    };
    let policy = printed(FAILSAFE_PAGE, FAILSAFE);
    assert_same(calls(delay), &policy, 8);
    assert_eq!(policy.bounds(9), Some((Duration::from_secs(15), Duration::from_secs(45))));
}

#[test]
fn the_defaults_of_failsafe_go_do_not_wait() {
    let policy = printed(FAILSAFE_PAGE, "zero max-attempts=3");
    assert_eq!(policy.delays(Seed::new(1)).collect::<Vec<_>>(), [Duration::ZERO; 2]);
}

#[test]
fn the_profile_has_the_distribution_of_random_backoff_in_java() {
    let delay = |n: i32, numbers: &mut Numbers| numbers.between(0.5 * step(n), 1.5 * step(n)).trunc() / 1000.0;
    assert_same(calls(delay), &printed(RESILIENCE4J_PAGE, RESILIENCE4J), 8);
}

#[test]
fn the_defaults_in_java_are_constant_and_without_jitter() {
    let policy = printed(RESILIENCE4J_PAGE, "constant base=500ms jitter=none max-attempts=3");
    assert_eq!(policy.delays(Seed::new(1)).collect::<Vec<_>>(), [Duration::from_millis(500); 2]);
}

#[test]
fn at_the_maximum_the_jitter_in_java_is_cut_off() {
    let capped = |cap: &str| -> Policy { format!("resilience4j cap={cap}").parse().unwrap() };
    let share = |policy: &Policy, n| {
        let on_the_cap = (0..9_000).filter(|&id| policy.delay(n, Seed::new(id)) == policy.cap()).count();
        on_the_cap as f64 / 9_000.0
    };
    // The step of retry 5 is 2.53 s: half of the draws lie above it, and all of them above its half.
    assert!((share(&capped("2530ms"), 5) - 0.5).abs() < 0.02);
    assert!(share(&capped("1265ms"), 5) > 0.999);
    let suggested = printed(RESILIENCE4J_PAGE, SUGGESTED);
    assert_eq!(printed(FAILSAFE_PAGE, SUGGESTED).jitter(), Jitter::Full);
    assert_eq!(suggested.bounds(20), Some((Duration::ZERO, Duration::from_secs(30))));
}
