//! TN: tenacity.

use core::time::Duration;

use stagger_core::profile::TENACITY;
use stagger_core::{Jitter, Outcome, Policy, PolicyProblem, Seed, StopReason};

use super::series::{ceilings, upper_bounds};
use crate::laws::support::{Call, at, mean, ms, secs};

/// tenacity's own default has no maximum.
fn exponential(base: Duration) -> stagger_core::PolicyBuilder {
    Policy::exponential(base, Duration::MAX).uncapped()
}

#[test]
fn tn_01_exponential() {
    assert_eq!(ceilings(exponential(secs(1)), 8), [1, 2, 4, 8, 16, 32, 64, 128].map(secs));
}

#[test]
fn tn_03_exponential_with_a_minimum() {
    let series = ceilings(exponential(secs(1)).floor(secs(20)), 20);
    assert_eq!(series[..8], [20, 20, 20, 20, 20, 32, 64, 128].map(secs));
    assert_eq!(series[19], secs(524_288));
}

#[test]
fn tn_05_exponential_with_a_minimum_and_a_base_of_two() {
    let series = ceilings(exponential(secs(2)).floor(secs(20)), 20);
    assert_eq!(series[..8], [20, 20, 20, 20, 32, 64, 128, 256].map(secs));
    assert_eq!(series[19], secs(1_048_576));
}

/// A length of time is at least a nanosecond here, so the ratio of the row is reached with the growth instead.
#[test]
fn tn_07_an_overflowing_growth_is_capped_and_no_error() {
    let nano = Duration::from_nanos(1);
    assert_eq!(ceilings(Policy::exponential(nano, nano).multiplier(1e300), 3), [nano; 3]);
    assert_eq!(ceilings(Policy::exponential(nano, secs(60)).multiplier(f64::MAX), 3), [nano, secs(60), secs(60)]);
}

#[test]
fn tn_09_incrementing() {
    let want = [500, 600, 700].map(secs);
    assert_eq!(ceilings(Policy::linear(secs(500), secs(100), secs(1000)), 3), want);
}

