//! Checks `docs/guide/from-tenacity.md`. tenacity needs Python, so its formulas (`wait.py`) are reimplemented here.

use core::iter;
use core::time::Duration;

use stagger::{Jitter, Policy, Seed};

use super::delays::{Numbers, assert_same, calls, columns, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-tenacity.md");
/// `wait_exponential_jitter(max=60)`.
const SAME: &str = "exponential base=1s cap=1m multiplier=2 jitter=tenacity max-attempts=4";
/// `wait_random_exponential(multiplier=0.5, max=30)`.
const RANDOM: &str = "exponential base=500ms cap=30s multiplier=2 jitter=full max-attempts=4";
/// The policy that the page suggests instead of [`SAME`].
const SUGGESTED: &str = "exponential base=1s cap=1m multiplier=2 jitter=full max-attempts=4";

/// Returns `2^(n-1)`, the seconds before jitter after attempt `n`.
fn power(n: i32) -> f64 {
    2_f64.powi(n - 1)
}

/// Computes `min(multiplier · 2^(n-1) + U[0, 1], max)`.
fn exponential_jitter(n: i32, numbers: &mut Numbers) -> f64 {
    (power(n) + numbers.next()).min(60.0)
}

#[test]
fn random_exponential_is_full_jitter() {
    let wait = |n, numbers: &mut Numbers| numbers.between(0.0, (0.5 * power(n)).min(30.0));
    assert_same(calls(wait), &printed(PAGE, RANDOM), 9);
}

#[test]
fn the_profile_has_the_distribution_of_exponential_jitter() {
    assert_same(calls(exponential_jitter), &printed(PAGE, SAME), 8);
}

#[test]
fn at_the_cap_all_clients_wait_the_same_with_the_profile_and_not_with_full_jitter() {
    // The ceiling of retry 7 is 64 s.
    let profile = printed(PAGE, SAME);
    let minute = Duration::from_secs(60);
    assert!((0..1000).all(|id| profile.delay(7, Seed::new(id)) == Some(minute)));
    assert_eq!(printed(PAGE, SUGGESTED).bounds(7), Some((Duration::ZERO, minute)));
}

#[test]
fn the_jitter_is_one_second_however_long_the_wait_is() {
    let profile = printed(PAGE, SAME);
    let spreads = columns(|seed| profile.schedule(seed).take(6).collect(), 6);
    for (column, ceiling) in spreads.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) {
        let width = column.last().unwrap() - column.first().unwrap();
        assert!((0.99..=1.001).contains(&width), "{width} at {ceiling}");
    }
}

#[test]
fn the_other_waits_have_their_counterparts() {
    let second = Duration::from_secs(1);
    let fixed = Policy::constant(3 * second).jitter(Jitter::None).build().unwrap();
    assert_same(|| iter::repeat(3 * second), &fixed, 3);

    // wait_random(1, 3)
    let random = Policy::uniform(second, 3 * second).build().unwrap();
    assert_same(calls(|_, numbers| numbers.between(1.0, 3.0)), &random, 3);

    // wait_incrementing(start=1, increment=2, max=6)
    let incrementing = Policy::linear(second, 2 * second, 6 * second).jitter(Jitter::None).build().unwrap();
    assert_same(calls(|n, _| (1.0 + 2.0 * f64::from(n - 1)).min(6.0)), &incrementing, 5);

    // wait_exponential(multiplier=1, max=10, exp_base=3)
    let exponential = Policy::exponential(second, 10 * second).multiplier(3.0).jitter(Jitter::None).build().unwrap();
    assert_same(calls(|n, _| 3_f64.powi(n - 1).min(10.0)), &exponential, 5);

    // wait_chain(1, 3, 5)
    let chain = Policy::list(&[second, 3 * second, 5 * second]).jitter(Jitter::None).build().unwrap();
    assert_same(calls(|n, _| f64::from(2 * n.min(3) - 1)), &chain, 5);

    // wait_random_exponential(multiplier=1, max=10, min=2)
    let floor = Policy::exponential(second, 10 * second).floor(2 * second).build().unwrap();
    assert_same(calls(|n, numbers| numbers.between(2.0, power(n).clamp(2.0, 10.0))), &floor, 6);
}
