//! Delays on a timer that fires only at multiples of its resolution.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::{DelaySource, Policy, Seed};

use crate::laws::support::{cases, mean, ms};

fn on_ticks(seed: u64, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
    let mut state = RetryState::new();
    RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1).for_call(seed)).on_ticks(after, source, resolution)
}

/// Returns when a timer that rounds `asked` up to a multiple of `tick` fires.
fn fired_at(asked: Duration, tick: Duration) -> Duration {
    tick * u32::try_from(asked.as_nanos().div_ceil(tick.as_nanos())).unwrap()
}

#[test]
fn a_coarse_timer_preserves_the_mean_of_short_delays() {
    for micros in [1, 200, 500, 999, 1_000, 1_001, 2_500] {
        let after = Duration::from_micros(micros);
        let waits: Vec<_> =
            (0..20_000).map(|id| fired_at(on_ticks(id, after, DelaySource::Schedule, ms(1)), ms(1))).collect();
        let got = mean(&waits) / 1e3;
        // The standard deviation of one delay is at most half a tick. Allow six standard deviations of the mean.
        assert!((got - micros as f64).abs() < 6.0 * 500.0 / 20_000_f64.sqrt(), "{micros} µs: mean {got} µs");
    }
}

/// If a tick is a few nanoseconds, every nanosecond is a large fraction of it.
#[test]
fn the_mean_is_preserved_for_ticks_of_a_few_nanoseconds() {
    for (after, tick) in [(1, 2), (1, 3), (2, 3), (5, 3), (1, 5), (4, 5)] {
        let (after, tick) = (Duration::from_nanos(after), Duration::from_nanos(tick));
        let waits: Vec<_> =
            (0..20_000).map(|id| fired_at(on_ticks(id, after, DelaySource::Schedule, tick), tick)).collect();
        let (got, want) = (mean(&waits), after.as_nanos() as f64);
        let within = 5.0 * tick.as_nanos() as f64 / 2.0 / 20_000_f64.sqrt();
        assert!((got - want).abs() < within, "{after:?} on {tick:?}: mean {got}");
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn the_timer_fires_at_one_of_the_two_nearest_ticks(
        seed in any::<u64>(), after in 0..1_000_000_000_u64, tick in 1..50_000_000_u64,
    ) {
        let (after, tick) = (Duration::from_nanos(after), Duration::from_nanos(tick));
        let got = fired_at(on_ticks(seed, after, DelaySource::Schedule, tick), tick);
        let below = tick * u32::try_from(after.as_nanos() / tick.as_nanos()).unwrap();
        prop_assert!(got == below || (got == below + tick && after != below), "{after:?} on {tick:?}: {got:?}");
    }

    #[test]
    fn hints_are_never_shortened(seed in any::<u64>(), after in any::<u64>(), tick in 1..50_000_000_u64) {
        let after = Duration::from_nanos(after);
        prop_assert_eq!(on_ticks(seed, after, DelaySource::Hint, Duration::from_nanos(tick)), after);
    }
}

#[test]
fn a_zero_delay_stays_zero() {
    for source in [DelaySource::Schedule, DelaySource::Hint, DelaySource::Transparent, DelaySource::Spread] {
        assert_eq!(on_ticks(1, Duration::ZERO, source, ms(1)), Duration::ZERO);
    }
}

#[test]
fn a_resolution_of_at_most_1_ns_changes_nothing() {
    let after = Duration::from_nanos(12_345);
    for resolution in [Duration::ZERO, Duration::from_nanos(1)] {
        assert_eq!(on_ticks(1, after, DelaySource::Schedule, resolution), after);
    }
}

/// Only hints are promises; a spread may be rounded like any other delay.
#[test]
fn a_spread_is_rounded_to_ticks() {
    let asked: Vec<_> =
        (0..100).map(|id| on_ticks(id, Duration::from_micros(500), DelaySource::Spread, ms(1))).collect();
    assert!(asked.contains(&Duration::ZERO) && asked.contains(&Duration::from_nanos(1)), "{asked:?}");
}

#[test]
fn every_retry_draws_its_tick_independently() {
    let policy = Policy::DEFAULT;
    let now = || stagger_core::Instant::ZERO;
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let chosen: Vec<_> = (0..64)
        .map(|_| {
            let permit = retry.begin(stagger_core::guard::Permits::NONE, now, &stagger_core::Guards::none()).unwrap();
            drop(permit);
            retry.on_ticks(Duration::from_micros(500), DelaySource::Schedule, ms(1)).is_zero()
        })
        .collect();
    let zeros = chosen.iter().filter(|&&zero| zero).count();
    assert!((16..=48).contains(&zeros), "{zeros} of 64");
}
