//! Checks `docs/guide/from-tokio-retry.md` against tokio-retry 0.3.

use core::cell::Cell;
use core::time::Duration;

use stagger::{Jitter, Policy, StopReason};
use tokio_retry::Retry;
use tokio_retry::strategy::{ExponentialBackoff, FibonacciBackoff, FixedInterval, jitter};

use super::delays::{CHANCE, assert_same, columns, distance, paused, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-tokio-retry.md");
/// `from_millis(2).factor(50).max_delay(10 s).map(jitter).take(3)`.
const SAME: &str = "exponential base=100ms cap=10s multiplier=2 jitter=full max-attempts=4";

const SECOND: Duration = Duration::from_secs(1);

fn before() -> impl Iterator<Item = Duration> {
    ExponentialBackoff::from_millis(2).factor(50).max_delay(10 * SECOND).map(jitter)
}

#[test]
fn base_times_factor_with_jitter_is_full_jitter() {
    // The cap is reached at retry 8.
    assert_same(before, &printed(PAGE, SAME), 10);
}

#[test]
fn using_the_base_as_the_first_delay_is_another_distribution() {
    let theirs = columns(|_| ExponentialBackoff::from_millis(100).map(jitter).take(3).collect(), 3);
    let after = printed(PAGE, SAME);
    let ours = columns(|seed| after.delays(seed).collect(), 3);
    // The first delay agrees. After that, the base is also the multiplier.
    assert!(distance(&theirs[0], &ours[0]) < CHANCE);
    assert!(distance(&theirs[1], &ours[1]) > 0.9);
}

#[test]
fn from_millis_500_is_not_a_base_of_500_ms() {
    let before: Vec<_> = ExponentialBackoff::from_millis(500).take(4).map(|delay| delay.as_secs_f64()).collect();
    assert_eq!(before, [0.5, 250.0, 125_000.0, 62_500_000.0]);
    let after = Policy::exponential(Duration::from_millis(500), 60 * SECOND).jitter(Jitter::None).build().unwrap();
    let after: Vec<_> = after.schedule(stagger::seed()).take(4).map(|delay| delay.as_secs_f64()).collect();
    assert_eq!(after, [0.5, 1.0, 2.0, 4.0]);
}

#[test]
fn from_millis_1_never_grows() {
    assert!(ExponentialBackoff::from_millis(1).take(1000).all(|delay| delay == Duration::from_millis(1)));
}

#[test]
fn a_fixed_interval_is_a_constant_without_jitter_or_with_full_jitter() {
    let fixed = || FixedInterval::new(SECOND);
    assert_same(fixed, &Policy::constant(SECOND).jitter(Jitter::None).build().unwrap(), 3);
    assert_same(|| fixed().map(jitter), &Policy::constant(SECOND).jitter(Jitter::Full).build().unwrap(), 3);
}

#[test]
fn fibonacci_is_a_list() {
    let list = [100, 100, 200, 300, 500, 800, 1000].map(Duration::from_millis);
    let before = || FibonacciBackoff::from_millis(100).max_delay(SECOND);
    assert_same(before, &Policy::list(&list).jitter(Jitter::None).build().unwrap(), 9);
    assert_same(|| before().map(jitter), &Policy::list(&list).jitter(Jitter::Full).build().unwrap(), 9);
}

#[test]
fn take_three_is_four_attempts_here() {
    paused(async {
        let calls = Cell::new(0);
        let operation = async || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        };
        let _ = Retry::start(before().take(3), operation).await;
        assert_eq!(calls.take(), 4);

        let policy = printed(PAGE, SAME);
        let report = stagger::retry(&policy, operation).with_report().await;
        assert_eq!((report.attempts, report.stop_reason(), calls.get()), (4, Some(StopReason::Attempts), 4));
    });
}

#[test]
fn attempts_are_unlimited_by_default_there_and_four_here() {
    paused(async {
        let calls = Cell::new(0);
        let until = |last| {
            let calls = &calls;
            move || {
                calls.set(calls.get() + 1);
                core::future::ready(if calls.get() < last { Err("no") } else { Ok(()) })
            }
        };
        assert_eq!(Retry::start(before(), until(1000)).await, Ok(()));
        assert_eq!(calls.take(), 1000);
        assert_eq!(stagger::retry(&Policy::DEFAULT, until(1000)).await, Err("no"));
        assert_eq!(calls.take(), 4);
    });
}

#[test]
fn the_first_future_is_created_immediately_there_and_when_polled_here() {
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        core::future::ready(Ok::<_, &str>(()))
    };
    drop(Retry::start(before().take(3), operation));
    assert_eq!(calls.take(), 1);
    drop(stagger::retry(&Policy::DEFAULT, operation));
    assert_eq!(calls.take(), 0);
}
