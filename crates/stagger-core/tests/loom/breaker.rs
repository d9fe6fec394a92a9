//! The circuit breaker.

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;
use stagger_core::breaker::{BreakerState, CircuitBreaker, CircuitBreakerBuilder, Window};
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::{Guard, Instant, Jitter, Outcome, Policy, Ratio, Seed};

use super::support::Start;

const FAILED: Outcome = Outcome::TRANSIENT;
const OPEN: Duration = Duration::from_secs(5);
const EARLY: Instant = Instant::from_nanos(7_000_000_000);

fn late() -> Instant {
    EARLY.saturating_add(OPEN)
}

fn builder() -> CircuitBreakerBuilder {
    let open = Policy::constant(OPEN).jitter(Jitter::None).build().unwrap();
    CircuitBreaker::builder(Seed::new(1)).open(open)
}

fn share(builder: CircuitBreakerBuilder) -> Arc<CircuitBreaker> {
    Arc::new(builder.build().unwrap())
}

/// Creates an open breaker whose open time ends at [`late`].
fn tripped(builder: CircuitBreakerBuilder) -> Arc<CircuitBreaker> {
    let breaker = share(builder.consecutive(1));
    call(&breaker, FAILED, EARLY);
    breaker
}

fn call(breaker: &CircuitBreaker, outcome: Outcome, now: Instant) {
    breaker.settle(breaker.start(&now), End::Made(&outcome), &now);
}

/// Checks every interleaving of the threads of `body`, with at most `preemptions` preemptions.
fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    builder.check(body);
}

fn beside<T: 'static>(
    breaker: &Arc<CircuitBreaker>,
    work: impl FnOnce(&CircuitBreaker) -> T + 'static,
) -> thread::JoinHandle<T> {
    let breaker = breaker.clone();
    thread::spawn(move || work(&breaker))
}

fn count_permits(results: [Option<Permit>; 2]) -> usize {
    results.into_iter().flatten().count()
}

#[test]
fn at_most_one_of_two_callers_is_the_probe() {
    model(None, || {
        let breaker = tripped(builder());
        let other = beside(&breaker, |breaker| breaker.try_start(&late()));
        let mine = breaker.try_start(&late());
        let permits = count_permits([mine, other.join().unwrap()]);
        assert_eq!((permits, breaker.snapshot(&late()).probes), (1, 1));
    });
}

#[test]
fn three_callers_get_at_most_two_probes() {
    model(Some(3), || {
        let breaker = tripped(builder().probes(2));
        let first = breaker.start(&late());
        let other = beside(&breaker, |breaker| breaker.try_start(&late()));
        let mine = breaker.try_start(&late());
        assert_eq!(count_permits([mine, other.join().unwrap()]), 1);
        assert_eq!(breaker.snapshot(&late()).probes, 2);
        breaker.settle(first, End::Made(&Outcome::Cancelled), &late());
    });
}

#[test]
fn a_dropped_probe_is_released_beside_another_caller() {
    model(None, || {
        let breaker = tripped(builder());
        let probe = breaker.start(&late());
        let other = beside(&breaker, |breaker| breaker.try_start(&late()));
        breaker.settle(probe, End::Made(&Outcome::Cancelled), &late());
        let taken = other.join().unwrap().is_some();
        let snapshot = breaker.snapshot(&late());
        assert_eq!((snapshot.state, snapshot.probes), (BreakerState::HalfOpen, u64::from(taken)));
        assert_eq!(breaker.try_start(&late()).is_some(), !taken);
    });
}

#[test]
fn one_failed_probe_of_two_opens_it_once() {
    for other_outcome in [Outcome::Success, FAILED] {
        model(None, move || {
            let breaker = tripped(builder().probes(2));
            let [mine, theirs] = [breaker.start(&late()), breaker.start(&late())];
            let other = beside(&breaker, move |breaker| breaker.settle(theirs, End::Made(&other_outcome), &late()));
            breaker.settle(mine, End::Made(&FAILED), &late());
            other.join().unwrap();
            assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Open, 3));
            assert_eq!(breaker.retry_in(&late()), OPEN);
        });
    }
}

#[test]
fn two_healthy_probes_close_it_once() {
    model(None, || {
        let breaker = tripped(builder().probes(2));
        let [mine, theirs] = [breaker.start(&late()), breaker.start(&late())];
        let other = beside(&breaker, move |breaker| breaker.settle(theirs, End::Made(&Outcome::Success), &late()));
        breaker.settle(mine, End::Made(&Outcome::Success), &late());
        other.join().unwrap();
        assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Closed, 3));
    });
}

/// A caller that sees an open breaker also sees its open time.
#[test]
fn a_breaker_that_just_opened_rejects_every_caller() {
    model(None, || {
        let breaker = share(builder().consecutive(1));
        let permit = breaker.start(&EARLY);
        let other = beside(&breaker, |breaker| match breaker.ask(Ask::FIRST, Permit::NONE, &EARLY) {
            Answer::No { retry_in } => {
                assert!(retry_in == OPEN || retry_in == Duration::from_millis(1), "{retry_in:?}");
                0
            }
            _ => breaker.transitions(),
        });
        breaker.settle(permit, End::Made(&FAILED), &EARLY);
        other.join().unwrap();
        assert_eq!(breaker.ask(Ask::FIRST, Permit::NONE, &EARLY), Answer::No { retry_in: OPEN });
    });
}

