//! R4: resilience4j.

use core::time::Duration;

use stagger_core::profile::RESILIENCE4J;
use stagger_core::{Jitter, Policy, Ratio, Seed, StopReason};

use super::series::ceilings;
use crate::laws::support::{Call, ms, secs};

/// Every step is truncated to whole milliseconds, and the next one is computed from the truncated value.
#[test]
fn r4_01_exponential_backoff_with_multiplier_1_5() {
    let policy = RESILIENCE4J.policy();
    for (n, want) in (1..).zip([500, 750, 1125, 1687, 2530, 3795, 5692, 8538]) {
        // Jitter is plus or minus half of the ceiling.
        let (lo, hi) = policy.bounds(n).unwrap();
        assert_eq!((lo + hi) / 2, ms(want), "retry {n}");
        assert_eq!(hi - lo, ms(want), "retry {n}");
        assert!((0..100).all(|seed| policy.delay(n, Seed::new(seed)).unwrap().subsec_nanos() % 1_000_000 == 0));
    }
    // The native ceilings are exact to the nanosecond.
    let native = ceilings(Policy::exponential(ms(500), secs(60)).multiplier(1.5), 8);
    assert_eq!(native[7], Duration::from_nanos(8_542_968_750));
}

#[test]
fn r4_03_a_randomized_interval() {
    let policy = Policy::constant(ms(100)).jitter(RESILIENCE4J.policy().jitter()).build().unwrap();
    assert_eq!(policy.bounds(7), Some((ms(50), ms(150))));
}

#[test]
fn r4_05_jitter_factors_from_0_to_100_percent_are_valid() {
    for (percent, lo, hi) in [(0, 100, 100), (10, 90, 110), (25, 75, 125), (50, 50, 150), (75, 25, 175), (100, 0, 200)]
    {
        let policy = Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(percent))).build().unwrap();
        assert_eq!(policy.bounds(1), Some((ms(lo), ms(hi))), "{percent} %");
    }
    assert!(Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(101))).build().is_err());
}

#[test]
fn r4_07_a_single_attempt_never_sleeps() {
    let policy = Policy::exponential(ms(500), secs(30)).max_attempts(1).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.runs, trace.waits, trace.stop), (1, vec![], Some(StopReason::Attempts)));
}
