//! TN: tenacity.

use core::time::Duration;

use stagger_core::profile::TENACITY;
use stagger_core::{Jitter, Outcome, Policy, PolicyProblem, Seed, StopReason};

use super::series::{ceilings, upper_bounds};
use crate::laws::support::{Call, at, mean, ms, secs};

/// Creates an exponential policy without a cap, as is tenacity's default.
fn exponential(base: Duration) -> stagger_core::PolicyBuilder {
    Policy::exponential(base, Duration::MAX).uncapped()
}

#[test]
fn tn_01_exponential_backoff() {
    assert_eq!(ceilings(exponential(secs(1)), 8), [1, 2, 4, 8, 16, 32, 64, 128].map(secs));
}

#[test]
fn tn_03_exponential_backoff_with_a_minimum() {
    let series = ceilings(exponential(secs(1)).floor(secs(20)), 20);
    assert_eq!(series[..8], [20, 20, 20, 20, 20, 32, 64, 128].map(secs));
    assert_eq!(series[19], secs(524_288));
}

#[test]
fn tn_05_exponential_with_a_minimum_and_base_2() {
    let series = ceilings(exponential(secs(2)).floor(secs(20)), 20);
    assert_eq!(series[..8], [20, 20, 20, 20, 32, 64, 128, 256].map(secs));
    assert_eq!(series[19], secs(1_048_576));
}

/// In stagger a duration is at least a nanosecond, so the ratio of the row is reached by the multiplier instead.
#[test]
fn tn_07_overflowing_growth_is_capped() {
    let nano = Duration::from_nanos(1);
    assert_eq!(ceilings(Policy::exponential(nano, nano).multiplier(1e300), 3), [nano; 3]);
    assert_eq!(ceilings(Policy::exponential(nano, secs(60)).multiplier(f64::MAX), 3), [nano, secs(60), secs(60)]);
}

#[test]
fn tn_09_incrementing_waits_are_linear() {
    let want = [500, 600, 700].map(secs);
    assert_eq!(ceilings(Policy::linear(secs(500), secs(100), secs(1000)), 3), want);
}

#[test]
fn tn_13_random_waits_up_to_two_seconds() {
    let policy = Policy::constant(secs(2)).jitter(Jitter::Full).build().unwrap();
    let delays: Vec<_> = policy.schedule(Seed::new(1)).take(100).collect();
    assert!(delays.iter().all(|&delay| delay <= secs(2)));
    assert!(delays.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn tn_17_a_chain_repeats_its_last_delay() {
    let policy = Policy::list(&[1, 2, 3].map(secs)).jitter(Jitter::None).max_attempts(5).build().unwrap();
    assert_eq!(Call::new(&policy).failing().waits, [1, 2, 3, 3].map(secs));
}

#[test]
fn tn_19_an_empty_chain_is_rejected() {
    assert!(Policy::list(&[]).build().unwrap_err().problems().eq([PolicyProblem::List]));
}

#[test]
fn tn_21_random_exponential_bounds_and_means() {
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
fn tn_23_a_minimum_above_the_range_replaces_it() {
    let policy = exponential(secs(1)).floor(secs(5)).build().unwrap();
    assert_eq!(policy.bounds(1), Some((secs(5), secs(5))));
    assert_eq!(policy.delay(1, Seed::new(1)), Some(secs(5)));
    assert_eq!(policy.bounds(4), Some((secs(5), secs(8))));
}

/// tenacity caps after adding jitter, so every client waits exactly 5 seconds. (A cap below the base is rejected.)
#[test]
fn tn_25_at_the_maximum_every_client_waits_the_maximum() {
    let policy = TENACITY.policy().to_builder().base(secs(5)).cap(secs(5)).build().unwrap();
    for seed in 0..100 {
        assert!(policy.schedule(Seed::new(seed)).take(9).all(|delay| delay == secs(5)));
    }
    assert!(Policy::exponential(secs(10), secs(5)).build().unwrap_err().problems().eq([PolicyProblem::CapBelowBase]));
}

#[test]
fn tn_27_without_jitter_the_waits_are_the_ceilings() {
    assert_eq!(ceilings(TENACITY.policy().to_builder().base(secs(10)).cap(secs(60)), 4), [10, 20, 40, 60].map(secs));
}

/// Returns why a call stops after `attempts` failures, the last of which ends `elapsed` after the start.
fn stops(policy: &Policy, attempts: u32, elapsed: Duration) -> Option<StopReason> {
    let trace = Call::new(policy).took(elapsed / attempts).run(vec![Outcome::TRANSIENT; attempts as usize]);
    trace.stop
}

/// tenacity stops when the limit is reached (`>=`). In stagger the limit is inclusive.
#[test]
fn tn_31_max_elapsed_without_a_delay_is_inclusive() {
    let policy = Policy::zero().max_elapsed(secs(1)).unlimited_attempts().build().unwrap();
    for (elapsed, want) in [(999, None), (1000, None), (1001, Some(StopReason::Elapsed))] {
        assert_eq!(stops(&policy, 1, ms(elapsed)), want, "{elapsed} ms");
    }
}

#[test]
fn tn_33_the_first_limit_reached_stops() {
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

/// tenacity stops when `elapsed + sleep >= limit`. In stagger `max_elapsed` is inclusive, and a deadline is exclusive,
/// which is the rule of the row.
#[test]
fn tn_41_max_elapsed_is_inclusive_and_deadline_exclusive() {
    let builder = Policy::constant(secs(5)).jitter(Jitter::None).unlimited_attempts();
    let policy = builder.max_elapsed(secs(5)).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (2, vec![secs(5)], Some(StopReason::Elapsed)));

    let policy = builder.build().unwrap();
    let start = Call::START;
    let trace = Call::new(&policy).deadline(start.saturating_add(secs(5))).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (1, vec![], Some(StopReason::Deadline)));
}

/// `wait_exponential_jitter(initial=1, max=60, jitter=...)` takes the jitter as a parameter.
#[test]
fn the_jitter_of_wait_exponential_jitter_is_configurable() {
    for cap in ["none", "60s"] {
        let profile: Policy = format!("tenacity cap={cap}").parse().unwrap();
        let second: Policy = format!("tenacity cap={cap} jitter=add:1s").parse().unwrap();
        assert!(profile.schedule(Seed::new(7)).take(20).eq(second.schedule(Seed::new(7)).take(20)), "cap {cap}");
        let half: Policy = format!("tenacity cap={cap} jitter=add:500ms").parse().unwrap();
        assert_eq!(half.bounds(2), Some((secs(2), secs(2) + Duration::from_millis(500))));
        assert_eq!(half.to_string().parse(), Ok(half));
    }
}
