//! Half-open.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, TransitionCause};
use stagger_core::{Breaker, Jitter, Outcome, Policy, Ratio};

use super::support::{Bench, FAILED, five_seconds};
use crate::laws::support::{ms, secs};

/// Half-open after one failure and the open time.
fn half_open(builder: stagger_core::breaker::CircuitBreakerBuilder) -> Bench {
    let mut bench = Bench::new(builder.consecutive(1));
    bench.call(FAILED);
    bench.after(secs(5));
    bench
}

#[test]
fn it_lets_as_many_probes_pass_as_asked_for_and_closes_when_all_are_healthy() {
    let bench = half_open(five_seconds().probes(3));
    let probes = [bench.pass(), bench.pass(), bench.pass()];
    bench.refused();
    assert_eq!((bench.state(), bench.snapshot().probes), (BreakerState::HalfOpen, 3));
    for probe in probes {
        assert_eq!(bench.state(), BreakerState::HalfOpen);
        // A result does not make room for another probe.
        bench.refused();
        bench.record(probe, Outcome::Success);
    }
    assert_eq!((bench.state(), bench.snapshot().cause), (BreakerState::Closed, TransitionCause::Probes));
}

#[test]
fn the_first_ailing_probe_opens_it_and_the_others_count_no_more() {
    let bench = half_open(five_seconds().probes(3));
    let [first, second, third] = [bench.pass(), bench.pass(), bench.pass()];
    bench.record(first, Outcome::Success);
    bench.record(second, FAILED);
    assert_eq!((bench.state(), bench.refused()), (BreakerState::Open, secs(5)));
    let transitions = bench.breaker.transitions();
    bench.record(third, FAILED);
    assert_eq!(bench.breaker.transitions(), transitions);
}

#[test]
fn some_probes_may_find_it_ailing_if_not_all_have_to_be_healthy() {
    let script = |outcomes: &[Outcome]| {
        let bench = half_open(five_seconds().probes(5).healthy_probes(3));
        bench.calls(outcomes.iter().copied());
        bench.state()
    };
    let good = Outcome::Success;
    assert_eq!(script(&[FAILED, good, FAILED, good]), BreakerState::HalfOpen);
    assert_eq!(script(&[FAILED, good, FAILED, good, good]), BreakerState::Closed);
    assert_eq!(script(&[good, good, good]), BreakerState::Closed);
    assert_eq!(script(&[FAILED, good, FAILED, FAILED]), BreakerState::Open);
}

