//! Open times, forced states, snapshots.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, CircuitBreaker, TransitionCause, Window};
use stagger_core::guard::{Answer, End};
use stagger_core::{Guard, Instant, Jitter, Outcome, Policy, Ratio, Seed, ServerHint};

use super::support::{FAILED, Harness, five_seconds};
use crate::laws::support::{Start, ks_distance, ks_limit, ms, secs};

fn growing() -> Policy {
    Policy::exponential(secs(1), secs(6)).jitter(Jitter::None).stable_after(secs(60)).build().unwrap()
}

#[test]
fn open_times_grow_until_it_is_stable() {
    let mut harness = Harness::new(five_seconds().consecutive(1).open(growing()));
    harness.call(FAILED);
    for (n, want) in (1..).zip([1, 2, 4, 6, 6]) {
        assert_eq!((harness.rejected(), harness.snapshot().openings), (secs(want), n));
        harness.after(secs(want)).call(FAILED);
    }
    // Closed, but for less than `stable_after`.
    harness.after(secs(6)).call(Outcome::Success);
    harness.after(Duration::from_nanos(59_999_999_999)).call(FAILED);
    assert_eq!(harness.rejected(), secs(6));
    harness.after(secs(6)).call(Outcome::Success);
    harness.after(secs(60)).call(FAILED);
    assert_eq!((harness.rejected(), harness.snapshot().openings), (secs(1), 1));
}

#[test]
fn by_default_it_is_stable_when_closed_as_long_as_open() {
    let open = Policy::exponential(secs(1), secs(60)).jitter(Jitter::None).build().unwrap();
    let mut harness = Harness::new(five_seconds().consecutive(1).open(open));
    harness.call(FAILED);
    harness.after(secs(1)).call(FAILED);
    harness.after(secs(2)).call(Outcome::Success);
    harness.after(ms(1_999)).call(FAILED);
    assert_eq!(harness.rejected(), secs(4));
    harness.after(secs(4)).call(Outcome::Success);
    harness.after(secs(4)).call(FAILED);
    assert_eq!(harness.rejected(), secs(1));
}

/// A Kolmogorov-Smirnov test against the uniform distribution of equal jitter.
#[test]
fn breakers_of_a_fleet_do_not_half_open_in_sync() {
    let open = |seed| {
        let breaker = CircuitBreaker::new(Seed::new(99).for_call(seed));
        (0..5).for_each(|_| breaker.settle(breaker.start(&Instant::ZERO), End::Made(&FAILED), &Instant::ZERO));
        breaker.retry_in(&Instant::ZERO)
    };
    let times: Vec<_> = (0..2_000).map(open).collect();
    assert!(times.iter().all(|time| (ms(2_500)..=secs(5)).contains(time)));
    let share = |nanos: f64| ((nanos - 2.5e9) / 2.5e9).clamp(0.0, 1.0);
    let distance = ks_distance(&times, share, share);
    assert!(distance < ks_limit(2_000), "KS {distance}");
}

/// Otherwise the client with the shortest first draw would always be first.
#[test]
fn the_first_open_time_is_redrawn_once_stable() {
    let open = Policy::exponential(secs(5), secs(60)).jitter(Jitter::Equal).build().unwrap();
    let mut harness = Harness::new(five_seconds().consecutive(1).open(open));
    let mut first = std::collections::HashSet::new();
    for n in 1..=20 {
        harness.call(FAILED);
        let length = harness.rejected();
        assert!(length >= ms(2_500) && length <= secs(5), "{length:?}");
        first.insert(length);
        assert_eq!(first.len(), n);
        harness.after(length).call(Outcome::Success);
        harness.after(secs(60));
    }
}

#[test]
fn a_server_hint_sets_the_open_time() {
    let open = Policy::constant(secs(5)).jitter(Jitter::None).max_hint(secs(100)).build().unwrap();
    for (hint, min, max) in [
        // A minimum, spread so that clients do not synchronize: up to half of it on top, or the delay if that is
        // longer.
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
            let permit = breaker.start(&Instant::ZERO);
            breaker.settle(permit, End::Made(&Outcome::throttled(Some(hint))), &Instant::ZERO);
            let length = breaker.retry_in(&Instant::ZERO);
            assert!(length >= min && length <= max, "{hint:?}: {length:?}");
            lengths.insert(length);
        }
        assert_eq!(lengths.len() > 40, min != max, "{hint:?}: random only if min and max differ");
    }
}

#[test]
fn a_hint_from_a_probe_sets_the_next_open_time() {
    let mut harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    harness.after(secs(5)).call(Outcome::throttled(Some(ServerHint::Reserved(secs(42)))));
    assert_eq!(harness.rejected(), secs(42));
}

