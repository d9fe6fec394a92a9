//! The half-open state and its probes.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, TransitionCause};
use stagger_core::{Guard, Jitter, Outcome, Policy, Ratio};

use super::support::{FAILED, Harness, five_seconds};
use crate::laws::support::{ms, secs};

/// Creates a breaker that can half-open: one failure tripped it, and its open time has elapsed.
fn half_open(builder: stagger_core::breaker::CircuitBreakerBuilder) -> Harness {
    let mut harness = Harness::new(builder.consecutive(1));
    harness.call(FAILED);
    harness.after(secs(5));
    harness
}

#[test]
fn it_admits_the_set_number_of_probes_and_closes_if_healthy() {
    let harness = half_open(five_seconds().probes(3));
    let probes = [harness.permit(), harness.permit(), harness.permit()];
    harness.rejected();
    assert_eq!((harness.state(), harness.snapshot().probes), (BreakerState::HalfOpen, 3));
    for probe in probes {
        assert_eq!(harness.state(), BreakerState::HalfOpen);
        // A recorded result does not allow another probe.
        harness.rejected();
        harness.record(probe, Outcome::Success);
    }
    assert_eq!((harness.state(), harness.snapshot().cause), (BreakerState::Closed, TransitionCause::Probes));
}

#[test]
fn the_first_failed_probe_opens_it_and_the_rest_are_ignored() {
    let harness = half_open(five_seconds().probes(3));
    let [first, second, third] = [harness.permit(), harness.permit(), harness.permit()];
    harness.record(first, Outcome::Success);
    harness.record(second, FAILED);
    assert_eq!((harness.state(), harness.rejected()), (BreakerState::Open, secs(5)));
    let transitions = harness.breaker.transitions();
    harness.record(third, FAILED);
    assert_eq!(harness.breaker.transitions(), transitions);
}

#[test]
fn some_probes_may_fail_if_healthy_probes_is_lower() {
    let script = |outcomes: &[Outcome]| {
        let harness = half_open(five_seconds().probes(5).healthy_probes(3));
        harness.calls(outcomes.iter().copied());
        harness.state()
    };
    let good = Outcome::Success;
    assert_eq!(script(&[FAILED, good, FAILED, good]), BreakerState::HalfOpen);
    assert_eq!(script(&[FAILED, good, FAILED, good, good]), BreakerState::Closed);
    assert_eq!(script(&[good, good, good]), BreakerState::Closed);
    assert_eq!(script(&[FAILED, good, FAILED, FAILED]), BreakerState::Open);
}

