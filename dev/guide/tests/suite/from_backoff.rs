//! Checks `docs/guide/from-backoff.md` against backoff 0.4.

use core::cell::RefCell;
use core::time::Duration;
use std::io;

use backoff::backoff::{Backoff as _, Constant};
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use stagger::testing::{NoSleep, Script, VirtualClock};
use stagger::{Marked, Outcome, Policy, PolicyProblem, Ratio, Report, Seed, ServerHint, StopReason, blocking};
use tokio::time::Instant;

use super::delays::{assert_same, columns, paused, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-backoff.md");
/// The counterpart of the crate's defaults.
const SAME: &str = "exponential base=500ms cap=1m multiplier=1.5 jitter=±50% max-attempts=inf max-elapsed=15m";
/// The policy that the page suggests instead.
const SUGGESTED: &str = "exponential base=500ms cap=1m multiplier=2 jitter=full max-attempts=inf max-elapsed=15m";

/// Returns an endless series of delays, without the time limit.
fn theirs(mut backoff: ExponentialBackoff) -> impl Iterator<Item = Duration> {
    backoff.max_elapsed_time = None;
    core::iter::from_fn(move || backoff.next_backoff())
}

#[test]
fn the_defaults_and_their_counterpart_have_the_same_distribution() {
    // The cap is reached at retry 13.
    assert_same(|| theirs(ExponentialBackoff::default()), &printed(PAGE, SAME), 16);
    assert_same(|| theirs(ExponentialBackoff::default()), &"cenkalti".parse().unwrap(), 16);
}

#[test]
fn every_setting_has_its_counterpart() {
    let before = || {
        let mut builder = ExponentialBackoffBuilder::new();
        builder
            .with_initial_interval(Duration::from_millis(200))
            .with_multiplier(3.0)
            .with_randomization_factor(0.2)
            .with_max_interval(Duration::from_secs(2));
        theirs(builder.build())
    };
    let after = Policy::exponential(Duration::from_millis(200), Duration::from_secs(2))
        .multiplier(3.0)
        .jitter(stagger::Jitter::Factor(Ratio::percent(20)));
    assert_same(before, &after.build().unwrap(), 6);
}

#[test]
fn a_constant_backoff_is_a_constant_without_jitter() {
    let delay = Duration::from_millis(250);
    let after = Policy::constant(delay).jitter(stagger::Jitter::None).build().unwrap();
    let before = || {
        let mut constant = Constant::new(delay);
        core::iter::from_fn(move || constant.next_backoff())
    };
    assert_same(before, &after, 3);
}

#[test]
fn delays_exceed_the_largest_interval_there_and_not_with_full_jitter() {
    let cap = 60.0;
    let share_above = |column: &[f64]| column.iter().filter(|&&delay| delay > cap).count() as f64 / column.len() as f64;
    let theirs = columns(|_| theirs(ExponentialBackoff::default()).take(16).collect(), 16);
    assert!((share_above(&theirs[15]) - 0.5).abs() < 0.03);
    assert!(theirs[15].last().is_some_and(|&longest| (89.0..=90.001).contains(&longest)));

    let suggested = printed(PAGE, SUGGESTED);
    assert_eq!(suggested.bounds(16), Some((Duration::ZERO, Duration::from_secs(60))));
    let same = printed(PAGE, SAME);
    assert_eq!(same.bounds(16), Some((Duration::from_secs(30), Duration::from_secs(90))));
}

#[test]
fn a_factor_above_one_gives_zero_delays_there_and_an_error_here() {
    let before = || ExponentialBackoff { randomization_factor: 4.0, ..ExponentialBackoff::default() };
    let first = &columns(|_| theirs(before()).take(1).collect(), 1)[0];
    let zero = first.iter().filter(|&&delay| delay == 0.0).count() as f64 / first.len() as f64;
    // Uniform on [−3, 5] intervals; negative draws become zero.
    assert!((zero - 3.0 / 8.0).abs() < 0.03, "{zero}");

    let after = Policy::default().to_builder().jitter(stagger::Jitter::Factor(Ratio::percent(400))).build();
    assert!(after.unwrap_err().problems().eq([PolicyProblem::RatioAboveOne]));
}

#[test]
fn a_first_interval_above_the_largest_is_used_there_and_an_error_here() {
    let before = ExponentialBackoff {
        current_interval: Duration::from_secs(10),
        initial_interval: Duration::from_secs(10),
        max_interval: Duration::from_secs(1),
        randomization_factor: 0.0,
        ..ExponentialBackoff::default()
    };
    // Without jitter, the crate still draws the last nanosecond of a delay.
    let whole: Vec<_> = theirs(before).take(2).map(|delay| delay.as_micros()).collect();
    assert_eq!(whole, [10_000_000, 1_000_000]);
    let after = Policy::exponential(Duration::from_secs(10), Duration::from_secs(1)).build();
    assert!(after.unwrap_err().problems().eq([PolicyProblem::CapBelowBase]));
}

#[test]
fn a_hint_ignores_the_time_limit_there_and_not_here() {
    let hint = Duration::from_nanos(1);
    let mut calls = 0;
    let before = ExponentialBackoff { max_elapsed_time: Some(Duration::ZERO), ..ExponentialBackoff::default() };
    let _ = backoff::retry(before, || {
        calls += 1;
        Err::<(), _>(if calls < 1000 {
            backoff::Error::retry_after("busy", hint)
        } else {
            backoff::Error::permanent("")
        })
    });
    assert_eq!(calls, 1000, "only the operation itself ended the call");

    let policy = printed(PAGE, SAME);
    let clock = VirtualClock::new();
    let report = blocking::retry(&policy, || Err::<(), _>("busy"))
        .classify(|_| Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(240)))))
        .timer(clock.clone())
        .with_report()
        .run();
    assert_eq!(report.stop_reason(), Some(StopReason::Elapsed));
    assert!(clock.elapsed() <= Duration::from_secs(900));
}

