//! Open times, forced states, observation, reports.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::{Breaker, Instant, Jitter, Outcome, Policy, Ratio, Seed, ServerHint, guard::Enforcement};

use super::support::{Bench, FAILED, five_seconds};
use crate::laws::support::{ks_distance, ks_limit, ms, secs};

fn growing() -> Policy {
    Policy::exponential(secs(1), secs(6)).jitter(Jitter::None).stable_after(secs(60)).build().unwrap()
}

#[test]
fn open_times_grow_until_it_has_been_healthy() {
    let mut bench = Bench::new(five_seconds().consecutive(1).open(growing()));
    bench.call(FAILED);
    for (n, want) in (1..).zip([1, 2, 4, 6, 6]) {
        assert_eq!((bench.refused(), bench.snapshot().openings), (secs(want), n));
        bench.after(secs(want)).call(FAILED);
    }
    // Closed, but not for long enough.
    bench.after(secs(6)).call(Outcome::Success);
    bench.after(Duration::from_nanos(59_999_999_999)).call(FAILED);
    assert_eq!(bench.refused(), secs(6));
    bench.after(secs(6)).call(Outcome::Success);
    bench.after(secs(60)).call(FAILED);
    assert_eq!((bench.refused(), bench.snapshot().openings), (secs(1), 1));
}

#[test]
fn without_a_time_of_its_own_it_is_healthy_when_it_was_closed_as_long_as_it_was_open() {
    let open = Policy::exponential(secs(1), secs(60)).jitter(Jitter::None).build().unwrap();
    let mut bench = Bench::new(five_seconds().consecutive(1).open(open));
    bench.call(FAILED);
    bench.after(secs(1)).call(FAILED);
    bench.after(secs(2)).call(Outcome::Success);
    bench.after(ms(1_999)).call(FAILED);
    assert_eq!(bench.refused(), secs(4));
    bench.after(secs(4)).call(Outcome::Success);
    bench.after(secs(4)).call(FAILED);
    assert_eq!(bench.refused(), secs(1));
}

/// Kolmogorov and Smirnov against the uniform distribution that equal jitter promises.
#[test]
fn a_fleets_breakers_do_not_come_back_in_step() {
    let open = |seed| {
        let breaker = CircuitBreaker::new(Seed::new(99).for_call(seed));
        (0..5).for_each(|_| breaker.record(breaker.admit(&Instant::ZERO).unwrap(), &FAILED, &Instant::ZERO));
        breaker.retry_in(&Instant::ZERO)
    };
    let times: Vec<_> = (0..2_000).map(open).collect();
    assert!(times.iter().all(|time| (ms(2_500)..=secs(5)).contains(time)));
    let share = |nanos: f64| ((nanos - 2.5e9) / 2.5e9).clamp(0.0, 1.0);
    let distance = ks_distance(&times, share, share);
    assert!(distance < ks_limit(2_000), "KS {distance}");
}

/// Or the client whose first draw is short would be first every time.
#[test]
fn after_it_was_healthy_the_first_open_time_is_drawn_anew() {
    let open = Policy::exponential(secs(5), secs(60)).jitter(Jitter::Equal).build().unwrap();
    let mut bench = Bench::new(five_seconds().consecutive(1).open(open));
    let mut first = std::collections::HashSet::new();
    for n in 1..=20 {
        bench.call(FAILED);
        let length = bench.refused();
        assert!(length >= ms(2_500) && length <= secs(5), "{length:?}");
        first.insert(length);
        assert_eq!(first.len(), n);
        bench.after(length).call(Outcome::Success);
        bench.after(secs(60));
    }
}

