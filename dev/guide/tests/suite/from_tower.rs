//! Checks `docs/guide/from-tower.md` against tower 0.5 and tower-resilience-retry 0.14.

use core::time::Duration;
use std::collections::BTreeSet;

use tokio::time::Instant;
use tower::retry::backoff::{Backoff as _, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff as _};
use tower::util::rng::HasherRng;
use tower_resilience_retry::{ExponentialRandomBackoff, IntervalFunction as _};

use super::delays::{assert_same, canonical, columns, paused, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-tower.md");
/// `ExponentialBackoffMaker::new(100 ms, 10 s, 1.0, …)`.
const TOWER: &str = "exponential base=200ms cap=20s multiplier=2 jitter=equal max-attempts=4";
/// `ExponentialRandomBackoff::new(100 ms, 0.5)` with a limit of 10 s.
const RANDOM: &str = "exponential base=100ms cap=10s multiplier=2 jitter=±50% max-attempts=3";
/// `exponential_backoff(100 ms)`.
const PLAIN: &str = "exponential base=100ms cap=none multiplier=2 jitter=none max-attempts=3";
/// The policy that the page suggests instead.
const SUGGESTED: &str = "exponential base=100ms cap=10s multiplier=2 jitter=full max-attempts=4";

const BASE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(10);

fn maker() -> ExponentialBackoffMaker {
    maker_of(BASE)
}

fn maker_of(base: Duration) -> ExponentialBackoffMaker {
    ExponentialBackoffMaker::new(base, LIMIT, 1.0, HasherRng::default()).unwrap()
}

/// Returns the delays of a backoff, of which tower shows only the timers.
fn delays(mut backoff: ExponentialBackoff) -> impl Iterator<Item = Duration> {
    core::iter::from_fn(move || Some(backoff.next_backoff().deadline() - Instant::now()))
}

#[test]
fn the_backoff_of_tower_below_a_second_is_equal_jitter_of_twice_the_base() {
    // 100, 200, 400 and 800 ms.
    paused(async { assert_same(|| delays(maker().make_backoff()), &canonical(TOWER), 4) });
}

/// Tower truncates the product of the random number and the whole seconds.
#[test]
fn delays_of_whole_seconds_have_whole_seconds_of_jitter_in_tower() {
    paused(async {
        let base = Duration::from_secs(1);
        let drawn = columns(|_| delays(maker_of(base).make_backoff()).take(3).collect(), 3);
        let values = |n: usize| drawn[n].iter().map(|delay| delay.round() as u64).collect::<BTreeSet<_>>();
        assert!(drawn.iter().flatten().all(|&delay| (delay - delay.round()).abs() < 1e-6));
        assert_eq!([values(0), values(1), values(2)], [[1].into(), [2, 3].into(), [4, 5, 6, 7].into()]);
    });
}

#[test]
fn the_limit_of_tower_removes_the_jitter() {
    paused(async {
        let late = columns(|_| delays(maker().make_backoff()).take(9).collect(), 9).pop().unwrap();
        assert!(late.iter().all(|&delay| (delay - 10.0).abs() < 1e-6));
    });
}

#[test]
fn backoffs_of_one_maker_of_tower_draw_the_same_delays() {
    paused(async {
        let mut maker = maker();
        let first: Vec<_> = delays(maker.make_backoff()).take(5).collect();
        let second: Vec<_> = delays(maker.make_backoff()).take(5).collect();
        assert_eq!(first, second);
        let policy = canonical(TOWER);
        assert_ne!(policy.delay(1, stagger::Seed::new(1)), policy.delay(1, stagger::Seed::new(2)));
    });
}

#[test]
fn random_backoff_of_tower_resilience_is_a_factor() {
    let before = || {
        let backoff = ExponentialRandomBackoff::new(BASE, 0.5).unwrap().max_interval(LIMIT);
        (0..).map(move |attempt| backoff.next_interval(attempt))
    };
    assert_same(before, &canonical(RANDOM), 9);
}

#[test]
fn exponential_backoff_of_tower_resilience_has_no_jitter_and_no_cap() {
    let before = tower_resilience_retry::ExponentialBackoff::new(BASE);
    let policy = canonical(PLAIN).to_builder().max_attempts(12).build().unwrap();
    let after: Vec<_> = policy.delays(stagger::Seed::new(1)).collect();
    assert_eq!(after, (0..11).map(|attempt| before.next_interval(attempt)).collect::<Vec<_>>());
    assert_eq!(policy.cap(), None);
    assert_eq!(printed(PAGE, SUGGESTED).cap(), Some(LIMIT));
}