#[test]
fn forced_open_rejects_until_reset() {
    let mut harness = Harness::new(five_seconds().consecutive(1));
    let early = harness.permit();
    harness.breaker.force_open(&harness.now);
    assert_eq!((harness.rejected(), harness.breaker.retry_in(&harness.now)), (secs(5), secs(5)));
    assert!(matches!(harness.after(secs(86_400)).admit(), Answer::No { .. }));
    assert!(harness.breaker.would_refuse(secs(86_400), None, &harness.now));
    harness.record(early, Outcome::Success);
    assert_eq!((harness.state(), harness.snapshot().rejections), (BreakerState::ForcedOpen, 2));
    harness.breaker.reset(&harness.now);
    assert_eq!(harness.state(), BreakerState::Closed);
    harness.call(Outcome::Success);
}

#[test]
fn forced_closed_admits_every_call() {
    let harness = Harness::new(five_seconds().consecutive(1));
    harness.breaker.force_closed(&harness.now);
    harness.calls([FAILED; 10]);
    assert_eq!((harness.state(), harness.snapshot().consecutive), (BreakerState::ForcedClosed, 0));
    assert_eq!(harness.breaker.retry_in(&harness.now), Duration::ZERO);
    assert!(!harness.breaker.would_refuse(Duration::ZERO, None, &harness.now));
    harness.breaker.reset(&harness.now);
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Open);
}

#[test]
fn a_reset_clears_counts_and_open_times() {
    let mut harness = Harness::new(five_seconds().consecutive(2).open(growing()));
    harness.calls([FAILED; 2]);
    harness.after(secs(1)).call(FAILED);
    assert_eq!(harness.rejected(), secs(2));
    harness.breaker.force_open(&harness.now);
    let snapshot = harness.snapshot();
    assert_eq!((snapshot.calls, snapshot.failures), (0, 0), "no failures opened it");
    harness.breaker.reset(&harness.now);
    let early = harness.permit();
    harness.call(FAILED);
    harness.breaker.reset(&harness.now);
    harness.record(early, FAILED);
    harness.call(FAILED);
    assert_eq!(harness.state(), BreakerState::Closed, "one failure since the reset");
    harness.call(FAILED);
    assert_eq!(harness.rejected(), secs(1));
}

#[test]
fn a_snapshot_describes_each_transition() {
    let mut harness = Harness::new(five_seconds().consecutive(2));
    let fresh = harness.snapshot();
    assert_eq!((fresh.state, fresh.since, fresh.transitions), (BreakerState::Closed, None, 0));
    harness.call(FAILED);
    assert_eq!(harness.snapshot().consecutive, 1);
    harness.after(secs(1)).call(FAILED);
    let tripped = harness.now;
    harness.after(secs(1)).rejected();
    let open = harness.snapshot();
    assert_eq!((open.state, open.cause, open.since), (BreakerState::Open, TransitionCause::Consecutive, Some(tripped)));
    assert_eq!((open.consecutive, open.rejections, open.transitions, open.openings), (2, 1, 1, 1));
    assert_eq!(open.next_probe, Some(tripped.saturating_add(secs(5))));
    let probe = harness.after(secs(4)).permit();
    let half_open = harness.snapshot();
    assert_eq!(
        (half_open.state, half_open.cause, half_open.probes),
        (BreakerState::HalfOpen, TransitionCause::OpenTime, 1)
    );
    assert_eq!((half_open.since, half_open.next_probe, half_open.transitions), (Some(harness.now), None, 2));
    harness.record(probe, Outcome::Success);
    let closed = harness.snapshot();
    assert_eq!((closed.state, closed.cause, closed.transitions), (BreakerState::Closed, TransitionCause::Probes, 3));
    assert_eq!(harness.breaker.transitions(), 3);
}

/// Counts are stamped with the number of their state, which has few bits and eventually repeats.
#[test]
fn the_window_is_empty_when_state_numbers_repeat() {
    for window in [Window::Calls(10), Window::Time(secs(10))] {
        let half = Ratio::percent(50);
        let harness = Harness::new(five_seconds().failure_ratio(half).window(window).min_calls(4));
        harness.calls([FAILED; 3]);
        (0..4_096).for_each(|_| harness.breaker.reset(&harness.now));
        harness.call(FAILED);
        assert_eq!((harness.state(), harness.snapshot().calls), (BreakerState::Closed, 1), "{window:?}");
    }
}

#[test]
fn debug_output_shows_the_state() {
    let harness = Harness::new(five_seconds().consecutive(1));
    harness.call(FAILED);
    let shown = format!("{:?}", harness.breaker);
    assert!(shown.starts_with("CircuitBreaker { state: Open,") && shown.contains("transitions: 1"), "{shown}");
}
