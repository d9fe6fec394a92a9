//! CK: cenkalti/backoff, as a policy. The other rows are tested with `stagger-cenkalti`, which replaces the package.

use core::time::Duration;

use stagger_core::profile::{CENKALTI, GOOGLE_HTTP_JAVA};
use stagger_core::{Jitter, Policy, Seed, StopReason};

use crate::laws::support::{Call, ms, secs};

#[test]
fn ck_01_defaults() {
    for policy in [CENKALTI.policy(), GOOGLE_HTTP_JAVA.policy()] {
        assert_eq!((policy.base(), policy.cap()), (ms(500), Some(secs(60))));
        assert_eq!((policy.max_elapsed(), policy.max_attempts()), (Some(secs(900)), None));
        assert_eq!(policy.bounds(1), Some((ms(250), ms(750))));
        assert_eq!(policy.bounds(2), Some((ms(375), ms(1125))));
    }
}

/// The table in the package's documentation is in seconds, truncated to three decimals, and computed from rounded
/// ceilings.
#[test]
fn ck_03_ranges_match_the_documented_table() {
    let table = [
        (0.25, 0.75),
        (0.375, 1.125),
        (0.562, 1.687),
        (0.8435, 2.53),
        (1.265, 3.795),
        (1.897, 5.692),
        (2.846, 8.538),
        (4.269, 12.807),
        (6.403, 19.210),
    ];
    for (n, (lo, hi)) in (1..).zip(table) {
        let (least, most) = CENKALTI.policy().bounds(n).unwrap();
        for (got, want) in [(least, lo), (most, hi)] {
            let got = got.as_secs_f64();
            assert!(got >= want && got - want < want * 0.001, "request {n}: {got}, not {want}");
        }
    }
}

/// The cap applies to the ceiling. Jitter then adds up to half of it.
#[test]
fn cenkalti_jitter_may_exceed_the_cap_by_half() {
    assert_eq!(CENKALTI.policy().bounds(20), Some((secs(30), secs(90))));
}

/// From the tenth on, ceilings are not whole nanoseconds; the package truncates after each step.
#[test]
fn cenkalti_truncates_each_step_to_nanoseconds() {
    let (mut ceiling, policy) = (500_000_000_u64, CENKALTI.policy());
    for n in 1..=13 {
        let (lo, hi) = policy.bounds(n).unwrap();
        let half = ceiling / 2;
        assert_eq!((lo.as_nanos() as u64, hi.as_nanos() as u64), (half, ceiling + half), "retry {n}");
        ceiling = ((ceiling as f64 * 1.5) as u64).min(60_000_000_000);
    }
    let native = Policy::exponential(ms(500), secs(60)).multiplier(1.5).jitter(Jitter::None).build().unwrap();
    assert_eq!(native.delay(11, Seed::new(1)), Some(Duration::from_nanos(28_832_519_531)));
    assert_eq!(policy.bounds(11).unwrap().1, Duration::from_nanos(28_832_519_530 * 3 / 2));
}

#[test]
fn cenkalti_max_elapsed_includes_the_next_delay() {
    let trace = Call::new(&CENKALTI.policy()).failing();
    assert_eq!(trace.stop, Some(StopReason::Elapsed));
    assert!(trace.waits.iter().sum::<Duration>() <= secs(900));
}
