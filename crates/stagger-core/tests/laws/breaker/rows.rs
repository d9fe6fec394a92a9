//! The rows of the field's table that concern breakers. Where stagger deliberately does something else, the test
//! asserts that and says why. FG-19 is about a bulkhead, which stagger has not.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::{Jitter, Outcome, Policy, Ratio, Seed, StopReason};

use super::support::{Bench, FAILED, exactly, five_seconds};
use crate::laws::support::{Call, ms, secs};

/// The fifth call is a success, and the one that brings the window to its least number of calls.
#[test]
fn r4_11_a_time_window_trips_at_its_least_number_of_calls() {
    let ratio = Ratio::percent(50);
    let mut bench = Bench::new(five_seconds().failure_ratio(ratio).min_calls(5).window(Window::Time(secs(5))));
    for outcome in [FAILED, FAILED, FAILED, Outcome::Success] {
        bench.after(ms(100)).call(outcome);
        assert_eq!(bench.state(), BreakerState::Closed);
    }
    bench.after(ms(100)).call(Outcome::Success);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.cause), (BreakerState::Open, TransitionCause::FailureRatio));
    assert_eq!((snapshot.failures, snapshot.calls), (3, 5));
}

/// Differs in the instant at which the wait ends: resilience4j lets the first call pass strictly after it, stagger at
/// it, so that `retry_in` can be kept to the nanosecond.
#[test]
fn r4_13_after_its_wait_it_half_opens() {
    let mut bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    bench.after(secs(3)).refused();
    assert_eq!(bench.state(), BreakerState::Open);
    assert_eq!(bench.after(Duration::from_nanos(1_999_999_999)).refused(), Duration::from_nanos(1));
    bench.after(Duration::from_nanos(1)).pass();
    assert_eq!(bench.state(), BreakerState::HalfOpen);

    let mut bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    bench.after(secs(6)).pass();
    assert_eq!(bench.state(), BreakerState::HalfOpen);
}

#[test]
fn r4_13b_the_second_wait_is_longer() {
    let open = Policy::exponential(secs(5), secs(60)).multiplier(1.5).jitter(Jitter::None).build().unwrap();
    for (wait, passes) in [(6, false), (11, true)] {
        let mut bench = Bench::new(CircuitBreaker::builder(Seed::new(1)).consecutive(1).open(open));
        bench.call(FAILED);
        bench.after(secs(5)).call(FAILED);
        assert_eq!(bench.refused(), ms(7_500));
        assert_eq!(bench.after(secs(wait)).admit().is_ok(), passes, "after {wait} s");
    }
}

#[test]
fn r4_15_as_long_as_the_threshold_is_not_slow() {
    let threshold = secs(2);
    for (length, want) in [(threshold, BreakerState::Closed), (threshold + Duration::from_nanos(1), BreakerState::Open)]
    {
        let mut bench = Bench::new(five_seconds().slow_ratio(threshold, Ratio::ONE).min_calls(1));
        bench.long_call(length, Outcome::Success);
        assert_eq!(bench.state(), want, "{length:?}");
    }
}

/// Polly has one window below 200 ms, and ten parts of it from there on. stagger has ten in every case: it asks no
/// timer, so a short window is as exact as a long one.
#[test]
fn pl_31_short_windows_roll_too() {
    for length in [100, 199, 200, 201].map(ms) {
        let ratio = Ratio::percent(50);
        let mut bench = Bench::new(five_seconds().failure_ratio(ratio).min_calls(100).window(Window::Time(length)));
        bench.calls([FAILED; 3]);
        bench.after(length / 2).call(FAILED);
        assert_eq!(bench.snapshot().calls, 4, "{length:?}");
        assert_eq!(
            bench.after(length / 2).snapshot().calls,
            1,
            "{length:?}: the first half is gone, the second is not"
        );
    }
}

#[test]
fn pl_33_a_refusal_tells_the_rest_of_the_open_time() {
    let mut bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    assert_eq!(bench.after(ms(1)).refused(), ms(4_999));
}

#[test]
fn pl_35_of_two_callers_of_a_half_open_breaker_one_is_the_probe() {
    let mut bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    let probe = bench.after(secs(5)).pass();
    bench.refused();
    bench.record(probe, Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
}

/// failsafe-go makes three attempts, of which two are refused at once, and the error is the breaker's. stagger asks
/// the breaker before it sleeps: the one execution is the one attempt, and the caller keeps the server's error. A
/// retry that would start when the breaker lets calls in again is made.
#[test]
fn fg_17_a_retry_over_a_breaker_that_opens_at_once() {
    for (wait, runs, stop) in [(ms(100), 1, StopReason::Breaker), (secs(5), 3, StopReason::Attempts)] {
        let policy = Policy::constant(wait).jitter(Jitter::None).max_attempts(3).build().unwrap();
        let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(1).open(exactly(secs(5))).build().unwrap();
        let mut call = Call::new(&policy);
        call.guards.breaker = Some(&breaker);
        let trace = call.failing();
        assert_eq!((trace.runs, trace.attempts, trace.stop), (runs, runs, Some(stop)), "retries after {wait:?}");
    }
}

#[test]
fn fg_35_a_success_starts_the_count_of_failures_again() {
    let bench = Bench::new(five_seconds().consecutive(3));
    bench.calls([FAILED, Outcome::Success, FAILED, FAILED]);
    assert_eq!(bench.state(), BreakerState::Closed);
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::Open);
}