/// Polly closes on a cancelled probe; resilience4j's place was lost with it.
#[test]
fn footgun_19_a_cancelled_probe_is_neither_and_gives_its_place_back() {
    let bench = half_open(five_seconds().probes(1));
    for outcome in [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Cancelled] {
        let probe = bench.pass();
        bench.refused();
        bench.record(probe, outcome);
        assert_eq!((bench.state(), bench.snapshot().probes, bench.snapshot().calls), (BreakerState::HalfOpen, 0, 0));
    }
    bench.call(Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn a_slow_probe_has_found_the_server_ailing() {
    let mut bench = half_open(five_seconds().slow_ratio(secs(1), Ratio::ONE));
    bench.long_call(ms(1_001), Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Open);
    bench.after(secs(5)).long_call(secs(1), Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn footgun_23_a_leaked_probe_cannot_stick_it() {
    let mut bench = half_open(five_seconds().probes(2).probe_wait(secs(30)));
    let leaked = [bench.pass(), bench.after(secs(10)).pass()];
    // The wait is counted from the last of them.
    bench.after(Duration::from_nanos(29_999_999_999)).refused();
    assert_eq!(bench.state(), BreakerState::HalfOpen);
    // Overdue, it opened when they were due, though the first who looks comes a second later.
    assert_eq!(bench.after(Duration::from_nanos(1_000_000_001)).refused(), secs(4));
    assert_eq!((bench.state(), bench.snapshot().cause), (BreakerState::Open, TransitionCause::ProbeWait));
    let probes = [bench.after(secs(4)).pass(), bench.pass()];
    for late in leaked {
        bench.record(late, FAILED);
        assert_eq!((bench.state(), bench.snapshot().probes), (BreakerState::HalfOpen, 2));
    }
    probes.into_iter().for_each(|probe| bench.record(probe, Outcome::Success));
    assert_eq!(bench.state(), BreakerState::Closed);
}

#[test]
fn without_a_probe_on_its_way_none_is_overdue() {
    let mut bench = half_open(five_seconds().probes(1));
    bench.call(Outcome::Cancelled);
    bench.after(secs(3_600));
    assert_eq!(bench.breaker.retry_in(&bench.now), Duration::ZERO);
    let transitions = bench.breaker.transitions();
    bench.pass();
    assert_eq!((bench.state(), bench.breaker.transitions()), (BreakerState::HalfOpen, transitions));
}

#[test]
fn a_probe_that_is_overdue_for_longer_than_the_open_time_makes_room_at_once() {
    let mut bench = half_open(five_seconds().probe_wait(secs(30)));
    let _leaked = bench.pass();
    bench.after(secs(35));
    assert_eq!(bench.breaker.retry_in(&bench.now), Duration::ZERO);
    bench.pass();
    assert_eq!((bench.state(), bench.snapshot().transitions), (BreakerState::HalfOpen, 4));
}

#[test]
fn a_late_probe_counts_unless_somebody_asked_before() {
    let mut bench = half_open(five_seconds().probe_wait(secs(30)));
    let probe = bench.pass();
    bench.after(secs(31)).record(probe, Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
}

/// What came of a call that was let pass before says nothing about the server now.
#[test]
fn a_late_result_of_an_earlier_state_does_not_count() {
    let mut bench = Bench::new(five_seconds().consecutive(1).probes(2));
    let early = [bench.pass(), bench.pass(), bench.pass()];
    bench.call(FAILED);
    let [a, b, c] = early;
    bench.record(a, Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Open);
    let probe = bench.after(secs(5)).pass();
    bench.record(b, FAILED);
    bench.record(c, Outcome::Success);
    assert_eq!((bench.state(), bench.snapshot().calls), (BreakerState::HalfOpen, 0));
    bench.record(probe, Outcome::Success);
    bench.call(Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
}

/// "As long again as the probe has taken so far": nobody waits for minutes because a probe takes milliseconds.
#[test]
fn a_call_beside_the_probe_is_told_to_come_back_soon() {
    let mut bench = half_open(five_seconds().probe_wait(secs(30)));
    let _leaked = bench.pass();
    for (passed, want) in [(0, 1), (40, 40), (1_000, 1_040), (20_000, 8_960), (8_959, 1)] {
        assert_eq!(bench.after(ms(passed)).refused(), ms(want));
        assert_eq!(bench.breaker.retry_in(&bench.now), ms(want));
        assert!(bench.breaker.would_reject(Duration::ZERO, &bench.now));
        assert!(!bench.breaker.would_reject(ms(1), &bench.now), "the probe may be back by then");
    }
}

/// Open and overdue, the peeks say what asking would.
#[test]
fn peeks_of_an_overdue_probe_tell_the_open_time_that_follows() {
    let open = Policy::exponential(secs(5), secs(60)).jitter(Jitter::None).build().unwrap();
    let mut bench = half_open(five_seconds().open(open).probe_wait(secs(30)));
    let _leaked = bench.pass();
    bench.after(secs(31));
    assert_eq!(bench.breaker.retry_in(&bench.now), secs(9));
    assert!(bench.breaker.would_reject(ms(8_999), &bench.now) && !bench.breaker.would_reject(secs(9), &bench.now));
    assert_eq!(bench.state(), BreakerState::HalfOpen, "a peek changes nothing");
    assert_eq!(bench.refused(), secs(9));
}

#[test]
fn a_pass_that_is_recorded_twice_takes_no_place_of_another() {
    let bench = half_open(five_seconds().probes(2));
    let probe = bench.pass();
    let again = stagger_core::guard::BreakerPermit(probe.0);
    bench.record(probe, Outcome::Cancelled);
    bench.record(again, Outcome::Cancelled);
    let _places = (bench.pass(), bench.pass());
    bench.refused();
}
