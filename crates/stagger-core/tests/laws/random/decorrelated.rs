//! The distribution of decorrelated delays and its forecast, both compared with an independent implementation.

use core::time::Duration;

use stagger_core::{Policy, PolicyBuilder, Seed};

use crate::laws::support::{mean, ms, secs};

const CALLS: usize = 20_000;

fn policies() -> [(&'static str, PolicyBuilder, f64); 3] {
    [
        ("cap of 50 bases", Policy::decorrelated(ms(100), secs(5)), 5e9),
        ("cap of 2 bases", Policy::decorrelated(ms(100), ms(200)), 2e8),
        ("no cap", Policy::decorrelated(ms(100), secs(1)).uncapped(), f64::INFINITY),
    ]
}

/// A generator that is independent of the one under test.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns delays before retry `n`, sorted, drawn by the definition with an independent generator.
fn by_definition(cap: f64, n: u32) -> Vec<f64> {
    let (base, mut rng) = (1e8, SplitMix64(3));
    let mut sample: Vec<f64> = (0..CALLS)
        .map(|_| (0..n).fold(base, |previous: f64, _| base + rng.next() * (base.max(cap.min(3.0 * previous)) - base)))
        .collect();
    sample.sort_by(f64::total_cmp);
    sample
}

fn drawn(policy: &Policy, n: u32) -> Vec<f64> {
    let mut sample: Vec<f64> =
        (0..CALLS as u64).map(|id| policy.delay(n, Seed::new(4).for_call(id)).unwrap().as_nanos() as f64).collect();
    sample.sort_by(f64::total_cmp);
    sample
}

/// Returns the fraction of a sorted sample that is at most `x`.
fn share_below(sample: &[f64], x: f64) -> f64 {
    sample.partition_point(|&y| y <= x) as f64 / sample.len() as f64
}

#[test]
fn drawn_delays_follow_the_definition() {
    for (name, builder, cap) in policies() {
        let policy = builder.build().unwrap();
        for n in [1, 2, 5, 12] {
            let (ours, theirs) = (drawn(&policy, n), by_definition(cap, n));
            // For two samples, the limit is that of one sample times the square root of two.
            let limit = 1.42 * crate::laws::support::ks_limit(CALLS);
            let worst = theirs.iter().step_by(40).map(|&x| (share_below(&ours, x) - share_below(&theirs, x)).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < limit, "{name}, retry {n}: {worst}");
        }
    }
}

#[test]
fn forecast_quantiles_follow_the_definition() {
    for (name, builder, cap) in policies() {
        let policy = builder.build().unwrap();
        for n in [1, 2, 3, 5, 8, 12, 30] {
            let sample = by_definition(cap, n);
            for q in [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99] {
                let x = policy.quantile(n, q).unwrap().as_nanos() as f64;
                let got = share_below(&sample, x);
                // Five standard deviations of the sample, plus the documented accuracy of the forecast.
                let within = 5.0 * (q * (1.0 - q) / CALLS as f64).sqrt() + 0.005;
                assert!((got - q).abs() < within, "{name}, retry {n}: {x} is the {got}-quantile, not the {q}-quantile");
            }
        }
    }
}

/// The distributions of the first two delays have a closed form, which is more precise than a sample.
#[test]
fn the_forecast_of_two_delays_matches_the_closed_form() {
    const BASE: f64 = 1e8;
    // Uniform on [base, 3 · base], and then on [base, min(cap, 3x)].
    let first = |y: f64, cap: f64| ((y - BASE) / (cap.min(3.0 * BASE) - BASE)).clamp(0.0, 1.0);
    let second = |y: f64, cap: f64| {
        let (longest, bend) = (3.0 * BASE, cap / 3.0);
        // The x whose interval [base, 3x] reaches y, but not the cap, integrated over dx / (3x − base).
        let from = (y / 3.0).clamp(BASE, bend.min(longest));
        let growing = ((3.0 * bend.min(longest) - BASE) / (3.0 * from - BASE)).ln() / 3.0;
        let at_cap = (longest - bend).max(0.0) / (cap - BASE);
        let (below, width) = (from - BASE, longest - BASE);
        ((below + (y - BASE) * (growing + at_cap)) / width).clamp(0.0, 1.0)
    };
    for cap in [5e8, 9e8, 2e9] {
        let policy = Policy::decorrelated(ms(100), Duration::from_nanos(cap as u64)).build().unwrap();
        for q in (1..200).map(|i| f64::from(i) / 200.0) {
            let x = |n| policy.quantile(n, q).unwrap().as_nanos() as f64;
            assert!((first(x(1), cap) - q).abs() < 1e-6, "cap {cap}, retry 1: {} at {q}", first(x(1), cap));
            assert!((second(x(2), cap) - q).abs() < 2e-5, "cap {cap}, retry 2: {} at {q}", second(x(2), cap));
        }
    }
}

/// Without a cap the mean is exactly `(base + 3 · previous mean) / 2`.
#[test]
fn the_uncapped_mean_forecast_matches_the_recurrence() {
    let policy = Policy::decorrelated(ms(100), secs(1)).uncapped().build().unwrap();
    let (mut want, mut sum) = (1e8, 0.0);
    for n in 1..=25 {
        want = (1e8 + 3.0 * want) / 2.0;
        sum += want;
        let got = policy.mean(n).unwrap().as_nanos() as f64;
        assert!((got / want - 1.0).abs() < 0.002, "retry {n}: {got}, not {want}");
        let got = policy.elapsed_mean(n).unwrap().as_nanos() as f64;
        assert!((got / sum - 1.0).abs() < 0.002, "until retry {n}: {got}, not {sum}");
    }
}

#[test]
fn the_capped_mean_forecast_matches_drawn_delays() {
    for (name, builder, _) in &policies()[..2] {
        let policy = builder.build().unwrap();
        for n in [1, 4, 12, 40] {
            let sample: Vec<_> =
                (0..CALLS as u64).map(|id| policy.delay(n, Seed::new(8).for_call(id)).unwrap()).collect();
            let (got, want) = (policy.mean(n).unwrap().as_nanos() as f64, mean(&sample));
            let cap = policy.cap().unwrap().as_nanos() as f64;
            // The standard deviation of one delay is below a third of the cap.
            let within = 0.002 * want + 5.0 * cap / 3.0 / (CALLS as f64).sqrt();
            assert!((got - want).abs() < within, "{name}, retry {n}: {got}, not {want}");
        }
    }
}

/// The published formula puts many clients on the cap. This one does not, however long the outage.
#[test]
fn decorrelated_delays_do_not_accumulate_at_the_cap() {
    let policy = Policy::decorrelated(ms(100), secs(5)).build().unwrap();
    let sample = drawn(&policy, 12);
    let near = 1.0 - share_below(&sample, 4.99e9);
    assert!(near < 0.005, "{near} of the clients wait within 10 ms of the cap");
    // With `min(cap, U(base, 3 · previous))`, as published, 31 % of the clients wait exactly the cap.
    let mut rng = SplitMix64(5);
    let published = (0..CALLS)
        .filter(|_| (0..12).fold(1e8, |previous: f64, _| (1e8 + rng.next() * (3.0 * previous - 1e8)).min(5e9)) >= 5e9);
    let published = published.count() as f64 / CALLS as f64;
    assert!((published - 0.31).abs() < 0.01, "{published}");
    assert!(policy.quantile(12, 0.9).unwrap() < secs(5));
    assert_eq!(policy.bounds(12), Some((ms(100), Duration::from_secs(5))));
}
