//! The rules that trip the breaker.

use core::cell::Cell;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::guard::Now;
use stagger_core::{Breaker, FailureKind, Instant, Outcome, Ratio, Seed};

use super::support::{FAILED, Harness, five_seconds};
use crate::laws::support::{ms, secs};

const LOCAL: Outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };

#[test]
fn neutral_outcomes_neither_trip_nor_reset_it() {
    let harness = Harness::new(five_seconds().consecutive(2));
    harness.call(FAILED);
    harness.calls([Outcome::Cancelled, LOCAL, Outcome::NotProcessed]);
    assert_eq!((harness.state(), harness.snapshot().consecutive), (BreakerState::Closed, 1));
    harness.call(Outcome::throttled(None));
    assert_eq!(harness.state(), BreakerState::Open);
}

#[test]
fn a_permanent_failure_resets_the_count() {
    let harness = Harness::new(five_seconds().consecutive(2));
    harness.calls([FAILED, Outcome::Permanent, FAILED]);
    assert_eq!(harness.state(), BreakerState::Closed);
}

#[test]
fn a_window_of_calls_drops_the_oldest_call() {
    let harness = Harness::new(five_seconds().failure_ratio(Ratio::percent(60)).window(Window::Calls(5)).min_calls(5));
    harness.calls([FAILED, FAILED, Outcome::Success, Outcome::Success, Outcome::Success]);
    harness.calls([Outcome::Success, FAILED]);
    // The first two failures have left the window; one is in it.
    let snapshot = harness.snapshot();
    assert_eq!((snapshot.state, snapshot.failures, snapshot.calls), (BreakerState::Closed, 1, 5));
    harness.calls([FAILED, FAILED]);
    assert_eq!(harness.state(), BreakerState::Open);
}

#[test]
fn failures_and_slow_calls_each_trip_it() {
    let builder = five_seconds().failure_ratio(Ratio::percent(75)).slow_ratio(secs(1), Ratio::percent(50)).min_calls(4);
    let mut slow = Harness::new(builder);
    for length in [secs(2), ms(10), ms(10), secs(2)] {
        slow.long_call(length, Outcome::Success);
    }
    assert_eq!((slow.state(), slow.snapshot().cause), (BreakerState::Open, TransitionCause::SlowRatio));
    let failing = Harness::new(builder);
    failing.calls([FAILED, FAILED, FAILED, Outcome::Success]);
    assert_eq!((failing.state(), failing.snapshot().cause), (BreakerState::Open, TransitionCause::FailureRatio));
    // A call can be both, and counts for each rule.
    let mut both = Harness::new(builder.min_calls(10));
    both.long_call(secs(2), FAILED);
    assert_eq!((both.snapshot().calls, both.snapshot().failures, both.snapshot().slow), (1, 1, 1));
}

#[test]
fn a_slow_success_resets_consecutive_failures() {
    let mut harness = Harness::new(five_seconds().consecutive(2).slow_ratio(secs(1), Ratio::ONE).min_calls(20));
    harness.call(FAILED);
    harness.long_call(secs(2), Outcome::Success);
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Closed);
}

#[test]
fn a_time_window_drops_older_calls() {
    let ratio = Ratio::percent(50);
    let mut harness = Harness::new(five_seconds().failure_ratio(ratio).min_calls(4).window(Window::Time(secs(10))));
    harness.calls([FAILED; 3]);
    harness.after(secs(10)).calls([FAILED; 3]);
    assert_eq!((harness.state(), harness.snapshot().calls), (BreakerState::Closed, 3));
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Open);
}

/// A window of calls would otherwise keep old failures for any length of time.
#[test]
fn closing_empties_the_window() {
    for window in [Window::Calls(10), Window::Time(secs(3_600))] {
        let mut harness = Harness::new(five_seconds().failure_ratio(Ratio::percent(50)).min_calls(5).window(window));
        harness.calls([FAILED; 5]);
        harness.after(secs(5)).call(Outcome::Success);
        assert_eq!((harness.state(), harness.snapshot().calls), (BreakerState::Closed, 0), "{window:?}");
        harness.calls([FAILED; 4]);
        assert_eq!((harness.state(), harness.snapshot().calls), (BreakerState::Closed, 4), "{window:?}");
    }
}

/// A clock that counts how often it is read.
struct CountingNow(Cell<u32>);

impl Now for CountingNow {
    fn now(&self) -> Instant {
        self.0.set(self.0.get() + 1);
        Instant::from_nanos(5)
    }
}

#[test]
fn the_clock_is_read_only_if_a_rule_needs_it() {
    let half = Ratio::percent(50);
    let builder = || CircuitBreaker::builder(Seed::new(1));
    for (name, breaker, admit, record) in [
        ("consecutive", builder().consecutive(5), 0, 0),
        ("calls", builder().failure_ratio(half), 0, 0),
        ("time", builder().failure_ratio(half).window(Window::Time(secs(10))), 0, 1),
        ("slow calls", builder().slow_ratio(secs(1), half), 1, 1),
    ] {
        let breaker = breaker.build().unwrap();
        for outcome in [Outcome::Success, FAILED, Outcome::Success] {
            let clock = CountingNow(Cell::new(0));
            let permit = breaker.admit(&clock).unwrap();
            assert_eq!(clock.0.replace(0), admit, "{name}: admit");
            breaker.record(permit, &outcome, &clock);
            assert_eq!(clock.0.get(), record, "{name}: record {outcome:?}");
        }
        assert!(!breaker.would_reject(secs(1), &CountingNow(Cell::new(0))));
    }
}
