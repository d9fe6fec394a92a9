//! Concurrent threads on one breaker.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use stagger_core::breaker::{BreakerState, CircuitBreaker, Window};
use stagger_core::guard::{Answer, End, Now};
use stagger_core::{Guard, Instant, Outcome, Ratio, Seed};

use super::support::{FAILED, exactly};
use crate::laws::support::{Start, ms, secs};

/// A clock shared by all threads that advances with every read.
#[derive(Default)]
struct SharedClock(AtomicU64);

impl Now for SharedClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

const THREADS: u64 = 4;

/// The burst invariant: a server that stays down receives only the calls that tripped the breaker, those in flight at
/// the time, and the probes of each open time.
#[test]
fn a_server_that_stays_down_receives_only_probes() {
    const TRIPS: u64 = 5;
    const PROBES: u32 = 3;
    const CALLS: u64 = 50_000;
    let open = ms(1);
    let breaker = CircuitBreaker::builder(Seed::new(3))
        .consecutive(TRIPS as u32)
        .probes(PROBES)
        .open(exactly(open))
        .probe_wait(secs(3_600))
        .build()
        .unwrap();
    let (clock, in_flight, made, cancelled) =
        (SharedClock::default(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (breaker, clock, in_flight, made, cancelled) = (&breaker, &clock, &in_flight, &made, &cancelled);
            scope.spawn(move || {
                for n in 0..CALLS {
                    let Answer::Go(permit) = breaker.first(clock) else { continue };
                    made.fetch_add(1, Ordering::Relaxed);
                    let has_opened = breaker.transitions() > 0;
                    let concurrent = in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                    // Every other thread may have a call of the closed state in flight.
                    assert!(concurrent <= u64::from(PROBES) + THREADS, "{concurrent} at once");
                    let is_cancelled = has_opened && (n + thread) % 3 == 0;
                    cancelled.fetch_add(u64::from(is_cancelled), Ordering::Relaxed);
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    breaker.settle(permit, End::Made(if is_cancelled { &Outcome::Cancelled } else { &FAILED }), clock);
                }
            });
        }
    });
    let down = u128::from(clock.0.load(Ordering::Relaxed));
    let openings = 1 + down / open.as_nanos();
    let max = u128::from(TRIPS + THREADS) + u128::from(PROBES) * openings;
    let made = u128::from(made.load(Ordering::Relaxed) - cancelled.load(Ordering::Relaxed));
    assert!(made <= max, "{made} attempts, but at most {max} allowed");
    assert!(breaker.transitions() > 10, "it half-opened repeatedly");
    // No probe leaked: the breaker still closes.
    let later = Instant::from_nanos(u64::MAX / 2);
    for _ in 0..PROBES {
        breaker.settle(breaker.start(&later), End::Made(&Outcome::Success), &later);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// At most `PROBES` probes are in flight at once, and cancelled probes do not leak.
#[test]
fn half_open_never_exceeds_the_number_of_probes() {
    const PROBES: u64 = 2;
    let breaker = CircuitBreaker::builder(Seed::new(3))
        .consecutive(1)
        .probes(PROBES as u32)
        .open(exactly(ms(1)))
        .probe_wait(secs(3_600))
        .build()
        .unwrap();
    let start = Instant::from_nanos(1);
    breaker.settle(breaker.start(&start), End::Made(&FAILED), &start);
    let later = start.saturating_add(ms(1));
    let (in_flight, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    let Answer::Go(permit) = breaker.first(&later) else { continue };
                    let concurrent = in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(concurrent <= PROBES, "{concurrent} probes at once");
                    admitted.fetch_add(1, Ordering::Relaxed);
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    breaker.settle(permit, End::Made(&Outcome::Cancelled), &later);
                }
            });
        }
    });
    assert!(admitted.into_inner() > 1_000);
    let snapshot = breaker.snapshot(&later);
    assert_eq!((snapshot.state, snapshot.probes, snapshot.calls), (BreakerState::HalfOpen, 0, 0));
}

/// The sums of a window of calls do not drift with concurrent threads: after as many successes as it holds, it contains
/// no failure.
#[test]
fn a_window_of_calls_counts_every_result_once() {
    for size in [2, 3, 17, 1_000] {
        let breaker = CircuitBreaker::builder(Seed::new(3))
            .failure_ratio(Ratio::ONE)
            .slow_ratio(ms(1), Ratio::ONE)
            .window(Window::Calls(size))
            .min_calls(size)
            .build()
            .unwrap();
        let (early, late) = (Instant::from_nanos(1), Instant::from_nanos(2_000_001));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let breaker = &breaker;
                scope.spawn(move || {
                    for n in 0..50_000_u64 {
                        let Answer::Go(permit) = breaker.first(&early) else {
                            breaker.reset(&early);
                            continue;
                        };
                        let outcome = if (n + thread) % 3 == 0 { FAILED } else { Outcome::Success };
                        breaker.settle(permit, End::Made(&outcome), if n % 5 == 0 { &late } else { &early });
                    }
                });
            }
        });
        if breaker.state() != BreakerState::Closed {
            breaker.reset(&early);
        }
        let call = |outcome| breaker.settle(breaker.start(&early), End::Made(&outcome), &early);
        for _ in 0..size {
            call(Outcome::Success);
        }
        let tally =
            |snapshot: stagger_core::breaker::BreakerSnapshot| (snapshot.calls, snapshot.failures, snapshot.slow);
        assert_eq!(tally(breaker.snapshot(&early)), (u64::from(size), 0, 0), "window {size}");
        call(FAILED);
        assert_eq!(tally(breaker.snapshot(&early)), (u64::from(size), 1, 0), "window {size}");
    }
}

#[test]
fn a_window_of_time_counts_every_result_once() {
    const EACH: u64 = 20_000;
    let breaker = CircuitBreaker::builder(Seed::new(3))
        .failure_ratio(Ratio::ONE)
        .window(Window::Time(secs(10)))
        .min_calls(1_000_000)
        .build()
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..EACH {
                    // The last bucket starts while results are counted.
                    let now = Instant::from_nanos(n * 200_000);
                    let outcome = if n % 4 == 0 { FAILED } else { Outcome::Success };
                    breaker.settle(breaker.start(&now), End::Made(&outcome), &now);
                }
            });
        }
    });
    let snapshot = breaker.snapshot(&Instant::from_nanos(EACH * 200_000));
    assert_eq!((snapshot.calls, snapshot.failures), (THREADS * EACH, THREADS * EACH / 4));
}

/// If several threads see the last failure, exactly one of them opens the breaker.
#[test]
fn concurrent_failures_trip_it_exactly_once() {
    for round in 0..2_000 {
        let builder = CircuitBreaker::builder(Seed::new(round));
        let builder = match round % 3 {
            0 => builder.consecutive(THREADS as u32),
            1 => builder.failure_ratio(Ratio::ONE).min_calls(THREADS as u32).window(Window::Calls(THREADS as u32)),
            _ => builder.failure_ratio(Ratio::ONE).min_calls(THREADS as u32).window(Window::Time(secs(10))),
        };
        let breaker = builder.build().unwrap();
        let now = Instant::from_nanos(5);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| breaker.settle(breaker.start(&now), End::Made(&FAILED), &now));
            }
        });
        assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Open, 1), "round {round}");
    }
}