#[test]
fn the_servers_hint_is_the_open_time() {
    let open = Policy::constant(secs(5)).jitter(Jitter::None).max_hint(secs(100)).build().unwrap();
    for (hint, least, most) in [
        // A floor, and never a rendezvous: up to half of it on top, or the delay if that is longer.
        (ServerHint::AtLeast(secs(60)), secs(60), secs(90)),
        (ServerHint::AtLeast(secs(2)), secs(2), secs(7)),
        (ServerHint::Reserved(secs(20)), secs(20), secs(20)),
        (ServerHint::AtLeast(secs(86_400)), secs(100), secs(150)),
        (ServerHint::Reserved(secs(86_400)), secs(100), secs(100)),
        (ServerHint::DoNotRetry, secs(5), secs(5)),
    ] {
        let mut lengths = std::collections::HashSet::new();
        for seed in 0..50 {
            let breaker = CircuitBreaker::builder(Seed::new(seed)).consecutive(1).open(open).build().unwrap();
            let pass = breaker.admit(&Instant::ZERO).unwrap();
            breaker.record(pass, &Outcome::throttled(Some(hint)), &Instant::ZERO);
            let length = breaker.retry_in(&Instant::ZERO);
            assert!(length >= least && length <= most, "{hint:?}: {length:?}");
            lengths.insert(length);
        }
        assert_eq!(lengths.len() > 40, least != most, "{hint:?}: drawn, or not");
    }
}

#[test]
fn the_hint_of_a_probe_is_the_next_open_time() {
    let mut bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    bench.after(secs(5)).call(Outcome::throttled(Some(ServerHint::Reserved(secs(42)))));
    assert_eq!(bench.refused(), secs(42));
}

#[test]
fn forced_open_it_refuses_until_it_is_told_otherwise() {
    let mut bench = Bench::new(five_seconds().consecutive(1));
    let early = bench.pass();
    bench.breaker.force_open(&bench.now);
    assert_eq!((bench.refused(), bench.breaker.retry_in(&bench.now)), (secs(5), secs(5)));
    assert!(bench.after(secs(86_400)).admit().is_err());
    assert!(bench.breaker.would_reject(secs(86_400), &bench.now));
    bench.record(early, Outcome::Success);
    assert_eq!((bench.state(), bench.snapshot().rejections), (BreakerState::ForcedOpen, 2));
    bench.breaker.reset(&bench.now);
    assert_eq!(bench.state(), BreakerState::Closed);
    bench.call(Outcome::Success);
}

#[test]
fn forced_closed_it_is_off() {
    let bench = Bench::new(five_seconds().consecutive(1));
    bench.breaker.force_closed(&bench.now);
    bench.calls([FAILED; 10]);
    assert_eq!((bench.state(), bench.snapshot().consecutive), (BreakerState::ForcedClosed, 0));
    assert_eq!(bench.breaker.retry_in(&bench.now), Duration::ZERO);
    assert!(!bench.breaker.would_reject(Duration::ZERO, &bench.now));
    bench.breaker.reset(&bench.now);
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::Open);
}

#[test]
fn a_reset_begins_everything_again() {
    let mut bench = Bench::new(five_seconds().consecutive(2).open(growing()));
    bench.calls([FAILED; 2]);
    bench.after(secs(1)).call(FAILED);
    assert_eq!(bench.refused(), secs(2));
    bench.breaker.reset(&bench.now);
    let early = bench.pass();
    bench.call(FAILED);
    bench.breaker.reset(&bench.now);
    bench.record(early, FAILED);
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::Closed, "one failure since the reset");
    bench.call(FAILED);
    assert_eq!(bench.refused(), secs(1));
}

#[test]
fn observing_it_refuses_nothing_and_tells_what_it_would_have_refused() {
    let mut bench = Bench::new(five_seconds().consecutive(2));
    bench.breaker.set_enforcement(Enforcement::Observed);
    bench.calls([FAILED; 2]);
    // Open, but every call passes, and says nothing to the breaker.
    bench.calls([Outcome::Success, FAILED, Outcome::Success]);
    assert_eq!((bench.state(), bench.breaker.retry_in(&bench.now)), (BreakerState::Open, Duration::ZERO));
    assert!(!bench.breaker.would_reject(Duration::ZERO, &bench.now));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.rejections, snapshot.would_have_rejected), (0, 3));
    assert_eq!(snapshot.enforcement, Enforcement::Observed);
    // The states follow as if it were kept to: one probe, and the call beside it does not count.
    let probe = bench.after(secs(5)).pass();
    bench.call(FAILED);
    assert_eq!(bench.state(), BreakerState::HalfOpen);
    bench.record(probe, Outcome::Success);
    assert_eq!(bench.state(), BreakerState::Closed);
    // And back.
    bench.breaker.set_enforcement(Enforcement::Enforced);
    bench.calls([FAILED; 2]);
    bench.refused();
    assert_eq!((bench.snapshot().rejections, bench.snapshot().would_have_rejected), (1, 4));
}