/// Polly closes on a cancelled probe; resilience4j lost the probe's permit.
#[test]
fn footgun_19_a_cancelled_probe_is_neutral_and_is_released() {
    let harness = half_open(five_seconds().probes(1));
    for outcome in [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Cancelled] {
        let probe = harness.permit();
        harness.rejected();
        harness.record(probe, outcome);
        assert_eq!(
            (harness.state(), harness.snapshot().probes, harness.snapshot().calls),
            (BreakerState::HalfOpen, 0, 0)
        );
    }
    harness.call(Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
}

#[test]
fn a_slow_probe_counts_as_a_failed_one() {
    let mut harness = half_open(five_seconds().slow_ratio(secs(1), Ratio::ONE));
    harness.long_call(ms(1_001), Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Open);
    harness.after(secs(5)).long_call(secs(1), Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
}

#[test]
fn footgun_23_a_leaked_probe_does_not_block_the_breaker() {
    let mut harness = half_open(five_seconds().probes(2).probe_wait(secs(30)));
    let leaked = [harness.permit(), harness.after(secs(10)).permit()];
    // The wait starts at the last probe.
    harness.after(Duration::from_nanos(29_999_999_999)).rejected();
    assert_eq!(harness.state(), BreakerState::HalfOpen);
    // The breaker opened at the time the probes were due, although the next call comes a second later.
    assert_eq!(harness.after(Duration::from_nanos(1_000_000_001)).rejected(), secs(4));
    assert_eq!((harness.state(), harness.snapshot().cause), (BreakerState::Open, TransitionCause::ProbeWait));
    let probes = [harness.after(secs(4)).permit(), harness.permit()];
    for late in leaked {
        harness.record(late, FAILED);
        assert_eq!((harness.state(), harness.snapshot().probes), (BreakerState::HalfOpen, 2));
    }
    probes.into_iter().for_each(|probe| harness.record(probe, Outcome::Success));
    assert_eq!(harness.state(), BreakerState::Closed);
}

#[test]
fn without_a_probe_in_flight_none_is_overdue() {
    let mut harness = half_open(five_seconds().probes(1));
    harness.call(Outcome::Cancelled);
    harness.after(secs(3_600));
    assert_eq!(harness.breaker.retry_in(&harness.now), Duration::ZERO);
    let transitions = harness.breaker.transitions();
    harness.permit();
    assert_eq!((harness.state(), harness.breaker.transitions()), (BreakerState::HalfOpen, transitions));
}

#[test]
fn a_probe_overdue_past_the_open_time_is_replaced_at_once() {
    let mut harness = half_open(five_seconds().probe_wait(secs(30)));
    let _leaked = harness.permit();
    harness.after(secs(35));
    assert_eq!(harness.breaker.retry_in(&harness.now), Duration::ZERO);
    harness.permit();
    assert_eq!((harness.state(), harness.snapshot().transitions), (BreakerState::HalfOpen, 4));
}

#[test]
fn a_late_probe_counts_if_no_call_came_before_it() {
    let mut harness = half_open(five_seconds().probe_wait(secs(30)));
    let probe = harness.permit();
    harness.after(secs(31)).record(probe, Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
}

/// The result of a call admitted in an earlier state says nothing about the server now.
#[test]
fn late_results_of_an_earlier_state_are_ignored() {
    let mut harness = Harness::new(five_seconds().consecutive(1).probes(2));
    let early = [harness.permit(), harness.permit(), harness.permit()];
    harness.call(FAILED);
    let [a, b, c] = early;
    harness.record(a, Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Open);
    let probe = harness.after(secs(5)).permit();
    harness.record(b, FAILED);
    harness.record(c, Outcome::Success);
    assert_eq!((harness.state(), harness.snapshot().calls), (BreakerState::HalfOpen, 0));
    harness.record(probe, Outcome::Success);
    harness.call(Outcome::Success);
    assert_eq!(harness.state(), BreakerState::Closed);
}

/// The wait equals the time that the probe has taken so far, so a call does not wait for minutes on a probe that takes
/// milliseconds.
#[test]
fn a_call_during_a_probe_gets_a_short_retry_in() {
    let mut harness = half_open(five_seconds().probe_wait(secs(30)));
    let _leaked = harness.permit();
    for (passed, want) in [(0, 1), (40, 40), (1_000, 1_040), (20_000, 8_960), (8_959, 1)] {
        assert_eq!(harness.after(ms(passed)).rejected(), ms(want));
        assert_eq!(harness.breaker.retry_in(&harness.now), ms(want));
        assert!(harness.breaker.would_refuse(Duration::ZERO, None, &harness.now));
        assert!(!harness.breaker.would_refuse(ms(1), None, &harness.now), "the probe may have completed by then");
    }
}

/// `retry_in` and `would_refuse` return what a call would get.
#[test]
fn an_overdue_probe_predicts_the_next_open_time() {
    let open = Policy::exponential(secs(5), secs(60)).jitter(Jitter::None).build().unwrap();
    let mut harness = half_open(five_seconds().open(open).probe_wait(secs(30)));
    let _leaked = harness.permit();
    harness.after(secs(31));
    assert_eq!(harness.breaker.retry_in(&harness.now), secs(9));
    assert!(
        harness.breaker.would_refuse(ms(8_999), None, &harness.now)
            && !harness.breaker.would_refuse(secs(9), None, &harness.now)
    );
    assert_eq!(harness.state(), BreakerState::HalfOpen, "the predictions do not change the state");
    assert_eq!(harness.rejected(), secs(9));
}

#[test]
fn a_permit_recorded_twice_does_not_free_another_probe() {
    let harness = half_open(five_seconds().probes(2));
    let probe = harness.permit();
    let again = stagger_core::guard::Permit(probe.0);
    harness.record(probe, Outcome::Cancelled);
    harness.record(again, Outcome::Cancelled);
    let _probes = (harness.permit(), harness.permit());
    harness.rejected();
}
