//! Advice from outside: half of the evidence is enough, and a healthy own view stands against it.

use stagger_core::breaker::{BreakerState, Evidence, TransitionCause, Window};
use stagger_core::{Breaker as _, Outcome, Ratio};

use super::support::{FAILED, Harness, five_seconds};
use crate::laws::support::secs;

fn advised(builder: stagger_core::breaker::CircuitBreakerBuilder) -> Harness {
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