#[test]
fn turned_off_it_refuses_nothing_and_counts_no_refusals() {
    let bench = Bench::new(five_seconds().consecutive(2));
    // As it is moved by who knows the trait alone.
    (&bench.breaker as &dyn Breaker).set_enforcement(Enforcement::Off);
    bench.calls([FAILED; 2]);
    assert_eq!((bench.state(), bench.breaker.enforcement()), (BreakerState::Open, Enforcement::Off));
    bench.calls([FAILED, Outcome::Success]);
    assert_eq!(bench.breaker.retry_in(&bench.now), Duration::ZERO);
    assert_eq!((bench.snapshot().rejections, bench.snapshot().would_have_rejected), (0, 0));
    // It has kept its state meanwhile.
    bench.breaker.set_enforcement(Enforcement::Enforced);
    assert_eq!(bench.refused(), secs(5));
}

#[test]
fn a_snapshot_tells_each_change_of_state() {
    let mut bench = Bench::new(five_seconds().consecutive(2));
    let fresh = bench.snapshot();
    assert_eq!((fresh.state, fresh.since, fresh.transitions), (BreakerState::Closed, None, 0));
    bench.call(FAILED);
    assert_eq!(bench.snapshot().consecutive, 1);
    bench.after(secs(1)).call(FAILED);
    let tripped = bench.now;
    bench.after(secs(1)).refused();
    let open = bench.snapshot();
    assert_eq!((open.state, open.cause, open.since), (BreakerState::Open, TransitionCause::Consecutive, Some(tripped)));
    assert_eq!((open.consecutive, open.rejections, open.transitions, open.openings), (2, 1, 1, 1));
    assert_eq!(open.next_probe, Some(tripped.saturating_add(secs(5))));
    let probe = bench.after(secs(4)).pass();
    let half_open = bench.snapshot();
    assert_eq!(
        (half_open.state, half_open.cause, half_open.probes),
        (BreakerState::HalfOpen, TransitionCause::OpenTime, 1)
    );
    assert_eq!((half_open.since, half_open.next_probe, half_open.transitions), (Some(bench.now), None, 2));
    bench.record(probe, Outcome::Success);
    let closed = bench.snapshot();
    assert_eq!((closed.state, closed.cause, closed.transitions), (BreakerState::Closed, TransitionCause::Probes, 3));
    assert_eq!(bench.breaker.transitions(), 3);
}

/// What is counted is stamped with its state's number, of a few bits; sooner or later that comes again.
#[test]
fn a_closed_state_begins_with_an_empty_window_however_many_there_were() {
    for window in [Window::Calls(10), Window::Time(secs(10))] {
        let half = Ratio::percent(50);
        let bench = Bench::new(five_seconds().failure_ratio(half).window(window).min_calls(4));
        bench.calls([FAILED; 3]);
        (0..4_096).for_each(|_| bench.breaker.reset(&bench.now));
        bench.call(FAILED);
        assert_eq!((bench.state(), bench.snapshot().calls), (BreakerState::Closed, 1), "{window:?}");
    }
}

#[test]
fn in_a_log_it_shows_its_state() {
    let bench = Bench::new(five_seconds().consecutive(1));
    bench.call(FAILED);
    let shown = format!("{:?}", bench.breaker);
    assert!(shown.starts_with("CircuitBreaker { state: Open,") && shown.contains("transitions: 1"), "{shown}");
}
