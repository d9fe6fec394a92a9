//! The clock is read only if a time limit, a deadline or a guard needs it, and at most once per step.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guard, Guards, Outcome, Policy, PolicyBuilder, Seed};

use crate::laws::support::{CountingClock, RecordingGuard, at, cases, mean, ms, secs};

const POLICY: PolicyBuilder = Policy::constant(ms(10));

/// Returns the number of clock reads by begin, decide, begin, decide of an attempt that fails and one that succeeds.
fn reads(policy: PolicyBuilder, deadline: bool, guards: &Guards<'_>) -> [u32; 4] {
    let policy = policy.build().unwrap();
    let clock = CountingClock::at(at(secs(1)));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1)).deadline(deadline.then_some(at(secs(100))));
    let mut permit = Permits::NONE;
    let mut taken = Vec::new();
    for outcome in [Outcome::TRANSIENT, Outcome::Success] {
        let begun = retry.begin(permit, clock.reader(), guards).unwrap();
        taken.push(clock.take_reads());
        permit = match retry.decide(outcome, begun, clock.reader(), guards) {
            Decision::Retry { permit, .. } => permit,
            _ => Permits::NONE,
        };
        taken.push(clock.take_reads());
    }
    taken.try_into().unwrap()
}

#[test]
fn the_clock_is_not_read_if_nothing_needs_it() {
    assert_eq!(reads(POLICY, false, &Guards::none()), [0, 0, 0, 0]);
    let (budget, breaker) = (RecordingGuard::budget(), RecordingGuard::breaker());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    assert_eq!(reads(POLICY, false, &Guards::of(&list)), [0, 0, 0, 0]);
}

#[test]
fn max_elapsed_reads_the_clock_at_start_and_on_failure() {
    assert_eq!(reads(POLICY.max_elapsed(secs(9)), false, &Guards::none()), [1, 1, 0, 0]);
}

#[test]
fn a_deadline_reads_the_clock_before_each_attempt_and_on_failure() {
    assert_eq!(reads(POLICY, true, &Guards::none()), [1, 1, 1, 0]);
}

#[test]
fn the_clock_is_read_once_per_step_for_all_readers() {
    let (budget, breaker) = (RecordingGuard::budget().with_clock(), RecordingGuard::breaker().with_clock());
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    assert_eq!(reads(POLICY.max_elapsed(secs(9)), true, &guards), [1, 1, 1, 1]);
}

#[test]
fn a_spread_reads_the_clock_only_for_a_time_limit() {
    let clock = CountingClock::at(at(secs(1)));
    let spread = POLICY.spread(secs(1));
    for (policy, without, with_deadline) in [(POLICY, 0, 0), (spread, 0, 1), (spread.max_elapsed(secs(9)), 1, 1)] {
        for (deadline, want) in [(None, without), (Some(at(secs(9))), with_deadline)] {
            let policy = policy.build().unwrap();
            let mut state = RetryState::new();
            let _ = RetryMachine::new(&policy, &mut state, Seed::new(1)).deadline(deadline).spread(clock.reader());
            assert_eq!(clock.take_reads(), want, "{policy}, {deadline:?}");
        }
    }
}

#[test]
fn remaining_reads_the_clock_only_with_a_deadline() {
    let (policy, clock) = (POLICY.build().unwrap(), CountingClock::at(at(secs(1))));
    let mut state = RetryState::new();
    assert_eq!(RetryMachine::new(&policy, &mut state, Seed::new(1)).remaining(clock.reader()), None);
    assert_eq!(clock.take_reads(), 0);
    let retry = RetryMachine::new(&policy, &mut state, Seed::new(1)).deadline(Some(at(secs(4))));
    assert_eq!(retry.remaining(clock.reader()), Some(secs(3)));
    assert_eq!(clock.take_reads(), 1);
    clock.set(at(secs(5)));
    assert_eq!(retry.remaining(clock.reader()), Some(Duration::ZERO));
}

#[test]
fn an_instant_returns_itself_as_now() {
    assert_eq!(stagger_core::guard::Now::now(&at(secs(7))), at(secs(7)));
}

#[test]
fn abandoning_an_attempt_reads_the_clock_only_for_guards() {
    let clock = CountingClock::at(at(secs(1)));
    for (budget, want) in [(RecordingGuard::budget(), 0), (RecordingGuard::budget().with_clock(), 1)] {
        let list: [&dyn Guard; 1] = [&budget];
        let guards = Guards::of(&list);
        let policy = POLICY.build().unwrap();
        let mut state = RetryState::new();
        let permit =
            RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, || at(secs(1)), &guards).unwrap();
        guards.abandon(permit, clock.reader());
        assert_eq!(clock.take_reads(), want);
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn no_step_reads_the_clock_twice(
        limit in any::<bool>(), deadline in any::<bool>(), with_budget in any::<bool>(), with_breaker in any::<bool>(),
        outcomes in prop::collection::vec(prop::sample::select(vec![Outcome::TRANSIENT, Outcome::NotProcessed]), 1..6),
    ) {
        let (budget, breaker) = (RecordingGuard::budget().with_clock(), RecordingGuard::breaker().with_clock());
        let mut list: Vec<&dyn Guard> = Vec::new();
        if with_breaker { list.push(&breaker); }
        if with_budget { list.push(&budget); }
        let guards = Guards::of(&list);
        let policy = if limit { POLICY.max_elapsed(secs(9)) } else { POLICY };
        let policy = policy.unlimited_attempts().build().unwrap();
        let clock = CountingClock::at(at(secs(1)));
        let mut state = RetryState::new();
        let deadline = deadline.then_some(at(secs(100)));
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1)).deadline(deadline);
        let mut permit = Permits::NONE;
        for outcome in outcomes {
            let begun = retry.begin(permit, clock.reader(), &guards).unwrap();
            prop_assert!(clock.take_reads() <= 1);
            let Decision::Retry { permit: granted, .. } = retry.decide(outcome, begun, clock.reader(), &guards) else {
                panic!("the retry is allowed")
            };
            prop_assert!(clock.take_reads() <= 1);
            permit = granted;
        }
        guards.release(permit, || at(secs(1)));
    }
}

// Delays on a timer that fires only at multiples of its resolution.

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
            let permit = retry.begin(Permits::NONE, now, &Guards::none()).unwrap();
            drop(permit);
            retry.on_ticks(Duration::from_micros(500), DelaySource::Schedule, ms(1)).is_zero()
        })
        .collect();
    let zeros = chosen.iter().filter(|&&zero| zero).count();
    assert!((16..=48).contains(&zeros), "{zeros} of 64");
}
