//! What is asked of a timer that wakes up only at multiples of its resolution.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::{DelaySource, Policy, Seed, machine::RetryMachine, machine::RetryState};

use crate::laws::support::{cases, mean, ms};

fn on_ticks(seed: u64, after: Duration, source: DelaySource, resolution: Duration) -> Duration {
    let mut state = RetryState::new();
    RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1).for_call(seed)).on_ticks(after, source, resolution)
}

/// When a timer that was asked for this wakes up, if it rounds up.
fn woken(asked: Duration, tick: Duration) -> Duration {
    tick * u32::try_from(asked.as_nanos().div_ceil(tick.as_nanos())).unwrap()
}

#[test]
fn short_delays_keep_their_mean_on_a_coarse_timer() {
    for micros in [1, 200, 500, 999, 1_000, 1_001, 2_500] {
        let after = Duration::from_micros(micros);
        let slept: Vec<_> =
            (0..20_000).map(|id| woken(on_ticks(id, after, DelaySource::Schedule, ms(1)), ms(1))).collect();
        let got = mean(&slept) / 1e3;
        // The standard deviation of one is at most half a tick; six of those of the mean.
        assert!((got - micros as f64).abs() < 6.0 * 500.0 / 20_000_f64.sqrt(), "{micros} µs: mean {got} µs");
    }
}

/// On a timer so coarse that every nanosecond is a share of the tick, the shares are exact.
#[test]
fn the_mean_is_kept_to_the_nanosecond() {
    for (after, tick) in [(1, 2), (1, 3), (2, 3), (5, 3), (1, 5), (4, 5)] {
        let (after, tick) = (Duration::from_nanos(after), Duration::from_nanos(tick));
        let slept: Vec<_> =
            (0..20_000).map(|id| woken(on_ticks(id, after, DelaySource::Schedule, tick), tick)).collect();
        let (got, want) = (mean(&slept), after.as_nanos() as f64);
        let within = 5.0 * tick.as_nanos() as f64 / 2.0 / 20_000_f64.sqrt();
        assert!((got - want).abs() < within, "{after:?} on {tick:?}: mean {got}");
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn the_timer_wakes_up_at_one_of_the_two_neighbouring_ticks(
        seed in any::<u64>(), after in 0..1_000_000_000_u64, tick in 1..50_000_000_u64,
    ) {
        let (after, tick) = (Duration::from_nanos(after), Duration::from_nanos(tick));
        let got = woken(on_ticks(seed, after, DelaySource::Schedule, tick), tick);
        let below = tick * u32::try_from(after.as_nanos() / tick.as_nanos()).unwrap();
        prop_assert!(got == below || (got == below + tick && after != below), "{after:?} on {tick:?}: {got:?}");
    }

    #[test]
    fn a_hint_is_never_cut_short(seed in any::<u64>(), after in any::<u64>(), tick in 1..50_000_000_u64) {
        let after = Duration::from_nanos(after);
        prop_assert_eq!(on_ticks(seed, after, DelaySource::Hint, Duration::from_nanos(tick)), after);
    }
}

#[test]
fn no_wait_never_touches_a_timer() {
    for source in [DelaySource::Schedule, DelaySource::Hint, DelaySource::Transparent, DelaySource::Spread] {
        assert_eq!(on_ticks(1, Duration::ZERO, source, ms(1)), Duration::ZERO);
    }
}

#[test]
fn a_timer_of_a_nanosecond_or_none_is_taken_at_its_word() {
    let after = Duration::from_nanos(12_345);
    for resolution in [Duration::ZERO, Duration::from_nanos(1)] {
        assert_eq!(on_ticks(1, after, DelaySource::Schedule, resolution), after);
    }
}

/// A spread and a repeat are delays like any other; only hints are promises.
#[test]
fn a_spread_is_put_on_ticks() {
    let asked: Vec<_> =
        (0..100).map(|id| on_ticks(id, Duration::from_micros(500), DelaySource::Spread, ms(1))).collect();
    assert!(asked.contains(&Duration::ZERO) && asked.contains(&Duration::from_nanos(1)), "{asked:?}");
}

#[test]
fn the_tick_is_chosen_anew_for_every_retry() {
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
