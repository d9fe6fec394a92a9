//! XB: families of jitter, and properties that hold across libraries.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::schedule::draw;
use stagger_core::{FailureKind, HintMode, Jitter, Outcome, Policy, Seed, ServerHint, StopReason};

use super::series::upper_bounds;
use crate::laws::support::{Call, JITTERS, any_delays, bits_of, cases, ms, secs};

#[test]
fn xb_01_full_jitter_spans_zero_to_ceiling_with_mean_at_half() {
    let policy = Policy::exponential(ms(100), secs(10)).build().unwrap();
    let want = [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000].map(ms);
    assert_eq!(upper_bounds(&policy, 9), want);
    for (n, hi) in (1..).zip(want) {
        assert_eq!(policy.mean(n), Some(hi / 2));
        assert_eq!(policy.bounds(n), Some((Duration::ZERO, hi)));
    }
}

#[test]
fn xb_03_decorrelated_draws_at_the_midpoint() {
    let (base, cap) = (ms(100), secs(10));
    let mut previous = base;
    let drawn = [(); 6].map(|()| {
        previous = draw(base, (3 * previous).min(cap), bits_of(0.5));
        previous
    });
    assert_eq!(drawn, [200_000, 350_000, 575_000, 912_500, 1_418_750, 2_178_125].map(Duration::from_micros));
}

#[test]
fn xb_05_decorrelated_draws_at_the_upper_end_reach_the_cap() {
    let policy = Policy::decorrelated(ms(100), secs(10)).build().unwrap();
    assert_eq!(upper_bounds(&policy, 6), [300, 900, 2700, 8100, 10000, 10000].map(ms));
}

/// Envoy ignores a hint above its maximum and continues with its own backoff. stagger stops: the server has said that
/// it will not answer earlier.
#[test]
fn xb_07_hint_is_spread_by_half_and_above_max_hint_stops() {
    let policy = Policy::exponential(ms(500), secs(5)).max_hint(secs(300)).max_attempts(2).build().unwrap();
    let hinted = |seed, hint| Call::new(&policy).seed(seed).run([Outcome::throttled(Some(ServerHint::AtLeast(hint)))]);
    let waits: Vec<_> = (0..500).map(|seed| hinted(seed, secs(10)).waits[0]).collect();
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(secs(10) <= least && least < ms(10_100), "{least:?}");
    assert!(ms(14_900) < most && most <= secs(15), "{most:?}");
    assert_eq!(hinted(1, secs(400)).stop, Some(StopReason::Hint));
}

#[test]
fn xb_15_hint_modes() {
    let policy = |mode| Policy::constant(secs(1)).jitter(Jitter::None).hint_mode(mode).max_attempts(2);
    let wait = |builder: stagger_core::PolicyBuilder, seed| {
        let policy = builder.build().unwrap();
        let failed = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(secs(10))) };
        let trace = Call::new(&policy).seed(seed).run([failed]);
        (trace.waits.first().copied(), trace.stop)
    };
    assert_eq!(wait(policy(HintMode::Exact), 1), (Some(secs(10)), None));
    for seed in 0..100 {
        let (waited, _) = wait(policy(HintMode::AtLeast), seed);
        assert!(waited.is_some_and(|waited| secs(10) <= waited && waited <= secs(15)), "{waited:?}");
    }
    assert_eq!(wait(policy(HintMode::Clamp(secs(5))), 1), (Some(secs(6)), None));
    assert_eq!(wait(policy(HintMode::Exact).max_hint(secs(9)), 1), (None, Some(StopReason::Hint)));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn xb_10_ceilings_are_monotonic_capped_and_never_panic(
        base in 1..=u64::MAX,
        above in any::<u64>(),
        multiplier in prop_oneof![Just(1.0), 1.0..1.01_f64, 1.0..10.0_f64, 1.0..f64::MAX],
        steps in prop::collection::vec(1..=400_u32, 1..20),
    ) {
        let base = Duration::from_nanos(base);
        let cap = base.saturating_add(Duration::from_nanos(above));
        let policy = Policy::exponential(base, cap).multiplier(multiplier).jitter(Jitter::None).build().unwrap();
        let (mut n, mut before) = (1, Duration::ZERO);
        for step in steps {
            let ceiling = policy.delay(n, Seed::new(0)).unwrap();
            prop_assert!(before <= ceiling && ceiling <= cap, "retry {n}: {before:?}, then {ceiling:?}");
            (before, n) = (ceiling, n + step);
        }
        if multiplier > 1.01 || policy.delay(2, Seed::new(0)) == policy.delay(1, Seed::new(0)) {
            prop_assert!(policy.delay(u32::MAX, Seed::new(0)).unwrap() >= before);
        }
    }

    #[test]
    fn xb_11_at_the_cap_jitter_still_spans_an_interval(
        jitter in 0..JITTERS.len(), n in 1..200_u32, base in 1..1_000_u64,
    ) {
        let jitter = JITTERS[jitter];
        let policy = Policy::exponential(ms(base), ms(4 * base)).jitter(jitter).build().unwrap();
        let (lo, hi) = policy.bounds(n).unwrap();
        // `Jitter::None` has an empty interval by definition.
        prop_assert_eq!(lo < hi, jitter != Jitter::None);
        prop_assert_eq!((draw(lo, hi, 0), draw(lo, hi, u64::MAX)), (lo, hi));
    }

    #[test]
    fn xb_12_no_delay_exceeds_the_cap(policy in any_delays(), seed in any::<u64>()) {
        // The only jitter that may exceed the cap, by its ratio.
        prop_assume!(!matches!(policy.jitter(), Jitter::Factor(_)));
        let cap = policy.cap().unwrap_or(Duration::MAX);
        for delay in policy.schedule(Seed::new(seed)).take(50) {
            prop_assert!(delay <= cap, "{delay:?}");
        }
    }

    /// The core computes a delay in three ways. That all drivers produce one trace is tested in `stagger`.
    #[test]
    fn xb_13_iterator_random_access_and_machine_agree(policy in any_delays(), seed in any::<u64>()) {
        let policy = policy.to_builder().max_attempts(20).build().unwrap();
        let listed: Vec<_> = policy.delays(Seed::new(seed)).collect();
        let reached: Vec<_> = (1..20).map(|n| policy.delay(n, Seed::new(seed)).unwrap()).collect();
        prop_assert_eq!(&listed, &reached);
        prop_assert_eq!(&listed, &Call::new(&policy).seed(seed).failing().waits);
    }

    #[test]
    fn xb_14_no_attempt_starts_after_max_elapsed(
        policy in any_delays(),
        seed in any::<u64>(),
        share in 0.0..4.0_f64,
        took in 0..2_000_000_000_u64,
    ) {
        // The clock ends after 584 years, so the call must be shorter than a few centuries.
        let scaled = policy.bounds(3).unwrap().1.mul_f64(share).min(secs(1 << 32));
        let limit = scaled.max(policy.floor()).max(policy.base());
        let policy = policy.to_builder().max_elapsed(limit).unlimited_attempts().build();
        prop_assume!(policy.is_ok() && limit <= secs(1 << 33));
        let took = Duration::from_nanos(took).max(limit / 100).max(Duration::from_nanos(1));
        let trace = Call::new(&policy.unwrap()).seed(seed).took(took).failing();
        prop_assert!(trace.last_start <= limit, "{trace:?}");
        prop_assert_eq!(trace.stop, Some(StopReason::Elapsed));
    }
}
