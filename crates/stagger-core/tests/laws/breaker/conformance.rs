//! The conformance rows for breakers. Where stagger deliberately differs, the test asserts the difference and says why.
//! FG-19 is about a bulkhead, which stagger does not have.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::guard::Answer;
use stagger_core::{Guard, Guards, Jitter, Outcome, Policy, Ratio, Seed, StopReason};

use super::support::{FAILED, Harness, exactly, five_seconds};
use crate::laws::support::{Call, ms, secs};

/// The fifth call is a success that brings the window to its minimum number of calls.
#[test]
fn r4_11_a_time_window_trips_at_min_calls() {
    let ratio = Ratio::percent(50);
    let mut harness = Harness::new(five_seconds().failure_ratio(ratio).min_calls(5).window(Window::Time(secs(5))));
    for outcome in [FAILED, FAILED, FAILED, Outcome::Success] {
        harness.after(ms(100)).call(outcome);
        assert_eq!(harness.state(), BreakerState::Closed);
    }
    harness.after(ms(100)).call(Outcome::Success);
    let snapshot = harness.snapshot();
    assert_eq!((snapshot.state, snapshot.cause), (BreakerState::Open, TransitionCause::FailureRatio));
    assert_eq!((snapshot.failures, snapshot.calls), (3, 5));
}

/// Differs in the instant at which the wait ends: resilience4j admits the first call strictly after it, stagger at it,
/// so that `retry_in` is exact to the nanosecond.
#[test]
fn r4_13_it_half_opens_after_the_wait() {
    let mut harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    harness.after(secs(3)).rejected();
    assert_eq!(harness.state(), BreakerState::Open);
    assert_eq!(harness.after(Duration::from_nanos(1_999_999_999)).rejected(), Duration::from_nanos(1));
    harness.after(Duration::from_nanos(1)).permit();
    assert_eq!(harness.state(), BreakerState::HalfOpen);

    let mut harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    harness.after(secs(6)).permit();
    assert_eq!(harness.state(), BreakerState::HalfOpen);
}

#[test]
fn r4_13b_the_second_wait_is_longer() {
    let open = Policy::exponential(secs(5), secs(60)).multiplier(1.5).jitter(Jitter::None).build().unwrap();
    for (wait, admitted) in [(6, false), (11, true)] {
        let mut harness = Harness::new(CircuitBreaker::builder(Seed::new(1)).consecutive(1).open(open));
        harness.call(FAILED);
        harness.after(secs(5)).call(FAILED);
        assert_eq!(harness.rejected(), ms(7_500));
        assert_eq!(matches!(harness.after(secs(wait)).admit(), Answer::Go(_)), admitted, "after {wait} s");
    }
}

#[test]
fn r4_15_a_call_as_long_as_the_threshold_is_not_slow() {
    let threshold = secs(2);
    for (length, want) in [(threshold, BreakerState::Closed), (threshold + Duration::from_nanos(1), BreakerState::Open)]
    {
        let mut harness = Harness::new(five_seconds().slow_ratio(threshold, Ratio::ONE).min_calls(1));
        harness.long_call(length, Outcome::Success);
        assert_eq!(harness.state(), want, "{length:?}");
    }
}

/// Polly uses one window below 200 ms, and ten buckets from there on. stagger always uses ten buckets: it needs no
/// timer, so a short window is as exact as a long one.
#[test]
fn pl_31_short_windows_slide() {
    for length in [100, 199, 200, 201].map(ms) {
        let ratio = Ratio::percent(50);
        let mut harness = Harness::new(five_seconds().failure_ratio(ratio).min_calls(100).window(Window::Time(length)));
        harness.calls([FAILED; 3]);
        harness.after(length / 2).call(FAILED);
        assert_eq!(harness.snapshot().calls, 4, "{length:?}");
        assert_eq!(
            harness.after(length / 2).snapshot().calls,
            1,
            "{length:?}: only the calls of the first half have expired"
        );
    }
}

#[test]
fn pl_33_a_rejection_returns_the_rest_of_the_open_time() {
    let mut harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    assert_eq!(harness.after(ms(1)).rejected(), ms(4_999));
}

#[test]
fn pl_35_one_of_two_callers_when_half_open_is_the_probe() {
    let mut harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    let probe = harness.after(secs(5)).permit();
    harness.rejected();
    harness.record(probe, Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
}

/// failsafe-go makes three attempts, two of which are rejected at once, and returns the breaker's error. stagger checks
/// the breaker before it sleeps: the operation runs once in one attempt, and the caller gets the server's error. A
/// retry that would start when the breaker admits calls again is made.
#[test]
fn fg_17_a_retry_with_a_breaker_that_opens_at_once() {
    for (wait, runs, stop) in [(ms(100), 1, StopReason::BREAKER), (secs(5), 3, StopReason::Attempts)] {
        let policy = Policy::constant(wait).jitter(Jitter::None).max_attempts(3).build().unwrap();
        let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(1).open(exactly(secs(5))).build().unwrap();
        let mut call = Call::new(&policy);
        let list: [&dyn Guard; 1] = [&breaker];
        call.guards = Guards::of(&list);
        let trace = call.failing();
        assert_eq!((trace.runs, trace.attempts, trace.stop), (runs, runs, Some(stop)), "retries after {wait:?}");
    }
}

#[test]
fn fg_35_a_success_resets_the_count_of_failures() {
    let harness = Harness::new(five_seconds().consecutive(3));
    harness.calls([FAILED, Outcome::Success, FAILED, FAILED]);
    assert_eq!(harness.state(), BreakerState::Closed);
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Open);
}
