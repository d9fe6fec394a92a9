//! The forecasts of every profile, compared with its drawn delays.

use core::time::Duration;

use stagger_core::profile::Profile;
use stagger_core::{Outcome, Policy, Seed};

use crate::laws::support::{Call, mean};

const CALLS: usize = 6_000;

fn drawn(policy: &Policy, n: u32) -> Vec<Duration> {
    let mut sample: Vec<_> = (0..CALLS as u64).map(|id| policy.delay(n, Seed::new(6).for_call(id)).unwrap()).collect();
    sample.sort_unstable();
    sample
}

#[test]
fn profile_delays_are_in_bounds_and_randomly_accessible() {
    for profile in Profile::all() {
        let policy = profile.policy();
        for seed in 0..200 {
            for (n, delay) in (1..=20).zip(policy.schedule(Seed::new(seed))) {
                let (lo, hi) = policy.bounds(n).unwrap();
                assert!(lo <= delay && delay <= hi, "{} retry {n}: {delay:?} of {lo:?}..{hi:?}", profile.name());
                assert_eq!(policy.delay(n, Seed::new(seed)), Some(delay), "{} retry {n}", profile.name());
            }
        }
    }
}

#[test]
fn profile_quantiles_match_drawn_delays() {
    let shares = [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98];
    for profile in Profile::all() {
        let policy = profile.policy();
        for n in [1, 2, 3, 5, 9] {
            let sample = drawn(&policy, n);
            let share_below = |x| sample.partition_point(|&delay| delay < x) as f64 / CALLS as f64;
            for (q, x) in shares.into_iter().zip(policy.quantiles(n, shares).unwrap()) {
                // If many draws have the same value, it covers a range of quantiles. A grid of values shifts them, too.
                let (below, at) = (
                    share_below(x.saturating_sub(Duration::from_millis(1))),
                    share_below(x + Duration::from_millis(1)),
                );
                let within = 5.0 * (q * (1.0 - q) / CALLS as f64).sqrt() + 0.006;
                assert!(
                    below - within <= q && q <= at + within,
                    "{} retry {n}: {x:?} has {below}..{at}, not {q}",
                    profile.name()
                );
            }
        }
    }
}

#[test]
fn profile_means_match_drawn_delays() {
    for profile in Profile::all() {
        let policy = profile.policy();
        for n in [1, 2, 4, 8] {
            let (sample, got) = (drawn(&policy, n), policy.mean(n).unwrap().as_nanos() as f64);
            let want = mean(&sample);
            let (lo, hi) = policy.bounds(n).unwrap();
            let within = 5.0 * (hi - lo).as_nanos() as f64 / 2.0 / (CALLS as f64).sqrt() + want * 0.002 + 5e5;
            assert!((got - want).abs() < within, "{} retry {n}: {got}, not {want}", profile.name());
        }
    }
}

#[test]
fn profile_elapsed_forecasts_match_drawn_calls() {
    for profile in Profile::all() {
        let policy = profile.policy();
        let n = 4;
        let (least, most) = policy.elapsed_bounds(n).unwrap();
        let means: Duration = (1..=n).map(|k| policy.mean(k).unwrap()).sum::<Duration>() + policy.spread() / 2;
        assert!(
            policy.elapsed_mean(n).unwrap().abs_diff(means) <= means / 1_000 + Duration::from_nanos(8),
            "{}",
            profile.name()
        );
        let [low, middle, high] = policy.elapsed_quantiles(n, [0.1, 0.5, 0.9]).unwrap();
        assert!(least <= low && low <= middle && middle <= high && high <= most, "{}", profile.name());
        let mut waited: Vec<Duration> = (0..CALLS as u64)
            .map(|id| {
                let key = Seed::new(8).for_call(id);
                policy.schedule(key).take(n as usize).sum::<Duration>() + policy.first_spread(key)
            })
            .collect();
        waited.sort_unstable();
        let share = waited.partition_point(|&length| length <= middle) as f64 / CALLS as f64;
        let same = waited.first() == waited.last();
        assert!(same || (share - 0.5).abs() < 0.06, "{}: {middle:?} is the {share}-quantile", profile.name());
    }
}

/// The formula as published puts many clients on the cap. `Jitter::Decorrelated` does not.
#[test]
fn published_decorrelated_waits_the_cap_in_a_third_of_calls() {
    let policy: Policy = "exponential base=100ms cap=5s jitter=aws-blog max-attempts=inf".parse().unwrap();
    let at_cap = drawn(&policy, 12).iter().filter(|delay| **delay == Duration::from_secs(5)).count();
    assert!((at_cap as f64 / CALLS as f64 - 0.31).abs() < 0.03, "{at_cap}");
}

/// Only the first delay is random; the later ones grow by a fixed factor.
#[test]
fn reconnecting_websocket_draws_only_its_first_delay() {
    let policy = Profile::named("reconnecting-websocket").unwrap().policy();
    for seed in 0..100 {
        let delays: Vec<f64> = policy.schedule(Seed::new(seed)).take(12).map(|delay| delay.as_secs_f64()).collect();
        for pair in delays.windows(2) {
            assert!((pair[1] - (pair[0] * 1.3).min(10.0)).abs() < 1e-6, "{delays:?}");
        }
        assert!((delays[11] - 10.0).abs() < 1e-9);
    }
}

#[test]
fn websockets_draws_only_its_second_delay_below_5_seconds() {
    let policy = Profile::named("websockets").unwrap().policy();
    let want = [3.1, 5.0158, 8.115_564, 13.130_983, 21.245_93, 34.375_915, 55.620_231, 89.993_534, 90.0, 90.0];
    let mut firsts = Vec::new();
    for seed in 0..300 {
        let delays: Vec<f64> = policy.schedule(Seed::new(seed)).take(12).map(|delay| delay.as_secs_f64()).collect();
        assert!(delays[0].abs() < 1e-12 && delays[1] <= 5.0);
        firsts.push(delays[1]);
        assert!(delays[2..].iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5), "{delays:?}");
    }
    assert!(firsts.iter().any(|&first| first < 0.2) && firsts.iter().any(|&first| first > 4.8));
}

/// `throttled_base` also changes the delays of jitters that belong to a profile.
#[test]
fn profile_jitters_use_the_base_of_the_failure_kind() {
    for (name, factor) in [("polly-v8", 4), ("socket.io", 4), ("cenkalti", 4), ("stubborn-io", 3)] {
        let plain = Profile::named(name).unwrap().policy().to_builder().unlimited_attempts();
        let throttled = plain.throttled_base(plain.build().unwrap().base() * factor).build().unwrap();
        for seed in 0..50 {
            let wait = |policy: &Policy, outcome| Call::new(policy).seed(seed).run([outcome]).waits[0];
            let (transient, later) = (wait(&throttled, Outcome::TRANSIENT), wait(&throttled, Outcome::throttled(None)));
            let want = transient * factor;
            let within = Duration::from_millis(u64::from(factor));
            // socket.io applies its cap last, and its base is a fifth of the cap.
            let want = if name == "socket.io" { want.min(Duration::from_secs(5)) } else { want };
            assert!(later.abs_diff(want) <= within, "{name}, seed {seed}: {later:?}, not {want:?}");
            assert_eq!(transient, wait(&plain.build().unwrap(), Outcome::TRANSIENT));
        }
    }
}
