//! What trips it.

use core::cell::Cell;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::{Breaker, FailureKind, Instant, Outcome, Ratio, Seed, guard::Now};

use super::support::{Bench, FAILED, five_seconds};
use crate::laws::support::{ms, secs};

const LOCAL: Outcome = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };

#[test]
fn what_says_nothing_about_the_server_neither_trips_nor_heals() {
    let bench = Bench::new(five_seconds().consecutive(2));
    bench.call(FAILED);
    bench.calls([Outcome::Cancelled, LOCAL, Outcome::NotProcessed]);
    assert_eq!((bench.state(), bench.snapshot().consecutive), (BreakerState::Closed, 1));
    bench.call(Outcome::throttled(None));
    assert_eq!(bench.state(), BreakerState::Open);
}

#[test]
fn a_permanent_failure_is_an_answer() {
    let bench = Bench::new(five_seconds().consecutive(2));
    bench.calls([FAILED, Outcome::Permanent, FAILED]);
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn a_window_of_calls_forgets_the_call_that_leaves_it() {
    let bench = Bench::new(five_seconds().failure_ratio(Ratio::percent(60)).window(Window::Calls(5)).min_calls(5));
    bench.calls([FAILED, FAILED, Outcome::Success, Outcome::Success, Outcome::Success]);
    bench.calls([Outcome::Success, FAILED]);
    // F and F have left, one F is in.
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.failures, snapshot.calls), (BreakerState::Closed, 1, 5));
    bench.calls([FAILED, FAILED]);
    assert_eq!(bench.state(), BreakerState::Open);
}

#[test]
fn failures_and_slow_calls_trip_each_by_itself() {
    let builder = five_seconds().failure_ratio(Ratio::percent(75)).slow_ratio(secs(1), Ratio::percent(50)).min_calls(4);
    let mut slow = Bench::new(builder);
    for length in [secs(2), ms(10), ms(10), secs(2)] {
        slow.long_call(length, Outcome::Success);
    }
    assert_eq!((slow.state(), slow.snapshot().cause), (BreakerState::Open, TransitionCause::SlowRatio));
    let failing = Bench::new(builder);
    failing.calls([FAILED, FAILED, FAILED, Outcome::Success]);
    assert_eq!((failing.state(), failing.snapshot().cause), (BreakerState::Open, TransitionCause::FailureRatio));
    // A call can be both, and counts in each.
    let mut both = Bench::new(builder.min_calls(10));
    both.long_call(secs(2), FAILED);
    assert_eq!((both.snapshot().calls, both.snapshot().failures, both.snapshot().slow), (1, 1, 1));
}

#[test]
fn a_slow_call_that_succeeds_is_no_failure_in_a_row() {
    let mut bench = Bench::new(five_seconds().consecutive(2).slow_ratio(secs(1), Ratio::ONE).min_calls(20));
    bench.call(FAILED);
    bench.long_call(secs(2), Outcome::Success);
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn a_time_window_forgets_what_is_older() {
    let ratio = Ratio::percent(50);
    let mut bench = Bench::new(five_seconds().failure_ratio(ratio).min_calls(4).window(Window::Time(secs(10))));
    bench.calls([FAILED; 3]);
    bench.after(secs(10)).calls([FAILED; 3]);
    assert_eq!((bench.state(), bench.snapshot().calls), (BreakerState::Closed, 3));
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::Open);
}

/// Failures of yesterday, which a window of calls keeps.
#[test]
fn closing_empties_the_window() {
    for window in [Window::Calls(10), Window::Time(secs(3_600))] {
        let mut bench = Bench::new(five_seconds().failure_ratio(Ratio::percent(50)).min_calls(5).window(window));
        bench.calls([FAILED; 5]);
        bench.after(secs(5)).call(Outcome::Success);
        assert_eq!((bench.state(), bench.snapshot().calls), (BreakerState::Closed, 0), "{window:?}");
        bench.calls([FAILED; 4]);
        assert_eq!((bench.state(), bench.snapshot().calls), (BreakerState::Closed, 4), "{window:?}");
    }
}

/// A clock that counts how often it is read.
struct Counted(Cell<u32>);

impl Now for Counted {
    fn now(&self) -> Instant {
        self.0.set(self.0.get() + 1);
        Instant::from_nanos(5)
    }
}

#[test]
fn the_clock_is_read_only_by_the_rules_that_need_it() {
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
            let clock = Counted(Cell::new(0));
            let pass = breaker.admit(&clock).unwrap();
            assert_eq!(clock.0.replace(0), admit, "{name}: admit");
            breaker.record(pass, &outcome, &clock);
            assert_eq!(clock.0.get(), record, "{name}: record {outcome:?}");
        }
        assert!(!breaker.would_reject(secs(1), &Counted(Cell::new(0))));
    }
}
