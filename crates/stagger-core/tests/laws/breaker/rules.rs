//! The rules that trip the breaker.

use core::cell::Cell;
use core::time::Duration;

use stagger_core::breaker::{
    BreakerState, CircuitBreaker, CircuitBreakerBuilder, CircuitBreakerProblem as Problem, Evidence, TransitionCause,
    Window,
};
use stagger_core::guard::End;
use stagger_core::guard::Now;
use stagger_core::{FailureKind, Guard, Instant, Outcome, Policy, Ratio, Seed};

use super::support::{FAILED, Harness, five_seconds};
use crate::laws::support::{Start, ms, secs};

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
            let permit = breaker.start(&clock);
            assert_eq!(clock.0.replace(0), admit, "{name}: admit");
            breaker.settle(permit, End::Made(&outcome), &clock);
            assert_eq!(clock.0.get(), record, "{name}: record {outcome:?}");
        }
        assert!(!breaker.would_refuse(secs(1), None, &CountingNow(Cell::new(0))));
    }
}

// Advice from outside: half of the evidence is enough, and a healthy own view stands against it.

fn advised(builder: CircuitBreakerBuilder) -> Harness {
    let harness = Harness::new(builder);
    harness.breaker.set_evidence(Evidence::Half);
    harness
}

#[test]
fn half_of_the_failures_in_a_row_are_enough_rounded_up() {
    for (needed, half) in [(1, 1), (2, 1), (5, 3), (6, 3)] {
        let harness = advised(five_seconds().consecutive(needed));
        for failures in 1..=half {
            assert_eq!(harness.state(), BreakerState::Closed, "{failures} of {needed}");
            harness.call(FAILED);
        }
        assert_eq!(harness.state(), BreakerState::Open, "{half} of {needed}");
        let want = if half == needed { TransitionCause::Consecutive } else { TransitionCause::Advised };
        assert_eq!((harness.snapshot().cause, harness.snapshot().consecutive), (want, u64::from(half)));
    }
}

#[test]
fn half_of_the_calls_are_enough_and_the_ratio_stays() {
    let rule = || five_seconds().failure_ratio(Ratio::percent(60)).window(Window::Calls(20)).min_calls(10);
    for (failures, want) in [(3, BreakerState::Open), (2, BreakerState::Closed)] {
        let harness = advised(rule());
        harness.calls((0..5).map(|n| if n < failures { FAILED } else { Outcome::Success }));
        assert_eq!(harness.state(), want, "{failures} of 5");
    }
    // With all the calls the cause is the rule.
    let harness = Harness::new(rule());
    harness.calls((0..9).map(|_| FAILED));
    harness.breaker.set_evidence(Evidence::Half);
    harness.call(FAILED);
    assert_eq!(harness.snapshot().cause, TransitionCause::FailureRatio);
}

#[test]
fn advice_never_opens_a_breaker_whose_own_calls_succeed() {
    let ratio = five_seconds().failure_ratio(Ratio::percent(50)).min_calls(10);
    for builder in [five_seconds().consecutive(5), ratio] {
        let harness = advised(builder);
        for _ in 0..1_000 {
            // A third of the calls fail, and never three in a row.
            harness.calls([Outcome::Success, FAILED, Outcome::Success]);
        }
        assert_eq!((harness.state(), harness.breaker.transitions()), (BreakerState::Closed, 0));
    }
}

#[test]
fn evidence_that_is_already_there_opens_the_breaker_with_the_next_failure() {
    let harness = Harness::new(five_seconds().consecutive(5));
    harness.calls([FAILED, FAILED, FAILED, FAILED]);
    harness.breaker.set_evidence(Evidence::Half);
    assert_eq!(harness.state(), BreakerState::Closed, "advice alone changes nothing");
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Open);
}