#[test]
fn tn_13_random_up_to_two() {
    let policy = Policy::constant(secs(2)).jitter(Jitter::Full).build().unwrap();
    let delays: Vec<_> = policy.schedule(Seed::new(1)).take(100).collect();
    assert!(delays.iter().all(|&delay| delay <= secs(2)));
    assert!(delays.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn tn_17_a_chain_repeats_its_last() {
    let policy = Policy::list(&[1, 2, 3].map(secs)).jitter(Jitter::None).max_attempts(5).build().unwrap();
    assert_eq!(Call::new(&policy).failing().waits, [1, 2, 3, 3].map(secs));
}

#[test]
fn tn_19_an_empty_chain_cannot_be_built() {
    assert!(Policy::list(&[]).build().unwrap_err().problems().eq([PolicyProblem::List]));
}

#[test]
fn tn_21_random_exponential() {
    let policy = Policy::exponential(ms(500), secs(60)).build().unwrap();
    let bounds = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].map(ms);
    assert_eq!(upper_bounds(&policy, 9), bounds);
    let means =
        [(0.25, 0.02), (0.5, 0.04), (1.0, 0.08), (2.0, 0.16), (4.0, 0.32), (8.0, 0.64), (16.0, 1.28), (30.0, 2.56)];
    for (n, (want, within)) in (1..).zip(means) {
        let drawn: Vec<_> = (0..4000).map(|id| policy.delay(n, Seed::new(2).for_call(id)).unwrap()).collect();
        let got = mean(&drawn) / 1e9;
        assert!((got - want).abs() < within, "retry {n}: mean {got}");
    }
}

#[test]
fn tn_23_the_range_collapses_to_a_minimum_above_it() {
    let policy = exponential(secs(1)).floor(secs(5)).build().unwrap();
    assert_eq!(policy.bounds(1), Some((secs(5), secs(5))));
    assert_eq!(policy.delay(1, Seed::new(1)), Some(secs(5)));
    assert_eq!(policy.bounds(4), Some((secs(5), secs(8))));
}

/// tenacity adds its jitter and caps then, so every client waits exactly 5. (A cap below the base is a fault.)
#[test]
fn tn_25_at_the_maximum_every_client_waits_exactly_the_maximum() {
    let policy = TENACITY.policy().to_builder().base(secs(5)).cap(secs(5)).build().unwrap();
    for seed in 0..100 {
        assert!(policy.schedule(Seed::new(seed)).take(9).all(|delay| delay == secs(5)));
    }
    assert!(Policy::exponential(secs(10), secs(5)).build().unwrap_err().problems().eq([PolicyProblem::CapBelowBase]));
}

#[test]
fn tn_27_no_jitter() {
    assert_eq!(ceilings(TENACITY.policy().to_builder().base(secs(10)).cap(secs(60)), 4), [10, 20, 40, 60].map(secs));
}

/// The decision after a call's failing attempts, the last of which ends so long after the start.
fn stops(policy: &Policy, attempts: u32, elapsed: Duration) -> Option<StopReason> {
    let trace = Call::new(policy).took(elapsed / attempts).run(vec![Outcome::TRANSIENT; attempts as usize]);
    trace.stop
}

/// tenacity stops when the time is reached (`>=`); here the limit itself is still inside it.
#[test]
fn tn_31_a_limit_of_time_with_nothing_to_sleep() {
    let policy = Policy::zero().max_elapsed(secs(1)).unlimited_attempts().build().unwrap();
    for (elapsed, want) in [(999, None), (1000, None), (1001, Some(StopReason::Elapsed))] {
        assert_eq!(stops(&policy, 1, ms(elapsed)), want, "{elapsed} ms");
    }
}

#[test]
fn tn_33_whichever_limit_comes_first() {
    let policy = Policy::zero().max_elapsed(secs(1)).max_attempts(4).build().unwrap();
    for (attempts, elapsed, want) in [
        (1, 100, None),
        (2, 200, None),
        (2, 800, None),
        (4, 800, Some(StopReason::Attempts)),
        (3, 1800, Some(StopReason::Elapsed)),
        (4, 1800, Some(StopReason::Elapsed)),
    ] {
        assert_eq!(stops(&policy, attempts, ms(elapsed)), want, "{attempts} attempts in {elapsed} ms");
    }
}

#[test]
fn tn_39_attempts_are_counted_from_one() {
    let policy = Policy::zero().max_attempts(3).build().unwrap();
    let mut state = stagger_core::machine::RetryState::new();
    let (guards, now) = (stagger_core::Guards::none(), || at(Duration::ZERO));
    let mut retry = stagger_core::machine::RetryMachine::new(&policy, &mut state, Seed::new(1));
    let seen = [1, 2, 3].map(|_| {
        let permit = retry.begin(stagger_core::guard::Permits::NONE, now, &guards).unwrap();
        let seen = retry.attempt();
        let _ = retry.decide(Outcome::TRANSIENT, permit, now, &guards);
        seen
    });
    assert_eq!(seen, [1, 2, 3]);
}

/// tenacity stops when `elapsed + sleep >= limit`. `max_elapsed` is a length, and what ends with it is inside it; a
/// deadline is a point, and nothing starts at it, which is the row's rule.
#[test]
fn tn_41_a_sleep_that_ends_with_the_limit_is_inside_and_one_that_ends_at_the_deadline_is_not() {
    let builder = Policy::constant(secs(5)).jitter(Jitter::None).unlimited_attempts();
    let policy = builder.max_elapsed(secs(5)).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (2, vec![secs(5)], Some(StopReason::Elapsed)));

    let policy = builder.build().unwrap();
    let start = Call::START;
    let trace = Call::new(&policy).deadline(start.saturating_add(secs(5))).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (1, vec![], Some(StopReason::Elapsed)));
}

/// `wait_exponential_jitter(initial=1, max=60, jitter=...)`: the length of the jitter is a setting.
#[test]
fn the_jitter_length_of_wait_exponential_jitter_can_be_set() {
    for cap in ["none", "60s"] {
        let profile: Policy = format!("tenacity cap={cap}").parse().unwrap();
        let second: Policy = format!("tenacity cap={cap} jitter=add:1s").parse().unwrap();
        assert!(profile.schedule(Seed::new(7)).take(20).eq(second.schedule(Seed::new(7)).take(20)), "cap {cap}");
        let half: Policy = format!("tenacity cap={cap} jitter=add:500ms").parse().unwrap();
        assert_eq!(half.bounds(2), Some((secs(2), secs(2) + Duration::from_millis(500))));
        assert_eq!(half.to_string().parse(), Ok(half));
    }
}
