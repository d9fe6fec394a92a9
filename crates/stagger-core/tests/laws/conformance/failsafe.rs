//! FG: failsafe-go.

use core::time::Duration;

use stagger_core::profile::FAILSAFE_GO;
use stagger_core::schedule::draw;
use stagger_core::{Jitter, Policy, Ratio, StopReason};

use super::series::ceilings;
use crate::laws::support::{Call, bits_of, ms, secs};

#[test]
fn fg_01_a_random_delay_within_a_range() {
    // Full jitter with a floor is the range from floor to ceiling.
    let policy = Policy::exponential(ms(100), ms(100)).floor(ms(10)).build().unwrap();
    let (lo, hi) = policy.bounds(1).unwrap();
    assert_eq!((lo, hi), (ms(10), ms(100)));
    for (r, want) in [(0.0, 10), (0.25, 32), (0.5, 55), (0.75, 77), (1.0, 100)] {
        assert_eq!(draw(lo, hi, bits_of(r)).as_millis(), want, "r = {r}");
    }
}

/// The sign is inverted: in failsafe-go `r = 0` is the longest delay, in stagger the shortest, as in other libraries.
/// The distribution is the same.
#[test]
fn fg_03_a_jitter_factor_of_one_half() {
    let policy = Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(50))).build().unwrap();
    let (lo, hi) = policy.bounds(1).unwrap();
    for (r, want) in [(0.0, 50), (0.25, 75), (0.5, 100), (0.75, 125), (1.0, 150)] {
        let got = draw(lo, hi, bits_of(r));
        assert!(got.abs_diff(ms(want)) <= Duration::from_nanos(1), "r = {r}: {got:?}");
    }
}

/// Symmetric jitter of a fixed duration is not native. For a constant delay it equals a factor of duration / delay. The
/// sign is as in FG-03.
#[test]
fn fg_05_jitter_of_plus_or_minus_50_ms() {
    let policy = Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(50))).build().unwrap();
    assert_eq!(policy.bounds(1), Some((ms(50), ms(150))));
    assert_eq!(policy.mean(1), Some(ms(100)));
}

#[test]
fn fg_07_backoff_doubles_up_to_the_cap() {
    assert_eq!(ceilings(FAILSAFE_GO.policy().to_builder(), 5), [2, 4, 8, 16, 30].map(secs));
}

#[test]
fn fg_09_two_retries_are_three_attempts() {
    let trace = Call::new(&FAILSAFE_GO.policy()).failing();
    assert_eq!((trace.attempts, trace.waits.len(), trace.stop), (3, 2, Some(StopReason::Attempts)));
}

#[test]
fn fg_11_three_retries_are_four_attempts() {
    let policy = Policy::zero().max_attempts(4).build().unwrap();
    assert_eq!(Call::new(&policy).failing().attempts, 4);
    assert_eq!(Policy::DEFAULT.max_attempts().map(core::num::NonZeroU32::get), Some(4));
}
