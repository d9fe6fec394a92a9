//! Checks `docs/guide/from-reqwest-retry.md` against reqwest-retry 0.9 and its retry-policies.

use core::time::Duration;
use std::time::SystemTime;

use reqwest_retry::policies::{ExponentialBackoff, ExponentialBackoffTimed};
use reqwest_retry::{Jitter, RetryDecision, RetryPolicy};

use super::delays::{assert_same, canonical, printed};

const PAGE: &str = include_str!("../../../../docs/guide/from-reqwest-retry.md");
/// `ExponentialBackoff::builder().build_with_max_retries(3)`.
const SAME: &str = "exponential base=1s cap=30m multiplier=2 jitter=full max-attempts=4";
/// The same with `Jitter::Bounded`.
const BOUNDED: &str = "exponential base=1s cap=30m floor=500ms multiplier=2 jitter=full max-attempts=4";

const SECOND: Duration = Duration::from_secs(1);

/// Returns the delay after so many retries.
fn delay(policy: &impl RetryPolicy, retries: u32) -> Option<Duration> {
    let now = SystemTime::now();
    match policy.should_retry(now, retries) {
        RetryDecision::Retry { execute_after } => Some(execute_after.duration_since(now).unwrap_or_default()),
        RetryDecision::DoNotRetry => None,
    }
}

fn delays(policy: ExponentialBackoff) -> impl FnMut() -> Box<dyn Iterator<Item = Duration>> {
    move || Box::new((0..).map_while(move |retries| delay(&policy, retries)))
}

#[test]
fn the_defaults_are_full_jitter_up_to_half_an_hour() {
    let before = ExponentialBackoff::builder().build_with_max_retries(20);
    assert_same(delays(before), &printed(PAGE, SAME), 13);
}

#[test]
fn bounded_jitter_is_full_jitter_with_a_floor() {
    let before = ExponentialBackoff::builder().jitter(Jitter::Bounded).build_with_max_retries(20);
    assert_same(delays(before), &canonical(BOUNDED), 13);
}

#[test]
fn three_retries_are_four_attempts() {
    let before = ExponentialBackoff::builder().build_with_max_retries(3);
    assert_eq!((0..9).filter_map(|retries| delay(&before, retries)).count(), 3);
    assert_eq!(printed(PAGE, SAME).max_attempts().map(u32::from), Some(4));
}

#[test]
fn a_retry_begins_there_after_the_limit_and_not_here() {
    // The delay is a minute, and ten seconds of an hour are left.
    let before: ExponentialBackoffTimed = ExponentialBackoff::builder()
        .retry_bounds(60 * SECOND, 60 * SECOND)
        .jitter(Jitter::None)
        .build_with_total_retry_duration(3_600 * SECOND);
    let began = SystemTime::now() - 3_590 * SECOND;
    let RetryDecision::Retry { execute_after } = before.should_retry(began, 0) else { panic!("it retries") };
    assert!(execute_after > began + 3_600 * SECOND);

    let after: stagger::Policy = "constant base=1m jitter=none max-attempts=inf max-elapsed=1h".parse().unwrap();
    let clock = stagger::testing::VirtualClock::new();
    let busy = clock.clone();
    let operation = || {
        busy.advance(3_590 * SECOND);
        Err::<(), _>("down")
    };
    let report = stagger::blocking::retry(&after, operation).timer(clock).with_report().run();
    assert_eq!((report.attempts, report.stop_reason()), (1, Some(stagger::StopReason::Elapsed)));
}
