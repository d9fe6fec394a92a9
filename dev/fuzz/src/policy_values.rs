//! A policy builds or is rejected with its problems. The delays of a policy that builds keep its bounds, for any seed.

use core::time::Duration;

use arbitrary::Arbitrary;
use stagger_core::{Jitter, Policy, Seed, schedule::Backoff};

use crate::values::AnyPolicy;

/// The number of retries to check. Forecasts of decorrelated jitter are slow.
const RETRIES: u32 = 12;

/// The settings of a policy, which may be invalid, and a call with it.
#[derive(Arbitrary, Debug)]
pub struct Input {
    policy: AnyPolicy,
    seed: u64,
    /// The retry whose forecasts are checked.
    n: u8,
    q: f64,
}

/// Builds the policy and checks its delays and forecasts.
pub fn check(input: &Input) {
    let policy = match input.policy.build() {
        Ok(policy) => policy,
        Err(error) => {
            assert!(error.problems().next().is_some(), "{error:?}: the error has no problems");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(policy.to_builder().build(), Ok(policy));
    let printed = policy.to_string();
    assert_eq!(printed.parse(), Ok(policy), "{printed:?} parses as another policy");
    let seed = Seed::new(input.seed);
    delays_keep_their_bounds(&policy, seed);
    forecasts_agree(&policy, u32::from(input.n) % RETRIES + 1, input.q);
    far_retries_have_delays(&policy, seed);
}

fn delays_keep_their_bounds(policy: &Policy, seed: Seed) {
    let mut sum = policy.first_spread(seed);
    assert!(sum <= policy.spread());
    let mut schedule = policy.schedule(seed);
    for n in 1..=RETRIES {
        let delay = schedule.next();
        assert_eq!(delay, policy.delay(n, seed), "retry {n} of {policy}");
        let (Some(delay), Some((least, most))) = (delay, policy.bounds(n)) else {
            assert_eq!((delay, policy.bounds(n)), (None, None), "retry {n} of {policy}");
            break;
        };
        assert!(least <= delay && delay <= most, "retry {n} of {policy}: {least:?} <= {delay:?} <= {most:?}");
        if let (Some(cap), false) = (policy.cap(), matches!(policy.jitter(), Jitter::Factor(_))) {
            assert!(most <= cap, "retry {n} of {policy}: {most:?} is above the cap");
        }
        sum = sum.saturating_add(delay);
        if let Some((least, most)) = policy.elapsed_bounds(n) {
            assert!(least <= sum.min(most), "until retry {n} of {policy}: {least:?} <= {sum:?} <= {most:?}");
        }
    }
    let retries = policy.max_attempts().map_or(u32::MAX, |attempts| attempts.get() - 1);
    let delays = policy.delays(seed).take(RETRIES as usize).count();
    assert!(delays as u32 == retries.min(RETRIES) || policy.bounds(1).is_none() && delays == 0, "{policy}: {delays}");
}

fn forecasts_agree(policy: &Policy, n: u32, q: f64) {
    let bounds = policy.bounds(n);
    let within = |value: Option<Duration>, bounds: Option<(Duration, Duration)>, what: &str| match (value, bounds) {
        (Some(value), Some((least, most))) => {
            // Computed in floating point: exact for an hour, off by some nanoseconds for a year.
            let rounding = Duration::from_nanos((most.as_nanos() >> 50) as u64);
            assert!(
                least <= value + rounding && value <= most + rounding,
                "{what} of retry {n} of {policy}: {least:?} <= {value:?} <= {most:?}"
            );
        }
        (None, None) => {}
        other => panic!("{what} of retry {n} of {policy}: {other:?}"),
    };
    within(policy.mean(n), bounds, "mean");
    within(policy.elapsed_mean(n), policy.elapsed_bounds(n), "elapsed mean");
    assert_eq!(policy.quantile(n, f64::NAN), None);
    if q.is_nan() {
        return;
    }
    within(policy.quantile(n, q), bounds, "quantile");
    assert!(policy.quantile(n, q) <= policy.quantile(n, q + 0.1), "a higher quantile of {policy} is not lower");
    // Computed from 4096 replayed calls for decorrelated jitter, so checked for few retries only.
    if n <= 3 {
        within(policy.elapsed_quantile(n, q), policy.elapsed_bounds(n), "elapsed quantile");
    }
}

/// Checks the last retry of policies that reach their cap soon. Computing a delay replays the ceilings before it, which
/// takes too long for others.
fn far_retries_have_delays(policy: &Policy, seed: Seed) {
    let reaches_cap_soon = match policy.backoff() {
        Backoff::Exponential { multiplier, .. } => *multiplier >= 1.5 && policy.jitter() != Jitter::Decorrelated,
        Backoff::Constant { .. } | Backoff::List(_) => true,
        _ => false,
    };
    if reaches_cap_soon {
        let (delay, bounds) = (policy.delay(u32::MAX, seed), policy.bounds(1000));
        let within = delay.zip(bounds).is_some_and(|(delay, (least, most))| least <= delay && delay <= most);
        assert!(within, "the last retry of {policy}: {delay:?} in {bounds:?}");
    }
}
