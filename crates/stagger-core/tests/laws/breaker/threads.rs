//! Real threads on one breaker.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use stagger_core::breaker::{BreakerState, CircuitBreaker, Window};
use stagger_core::{Breaker, Instant, Outcome, Ratio, Seed, guard::Now};

use super::support::{FAILED, exactly};
use crate::laws::support::{ms, secs};

/// A clock that all threads share, and that each reading moves on.
#[derive(Default)]
struct Shared(AtomicU64);

impl Now for Shared {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

const THREADS: u64 = 4;

/// The burst invariant: of a server that stays down nobody asks for more than the calls that tripped it, those that
/// were on their way, and the probes of each open time.
#[test]
fn of_a_server_that_stays_down_only_the_probes_ask() {
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
    let (clock, flying, made, cancelled) = (Shared::default(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (breaker, clock, flying, made, cancelled) = (&breaker, &clock, &flying, &made, &cancelled);
            scope.spawn(move || {
                for n in 0..CALLS {
                    let Ok(pass) = breaker.admit(clock) else { continue };
                    made.fetch_add(1, Ordering::Relaxed);
                    let has_opened = breaker.transitions() > 0;
                    let with_me = flying.fetch_add(1, Ordering::SeqCst) + 1;
                    // A call of the closed state may be on its way in every other thread.
                    assert!(with_me <= u64::from(PROBES) + THREADS, "{with_me} at once");
                    let is_cancelled = has_opened && (n + thread) % 3 == 0;
                    cancelled.fetch_add(u64::from(is_cancelled), Ordering::Relaxed);
                    flying.fetch_sub(1, Ordering::SeqCst);
                    breaker.record(pass, if is_cancelled { &Outcome::Cancelled } else { &FAILED }, clock);
                }
            });
        }
    });
    let down = u128::from(clock.0.load(Ordering::Relaxed));
    let openings = 1 + down / open.as_nanos();
    let most = u128::from(TRIPS + THREADS) + u128::from(PROBES) * openings;
    let made = u128::from(made.load(Ordering::Relaxed) - cancelled.load(Ordering::Relaxed));
    assert!(made <= most, "{made} attempts, at most {most} were promised");
    assert!(breaker.transitions() > 10, "it half-opened again and again");
    // Every place has been given back: it still closes.
    let later = Instant::from_nanos(u64::MAX / 2);
    for _ in 0..PROBES {
        breaker.record(breaker.admit(&later).unwrap(), &Outcome::Success, &later);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// No more than `n` probes at once, all of them cancelled or healthy, and none lost.
#[test]
fn half_open_never_lets_more_than_its_probes_pass() {
    const PROBES: u64 = 2;
    let breaker = CircuitBreaker::builder(Seed::new(3))
        .consecutive(1)
        .probes(PROBES as u32)
        .open(exactly(ms(1)))
        .probe_wait(secs(3_600))
        .build()
        .unwrap();
    let start = Instant::from_nanos(1);
    breaker.record(breaker.admit(&start).unwrap(), &FAILED, &start);
    let later = start.saturating_add(ms(1));
    let (flying, passed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..50_000 {
                    let Ok(pass) = breaker.admit(&later) else { continue };
                    let with_me = flying.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(with_me <= PROBES, "{with_me} probes at once");
                    passed.fetch_add(1, Ordering::Relaxed);
                    flying.fetch_sub(1, Ordering::SeqCst);
                    breaker.record(pass, &Outcome::Cancelled, &later);
                }
            });
        }
    });
    assert!(passed.into_inner() > 1_000);
    let snapshot = breaker.snapshot(&later);
    assert_eq!((snapshot.state, snapshot.probes, snapshot.calls), (BreakerState::HalfOpen, 0, 0));
}

/// The sums of a window of calls do not drift, however many threads count: after as many successes as it holds there
/// is no failure in it.
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
                        let Ok(pass) = breaker.admit(&early) else {
                            breaker.reset(&early);
                            continue;
                        };
                        let outcome = if (n + thread) % 3 == 0 { FAILED } else { Outcome::Success };
                        breaker.record(pass, &outcome, if n % 5 == 0 { &late } else { &early });
                    }
                });
            }
        });
        if breaker.state() != BreakerState::Closed {
            breaker.reset(&early);
        }
        let call = |outcome| breaker.record(breaker.admit(&early).unwrap(), &outcome, &early);
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
                    // The last bucket begins while it is being counted.
                    let now = Instant::from_nanos(n * 200_000);
                    let outcome = if n % 4 == 0 { FAILED } else { Outcome::Success };
                    breaker.record(breaker.admit(&now).unwrap(), &outcome, &now);
                }
            });
        }
    });
    let snapshot = breaker.snapshot(&Instant::from_nanos(EACH * 200_000));
    assert_eq!((snapshot.calls, snapshot.failures), (THREADS * EACH, THREADS * EACH / 4));
}

/// Of threads that all see the last of the failures, one opens it, and it is opened once.
#[test]
fn the_failure_that_trips_it_is_never_lost() {
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
                scope.spawn(|| breaker.record(breaker.admit(&now).unwrap(), &FAILED, &now));
            }
        });
        assert_eq!((breaker.state(), breaker.transitions()), (BreakerState::Open, 1), "round {round}");
    }
}