#[test]
fn a_hint_is_the_exact_delay_there_and_a_lower_bound_here() {
    let hint = Duration::from_secs(5);
    paused(async {
        let (mut calls, mut waited) = (0, None);
        let operation = || {
            calls += 1;
            let busy = calls == 1;
            async move { if busy { Err(backoff::Error::retry_after("busy", hint)) } else { Ok(()) } }
        };
        let notify = |_, delay| waited = Some(delay);
        assert_eq!(backoff::future::retry_notify(ExponentialBackoff::default(), operation, notify).await, Ok(()));
        assert_eq!(waited, Some(hint));
    });

    let policy = printed(PAGE, SAME);
    let delays: Vec<_> = (0..1000)
        .map(|id| {
            let clock = VirtualClock::new();
            let mut script = Script::new([Err(Marked::retry_after("busy", hint)), Ok(())]);
            let call = blocking::retry(&policy, || script.next(Marked::permanent("exhausted")));
            assert_eq!(call.timer(clock.clone()).seed(Seed::new(id)).run(), Ok(()));
            clock.elapsed()
        })
        .collect();
    assert!(delays.iter().all(|delay| (hint..=hint * 3 / 2).contains(delay)));
    assert!(delays.iter().max().is_some_and(|&longest| longest > hint * 7 / 5));
}

#[test]
fn a_missing_file_is_transient_there_and_permanent_here() {
    let missing_file = || io::Error::from(io::ErrorKind::NotFound);
    let mut calls = 0;
    let _ = backoff::retry(backoff::backoff::Zero {}, || {
        calls += 1;
        if calls < 5 { Err(missing_file())? } else { Ok(()) }
    });
    assert_eq!(calls, 5);

    let attempts = |report: Report<(), io::Error>| report.attempts;
    let call = || blocking::retry(&Policy::DEFAULT, || Err::<(), _>(Marked::from(missing_file()))).timer(NoSleep);
    assert_eq!(attempts(call().with_report().run()), 1);
    assert_eq!(attempts(call().when(|_| true).with_report().run()), 4);
}

#[test]
fn the_next_future_is_created_before_the_sleep_there_and_after_it_here() {
    paused(async {
        let delay = Duration::from_secs(5);
        let start = Instant::now();
        let made = RefCell::new(Vec::new());
        let operation = || {
            made.borrow_mut().push(start.elapsed().as_secs());
            let attempts = made.borrow().len();
            async move { if attempts < 2 { Err(backoff::Error::transient("busy")) } else { Ok(()) } }
        };
        assert_eq!(backoff::future::retry(Constant::new(delay), operation).await, Ok(()));
        assert_eq!(made.take(), [0, 0], "the second future was created five seconds before it was polled");

        let policy = Policy::constant(delay).jitter(stagger::Jitter::None).build().unwrap();
        let start = Instant::now();
        let operation = || {
            made.borrow_mut().push(start.elapsed().as_secs());
            let attempts = made.borrow().len();
            async move { if attempts < 2 { Err("busy") } else { Ok(()) } }
        };
        assert_eq!(stagger::retry(&policy, operation).await, Ok(()));
        assert_eq!(made.take(), [0, 5]);
    });
}