#[test]
fn the_second_of_two_concurrent_failures_trips_it() {
    for rule in [
        builder().consecutive(2),
        builder().failure_ratio(Ratio::ONE).min_calls(2).window(Window::Calls(2)),
        builder().failure_ratio(Ratio::ONE).min_calls(2).window(Window::Time(Duration::from_secs(10))),
    ] {
        model(Some(3), move || {
            let breaker = share(rule);
            let other = beside(&breaker, |breaker| {
                if let Some(permit) = breaker.try_start(&EARLY) {
                    breaker.settle(permit, End::Made(&FAILED), &EARLY);
                }
            });
            call(&breaker, FAILED, EARLY);
            other.join().unwrap();
            assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Open, 1));
        });
    }
}

#[test]
fn a_success_that_completes_min_calls_trips_it() {
    for window in [Window::Calls(2), Window::Time(Duration::from_secs(10))] {
        model(None, move || {
            let breaker = share(builder().failure_ratio(Ratio::percent(50)).min_calls(2).window(window));
            let other = beside(&breaker, |breaker| call(breaker, Outcome::Success, EARLY));
            call(&breaker, FAILED, EARLY);
            other.join().unwrap();
            assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Open, 1));
        });
    }
}

/// In a full window of calls, the sums stay equal to the ring, in whatever order the two are updated.
#[test]
fn the_sums_of_a_full_window_of_calls_stay_correct() {
    for size in [1, 2] {
        model(Some(3), move || {
            let breaker = share(
                builder()
                    .failure_ratio(Ratio::percent(100))
                    .slow_ratio(Duration::from_secs(1), Ratio::ONE)
                    .min_calls(2.min(size))
                    .window(Window::Calls(size)),
            );
            for n in 0..size {
                // At least one success, so that the breaker stays closed.
                call(&breaker, if n == 0 && size > 1 { FAILED } else { Outcome::Success }, EARLY);
            }
            let other = beside(&breaker, |breaker| call(breaker, Outcome::Success, EARLY));
            call(&breaker, Outcome::Success, EARLY);
            other.join().unwrap();
            let snapshot = breaker.snapshot(&EARLY);
            assert_eq!((snapshot.calls, snapshot.failures), (u64::from(size), 0), "after {size} successes");
            if size > 1 {
                call(&breaker, FAILED, EARLY);
                call(&breaker, Outcome::Success, EARLY);
                call(&breaker, Outcome::Success, EARLY);
                assert_eq!(breaker.snapshot(&EARLY).failures, 0);
            }
        });
    }
}

/// Two concurrent failures, then as many successes as the window holds.
#[test]
fn failures_leave_a_window_of_calls_in_order() {
    model(Some(3), || {
        let breaker = share(builder().failure_ratio(Ratio::ONE).min_calls(3).window(Window::Calls(3)));
        call(&breaker, Outcome::Success, EARLY);
        let other = beside(&breaker, |breaker| call(breaker, FAILED, EARLY));
        call(&breaker, FAILED, EARLY);
        other.join().unwrap();
        for left in [2, 1, 0] {
            call(&breaker, Outcome::Success, EARLY);
            assert_eq!(breaker.snapshot(&EARLY).failures, left);
        }
    });
}

/// A result recorded while the breaker changes its state and returns to closed is not counted in the new state.
#[test]
fn a_late_result_is_not_counted_in_a_later_state() {
    for window in [Window::Calls(2), Window::Time(Duration::from_secs(10))] {
        model(Some(2), move || {
            let breaker = share(builder().consecutive(9).failure_ratio(Ratio::ONE).min_calls(2).window(window));
            let permit = breaker.start(&EARLY);
            let other = beside(&breaker, move |breaker| breaker.settle(permit, End::Made(&FAILED), &EARLY));
            breaker.reset(&EARLY);
            other.join().unwrap();
            let snapshot = breaker.snapshot(&EARLY);
            assert_eq!((snapshot.calls, snapshot.consecutive), (0, 0));
            call(&breaker, FAILED, EARLY);
            assert_eq!(breaker.state(), BreakerState::Closed);
        });
    }
}

#[test]
fn a_forced_state_is_not_undone_by_a_concurrent_failure() {
    model(None, || {
        let breaker = share(builder().consecutive(1));
        let permit = breaker.start(&EARLY);
        let other = beside(&breaker, move |breaker| breaker.settle(permit, End::Made(&FAILED), &EARLY));
        breaker.force_closed(&EARLY);
        other.join().unwrap();
        assert_eq!(breaker.state(), BreakerState::ForcedClosed);
    });
}

#[test]
fn an_overdue_probe_is_replaced_once() {
    model(Some(3), || {
        let wait = Duration::from_secs(1);
        let breaker = tripped(builder().probe_wait(wait));
        let probe = breaker.start(&late());
        let due = late().saturating_add(wait).saturating_add(OPEN);
        let other = beside(&breaker, move |breaker| breaker.try_start(&due));
        let mine = breaker.try_start(&due);
        assert_eq!(count_permits([mine, other.join().unwrap()]), 1);
        breaker.settle(probe, End::Made(&FAILED), &due);
        assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::HalfOpen, 4));
    });
}

/// All fields of a snapshot describe the same state.
#[test]
fn a_snapshot_during_a_transition_is_consistent() {
    model(Some(3), || {
        let breaker = share(builder().consecutive(1));
        let other = beside(&breaker, |breaker| {
            let snapshot = breaker.snapshot(&EARLY);
            let is_open = snapshot.state == BreakerState::Open;
            assert_eq!(snapshot.transitions, u64::from(is_open));
            assert_eq!((snapshot.openings, snapshot.since.is_some()), (u32::from(is_open), is_open));
        });
        call(&breaker, FAILED, EARLY);
        other.join().unwrap();
    });
}
