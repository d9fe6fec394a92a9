//! Hedging: when a copy is due, and attempt latencies.

use core::time::Duration;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use stagger_core::hedge::{Hedge, HedgeState, Latencies};
use stagger_core::{FailureKind, Outcome, Ratio, ServerHint};

use super::support::{at, cases, ms, secs};

// Attempt latencies and their quantiles.

#[test]
fn no_quantile_before_twenty_attempts() {
    let latencies = Latencies::default();
    let hedge = Hedge::at_quantile(Ratio::percent(95), ms(700));
    for _ in 0..19 {
        latencies.record(ms(10));
    }
    assert_eq!((latencies.quantile(Ratio::percent(50)), hedge.delay_now(Some(&latencies))), (None, ms(700)));
    latencies.record(ms(10));
    let delay = hedge.delay_now(Some(&latencies));
    assert!(delay > ms(8) && delay < ms(12), "{delay:?}");
    assert_eq!(hedge.delay_now(None), ms(700));
    assert_eq!(Hedge::after(ms(3)).delay_now(Some(&latencies)), ms(3));
}

#[test]
fn the_least_quantile_is_the_shortest_latency_seen() {
    let latencies = Latencies::default();
    for _ in 0..20 {
        latencies.record(secs(1));
    }
    let least = latencies.quantile(Ratio::ZERO).unwrap();
    assert!(least > ms(875) && least < ms(1_125), "{least:?}");
}

#[test]
fn old_latencies_decay() {
    let latencies = Latencies::new(100);
    for _ in 0..1_000 {
        latencies.record(ms(10));
    }
    assert!(latencies.len() <= 200, "{}", latencies.len());
    for _ in 0..600 {
        latencies.record(secs(1));
    }
    let tenth = latencies.quantile(Ratio::percent(10)).unwrap();
    assert!(tenth > ms(900), "{tenth:?}: six windows have elapsed since the fast attempts");
}

/// Slow attempts lose to their copies. If only winners were recorded, the delay would shrink with every call.
#[test]
fn recording_losers_keeps_the_delay_from_shrinking() {
    let latencies = Latencies::new(200);
    // One attempt in ten takes a second, all others 10 ms; the copy of a slow one wins 10 ms after the delay.
    for call in 0..2_000 {
        let delay = latencies.quantile(Ratio::percent(95)).unwrap_or(ms(100));
        if call % 10 == 0 {
            latencies.record((delay + ms(10)).min(secs(1)));
        }
        latencies.record(ms(10));
    }
    let delay = latencies.quantile(Ratio::percent(95)).unwrap();
    assert!(delay > ms(20), "{delay:?}");
}

#[test]
fn records_of_threads_are_all_counted() {
    let latencies = Arc::new(Latencies::new(1_000_000));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let latencies = Arc::clone(&latencies);
            thread::spawn(move || (0..50_000).for_each(|i| latencies.record(Duration::from_micros(i))))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(latencies.len(), 200_000);
    let middle = latencies.quantile(Ratio::percent(50)).unwrap();
    assert!(middle.abs_diff(ms(25)) < ms(2), "{middle:?}");
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_quantile_is_within_an_eighth_of_the_exact_value(
        mut lengths in prop::collection::vec(1_000..3_600_000_000_000_u64, 50..400), percent in 1..=100_u32,
    ) {
        let latencies = Latencies::new(1_000);
        lengths.iter().for_each(|&nanos| latencies.record(Duration::from_nanos(nanos)));
        lengths.sort_unstable();
        let got = latencies.quantile(Ratio::percent(percent)).unwrap().as_nanos() as f64;
        // The rank is rounded down.
        let rank = (lengths.len() * percent as usize / 100).clamp(1, lengths.len());
        let want = lengths[rank - 1] as f64;
        prop_assert!((got / want - 1.0).abs() <= 0.13, "{percent} %: got {got}, expected {want}");
    }

    #[test]
    fn quantiles_are_monotonic(lengths in prop::collection::vec(any::<u64>(), 20..200)) {
        let latencies = Latencies::new(1_000);
        lengths.iter().for_each(|&nanos| latencies.record(Duration::from_nanos(nanos)));
        let quantiles: Vec<_> = (0..=100).map(|p| latencies.quantile(Ratio::percent(p)).unwrap()).collect();
        prop_assert!(quantiles.is_sorted(), "{quantiles:?}");
    }
}

// The hedge state: when the next copy is due.

/// `hedgingPolicy` with 4 attempts and a delay of 500 ms, and a server that does not respond.
#[test]
fn gr_13_copies_start_one_delay_apart() {
    let hedge = Hedge::after(ms(500)).with_max_copies(3);
    let mut state = HedgeState::new(&hedge, ms(500), at(secs(1)));
    let mut in_flight = Vec::new();
    for now in [1, 501, 1001, 1501, 2001].map(|after| at(secs(1) + ms(after))) {
        if state.due().is_some_and(|due| due <= now) {
            state.launched(ms(500), now);
        }
        in_flight.push(state.count());
    }
    assert_eq!(in_flight, [1, 2, 3, 4, 4]);
    assert_eq!(state.due(), None);
}

#[test]
fn with_zero_copies_none_is_ever_due() {
    let state = HedgeState::new(&Hedge::after(Duration::ZERO).with_max_copies(0), Duration::ZERO, at(secs(1)));
    assert_eq!((state.due(), state.count()), (None, 1));
}

#[test]
fn max_copies_is_clamped_to_ten() {
    assert_eq!(Hedge::after(ms(1)).with_max_copies(11).max_copies(), 10);
    assert_eq!(Hedge::after(ms(1)).with_max_copies(10).max_copies(), 10);
}

#[test]
fn a_retryable_failure_makes_the_next_copy_due() {
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    for (outcome, want) in [
        (Outcome::TRANSIENT, Some(at(secs(5)))),
        (Outcome::NotProcessed, Some(at(secs(5)))),
        (failed(FailureKind::Throttled, None), Some(at(secs(5)))),
        (failed(FailureKind::Throttled, Some(ServerHint::AtLeast(secs(2)))), Some(at(secs(7)))),
        (failed(FailureKind::Transient, Some(ServerHint::Reserved(secs(3)))), Some(at(secs(8)))),
        (failed(FailureKind::Throttled, Some(ServerHint::DoNotRetry)), None),
        (failed(FailureKind::LocalExhaustion, None), None),
        (Outcome::Permanent, None),
        (Outcome::Cancelled, None),
    ] {
        let mut state = HedgeState::new(&Hedge::after(secs(60)), secs(60), at(secs(1)));
        state.failed(&outcome, at(secs(5)));
        assert_eq!(state.due(), want, "{outcome:?}");
    }
}

#[test]
fn a_copy_rejected_by_the_budget_is_the_last() {
    let mut state = HedgeState::new(&Hedge::after(ms(1)).with_max_copies(5), ms(1), at(secs(1)));
    state.rejected();
    assert_eq!(state.due(), None);
    state.failed(&Outcome::TRANSIENT, at(secs(2)));
    assert_eq!(state.due(), None, "a failure does not make another copy due");
}