#[test]
fn advice_that_ends_is_as_if_there_had_been_none() {
    let mut harness = advised(five_seconds().consecutive(4));
    assert!(!harness.breaker.is_at_rest(&harness.now), "a new breaker has no advice");
    harness.call(FAILED);
    harness.breaker.set_evidence(Evidence::Full);
    harness.calls([FAILED, FAILED]);
    assert_eq!((harness.state(), harness.snapshot().evidence), (BreakerState::Closed, Evidence::Full));
    harness.call(FAILED);
    assert_eq!((harness.state(), harness.snapshot().cause), (BreakerState::Open, TransitionCause::Consecutive));
    // It says nothing about probes.
    harness.breaker.set_evidence(Evidence::Half);
    harness.after(secs(5)).call(Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
    assert_eq!(harness.breaker.fresh().unwrap().evidence(), Evidence::Full);
}

// Invalid breaker settings are rejected.

fn problems(builder: CircuitBreakerBuilder) -> Vec<Problem> {
    builder.build().err().map_or(Vec::new(), |error| error.problems().collect())
}

#[test]
fn every_problem_is_detected() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::percent(50));
    let streak = || builder().consecutive(5);
    for (builder, want) in [
        (builder(), Problem::NoRule),
        (builder().consecutive(0), Problem::NoFailure),
        (builder().failure_ratio(Ratio::ZERO), Problem::Ratio),
        (builder().failure_ratio(Ratio::percent(101)), Problem::Ratio),
        (builder().slow_ratio(secs(1), Ratio::ZERO), Problem::Ratio),
        (builder().slow_ratio(Duration::ZERO, Ratio::ONE), Problem::SlowAfter),
        (builder().slow_ratio(secs(86_401), Ratio::ONE), Problem::SlowAfter),
        (ratio().window(Window::Calls(0)), Problem::Window),
        (ratio().window(Window::Calls(1_001)), Problem::Window),
        (ratio().window(Window::Time(ms(99))), Problem::Window),
        (ratio().window(Window::Time(Duration::MAX)), Problem::Window),
        (ratio().min_calls(0), Problem::MinCalls),
        (ratio().min_calls(101), Problem::MinCalls),
        (streak().min_calls(5), Problem::NothingToCount),
        (streak().window(Window::Calls(5)), Problem::NothingToCount),
        (streak().open(Policy::stop().build().unwrap()), Problem::OpenTime),
        (streak().open(Policy::zero().build().unwrap()), Problem::OpenTime),
        // Full jitter can draw 0.
        (streak().open(Policy::exponential(secs(1), secs(9)).build().unwrap()), Problem::OpenTime),
        (streak().open(Policy::list(&[secs(1), Duration::ZERO]).build().unwrap()), Problem::OpenTime),
        (streak().probes(0), Problem::Probes),
        (streak().probes(10_001), Problem::Probes),
        (streak().probes(2).healthy_probes(3), Problem::Probes),
        (streak().healthy_probes(0), Problem::Probes),
        (streak().probe_wait(Duration::ZERO), Problem::ProbeWait),
    ] {
        assert_eq!(problems(builder), [want], "{builder:?}");
    }
}

#[test]
fn the_error_lists_every_problem_with_a_fix() {
    let error = CircuitBreaker::builder(Seed::new(1)).probes(0).probe_wait(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.problems().collect::<Vec<_>>(), [Problem::NoRule, Problem::Probes, Problem::ProbeWait]);
    assert_eq!(
        error.to_string(),
        "no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio; probes 0 with \
         healthy_probes 0 is outside the range: use 1 to 10000 probes, and 1 to all of them healthy; probe_wait is \
         0s, so no probe could return in time: raise it"
    );
}

#[test]
fn the_bounds_of_every_range_are_accepted() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::millionths(1));
    for builder in [
        builder().consecutive(u32::MAX),
        ratio().window(Window::Calls(1)),
        ratio().window(Window::Calls(1_000)).min_calls(1_000),
        ratio().window(Window::Time(ms(100))).min_calls(u32::MAX),
        ratio().window(Window::Time(secs(86_400))),
        builder().slow_ratio(secs(86_400), Ratio::ONE),
        builder().consecutive(1).probes(10_000).healthy_probes(1).probe_wait(Duration::MAX),
        builder().consecutive(1).open(Policy::exponential(secs(1), secs(9)).floor(ms(1)).build().unwrap()),
    ] {
        assert_eq!(problems(builder), [], "{builder:?}");
    }
}
