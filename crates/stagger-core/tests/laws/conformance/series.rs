//! Series stated in the documentation, and helpers that read a policy the way the tables do.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Seed};

use crate::laws::support::{Call, ms, secs};

/// Returns the ceilings of the first retries: the delays without jitter.
pub(super) fn ceilings(builder: PolicyBuilder, count: usize) -> Vec<Duration> {
    let policy = builder.jitter(Jitter::None).build().unwrap();
    policy.schedule(Seed::new(0)).take(count).collect()
}

/// Returns the upper bounds of the first retries: the delays for `r = 1`.
pub(super) fn upper_bounds(policy: &Policy, count: u32) -> Vec<Duration> {
    (1..=count).map(|n| policy.bounds(n).unwrap().1).collect()
}

#[test]
fn ceilings_double_from_500_ms_to_a_cap_of_30_s() {
    let want = [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000].map(ms);
    assert_eq!(ceilings(Policy::exponential(ms(500), secs(30)), 8), want);
}

#[test]
fn ceilings_double_from_100_ms_to_a_cap_of_32_s() {
    let want = [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 32000, 32000].map(ms);
    assert_eq!(ceilings(Policy::exponential(ms(100), secs(32)), 11), want);
}

#[test]
fn full_jitter_at_the_cap_is_uniform_from_zero_to_the_cap() {
    let policy = Policy::exponential(secs(1), secs(30)).build().unwrap();
    assert_eq!(policy.bounds(6), Some((Duration::ZERO, secs(30))));
    let drawn: Vec<_> = (0..2_000).map(|id| policy.delay(6, Seed::new(3).for_call(id)).unwrap()).collect();
    for tenth in 0..10 {
        let (lo, hi) = (secs(3 * tenth), secs(3 * tenth + 3));
        let inside = drawn.iter().filter(|&&delay| lo <= delay && delay <= hi).count();
        // 200 expected, standard deviation 13.4.
        assert!((130..=270).contains(&inside), "{inside} of 2000 in {lo:?}..{hi:?}");
    }
}

#[test]
fn a_call_waits_the_scheduled_delays_and_counts_attempts() {
    let policy = Policy::exponential(ms(500), secs(30)).max_attempts(8).build().unwrap();
    let trace = Call::new(&policy).seed(9).failing();
    assert!(trace.waits.iter().copied().eq(policy.delays(Seed::new(9))), "{trace:?}");
    assert_eq!((trace.attempts, trace.waits.len()), (8, 7));
}
