//! Checks `docs/guide/from-backon.md` against backon 1.6.

use core::time::Duration;

use backon::{BackoffBuilder as _, BlockingRetryable as _, ConstantBuilder, ExponentialBuilder, FibonacciBuilder};
use stagger::testing::VirtualClock;
use stagger::{Jitter, Policy, PolicyProblem, StopReason, blocking};

use super::delays::{assert_same, columns, distance, paused, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-backon.md");
/// The counterpart of the crate's defaults.
const WITHOUT_JITTER: &str = "exponential base=1s cap=1m multiplier=2 jitter=none max-attempts=4";
/// The counterpart with jitter, which the crate adds on top: equal jitter with twice the base and cap.
const SAME: &str = "exponential base=2s cap=2m multiplier=2 jitter=equal max-attempts=4";
/// The policy that the page suggests instead.
const SUGGESTED: &str = "exponential base=1s cap=1m multiplier=2 jitter=full max-attempts=4";

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_defaults_and_their_counterpart_give_the_same_delays() {
    let ours: Vec<_> = printed(PAGE, WITHOUT_JITTER).delays(stagger::seed()).collect();
    assert_eq!(ours, ExponentialBuilder::default().build().collect::<Vec<_>>());
}

#[test]
fn additive_jitter_is_equal_jitter_of_twice_the_base() {
    // The cap is reached at retry 7.
    let before = || ExponentialBuilder::default().with_jitter().with_max_times(10).build();
    assert_same(before, &printed(PAGE, SAME), 10);
}

#[test]
fn every_setting_has_its_counterpart() {
    let before = ExponentialBuilder::default()
        .with_jitter()
        .with_factor(1.5)
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_millis(300))
        .without_max_times();
    let after = Policy::exponential(Duration::from_millis(200), Duration::from_millis(600))
        .multiplier(1.5)
        .jitter(Jitter::Equal)
        .unlimited_attempts();
    assert_same(|| before.build(), &after.build().unwrap(), 6);
}

#[test]
fn constant_delays_with_jitter_are_constant_delays_of_twice_the_base() {
    let before = ConstantBuilder::default().with_delay(SECOND).with_jitter();
    assert_same(|| before.build(), &Policy::constant(2 * SECOND).build().unwrap(), 3);
    let plain = Policy::constant(SECOND).jitter(Jitter::None).build().unwrap();
    assert_same(|| ConstantBuilder::default().build(), &plain, 3);
}

#[test]
fn delays_reach_twice_the_cap_there_and_not_here() {
    let before = || ExponentialBuilder::default().with_jitter().with_max_times(10).build();
    let theirs = columns(|_| before().collect(), 10);
    assert!(theirs[9].iter().all(|&delay| delay >= 60.0));
    assert!(theirs[9].last().is_some_and(|&longest| longest > 119.0));
    assert_eq!(printed(PAGE, SUGGESTED).bounds(10), Some((Duration::ZERO, 60 * SECOND)));
}

#[test]
fn full_jitter_with_the_same_base_is_another_distribution_with_a_third_of_the_mean() {
    let before = || ExponentialBuilder::default().with_jitter().build();
    let suggested = printed(PAGE, SUGGESTED);
    let theirs = columns(|_| before().collect(), 3);
    let ours = columns(|seed| suggested.delays(seed).collect(), 3);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        // All delays are above the interval there, and below it here.
        assert!(distance(theirs, ours) > 0.999);
        let ratio = theirs.iter().sum::<f64>() / ours.iter().sum::<f64>();
        assert!((ratio - 3.0).abs() < 0.1, "{ratio}");
    }
}

#[test]
fn max_times_of_three_is_four_attempts_here() {
    let mut calls = 0;
    let before = ExponentialBuilder::default().with_max_times(3);
    let operation = || {
        calls += 1;
        Err::<(), _>("no")
    };
    let _ = operation.retry(before).sleep(|_| {}).call();
    assert_eq!(calls, 4);

    let policy = printed(PAGE, SUGGESTED);
    let report = blocking::retry(&policy, || Err::<(), _>("no")).timer(VirtualClock::new()).with_report().run();
    assert_eq!((report.attempts, report.stop_reason()), (4, Some(StopReason::Attempts)));
}

#[test]
fn the_total_counts_only_sleeps_there_and_the_operation_too_here() {
    let limit = 10 * SECOND;
    let operation_takes = 30 * SECOND;

    let mut elapsed = Duration::ZERO;
    let mut calls = 0;
    for delay in ConstantBuilder::default().with_delay(SECOND).with_max_times(100).build().take(10) {
        elapsed += operation_takes + delay;
        calls += 1;
    }
    let before = ExponentialBuilder::default()
        .with_factor(1.0)
        .with_max_times(100)
        .with_total_delay(Some(limit))
        .build()
        .count();
    assert_eq!((before, calls), (10, 10), "ten sleeps, so eleven calls");
    assert_eq!(elapsed + operation_takes, 340 * SECOND);

    let policy = Policy::constant(SECOND).jitter(Jitter::None).unlimited_attempts().max_elapsed(limit).build().unwrap();
    let clock = VirtualClock::new();
    let busy = clock.clone();
    let report = blocking::retry(&policy, || {
        busy.advance(operation_takes);
        Err::<(), _>("no")
    })
    .timer(clock)
    .with_report()
    .run();
    assert_eq!(
        (report.attempts, report.elapsed, report.stop_reason()),
        (1, operation_takes, Some(StopReason::Elapsed))
    );
}

#[test]
fn a_min_delay_above_the_max_is_used_there_and_an_error_here() {
    let before = ExponentialBuilder::default().with_min_delay(10 * SECOND).with_max_delay(SECOND);
    assert_eq!(before.build().collect::<Vec<_>>(), [10 * SECOND, SECOND, SECOND]);
    let after = Policy::exponential(10 * SECOND, SECOND).build();
    assert!(after.unwrap_err().problems().eq([PolicyProblem::CapBelowBase]));
}

#[test]
fn fibonacci_is_a_list_and_exceeds_its_cap_there() {
    let before = FibonacciBuilder::default().with_max_times(8);
    let list = [1, 1, 2, 3, 5, 8, 13, 21].map(Duration::from_secs);
    let after = Policy::list(&list).jitter(Jitter::None).build().unwrap();
    assert_same(|| before.build(), &after, 8);

    let longest = before.with_max_delay(4 * SECOND).build().max();
    assert_eq!(longest, Some(5 * SECOND));
}

#[test]
fn adjusted_retries_are_unlimited_there_and_hinted_ones_count_as_attempts_here() {
    paused(async {
        let mut calls = 0;
        let before = backon::Retryable::retry(
            || {
                calls += 1;
                let calls = calls;
                async move { if calls < 1000 { Err("busy") } else { Ok(()) } }
            },
            ExponentialBuilder::default().with_max_times(3),
        );
        let start = tokio::time::Instant::now();
        assert_eq!(before.adjust(|_, _| Some(SECOND)).await, Ok(()));
        // Every sleep is exactly the adjusted delay; the paused clock advances with sleeps only.
        assert_eq!((calls, start.elapsed()), (1000, 999 * SECOND));

        let report = stagger::retry(&printed(PAGE, SUGGESTED), async || Err::<(), _>("busy"))
            .classify(|_| stagger::Outcome::throttled(Some(stagger::ServerHint::AtLeast(SECOND))))
            .with_report()
            .await;
        assert_eq!((report.attempts, report.stop_reason()), (4, Some(StopReason::Attempts)));
    });
}
