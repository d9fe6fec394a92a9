//! Settled meaning 5: every call has its own key.

use core::future::ready;
use core::time::Duration;
use std::collections::HashSet;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger::{Policy, Retrier, blocking, policy};
#[cfg(unix)]
use stagger_kit::Program;

/// An hour has about 2⁴² nanoseconds, so equal delays in two calls mean that the calls share their key.
const POLICY: Policy = policy!(constant(mins(60)).jitter(Jitter::Full).max_attempts(3));

fn delays_of_a_call() -> Vec<Duration> {
    let clock = VirtualClock::new();
    blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&clock).run().unwrap_err();
    clock.sleeps()
}

#[test]
fn meaning_05_calls_draw_distinct_delays() {
    let delays: HashSet<Duration> = (0..2_000).flat_map(|_| delays_of_a_call()).collect();
    assert_eq!(delays.len(), 4_000);
}

#[test]
fn meaning_05_calls_of_a_retrier_and_its_clones_have_distinct_keys() {
    let retrier = Retrier::new(POLICY);
    let delays: HashSet<Duration> = (0..500)
        .flat_map(|_| {
            let (clock, clone) = (VirtualClock::new(), retrier.clone());
            clone.blocking_call(|_| Err::<(), _>("no")).timer(&clock).run().unwrap_err();
            clock.sleeps()
        })
        .collect();
    assert_eq!(delays.len(), 1_000);
}

#[test]
fn meaning_05_a_restarted_manual_call_has_a_new_key() {
    let (retrier, clock) = (Retrier::new(POLICY), VirtualClock::new());
    let mut call = retrier.call_on(&clock);
    for _ in 0..50 {
        while block_on(call.attempt(ready(Err::<(), _>("no")))).is_none() {}
    }
    let delays: HashSet<Duration> = clock.sleeps().into_iter().collect();
    assert_eq!(delays.len(), 100);
}

#[test]
fn meaning_05_a_fixed_seed_reproduces_the_delays() {
    let delays = |seed| {
        let clock = VirtualClock::new();
        let _ = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&clock).seed(seed).run();
        clock.sleeps()
    };
    let seed = stagger::seed();
    assert_eq!(delays(seed), delays(seed));
    assert_eq!(delays(seed), POLICY.delays(seed).collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn meaning_05_two_runs_of_a_program_have_distinct_keys() {
    let run = || {
        let child = Program::this_test("suite::keys::child_that_prints_its_delays").unwrap().env("PRINT_DELAYS", "1");
        let done = child.run(Duration::from_secs(20)).unwrap();
        assert!(done.status.success(), "{done}");
        let text = done.stdout_text();
        text.lines().filter_map(|line| line.strip_prefix("delay ").map(str::to_owned)).collect::<HashSet<_>>()
    };
    let (first, second) = (run(), run());
    assert_eq!((first.len(), second.len()), (10, 10));
    assert!(first.is_disjoint(&second), "{first:?}, {second:?}");
}

#[test]
#[ignore = "the child of another test"]
fn child_that_prints_its_delays() {
    if std::env::var_os("PRINT_DELAYS").is_some() {
        println!();
        for delay in (0..5).flat_map(|_| delays_of_a_call()) {
            println!("delay {}", delay.as_nanos());
        }
    }
}
