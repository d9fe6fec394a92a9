//! R4: resilience4j.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Ratio, Stop};

use super::series::ceilings;
use crate::laws::support::{Call, ms, secs};

/// resilience4j truncates to milliseconds in every step and goes on from there, so it falls behind step by step; here
/// a step is exact to the nanosecond. One step from a value of the row agrees to the millisecond that was cut off.
#[test]
fn r4_01_exponential_with_a_multiplier_of_one_and_a_half() {
    let row = [500, 750, 1125, 1687, 2530, 3795, 5692, 8538];
    for pair in row.windows(2) {
        let series = ceilings(Policy::exponential(ms(pair[0]), secs(60)).multiplier(1.5), 2);
        assert_eq!(series[1].as_millis(), u128::from(pair[1]));
    }
    let exact: [u64; 8] = [
        500_000_000,
        750_000_000,
        1_125_000_000,
        1_687_500_000,
        2_531_250_000,
        3_796_875_000,
        5_695_312_500,
        8_542_968_750,
    ];
    let series = ceilings(Policy::exponential(ms(500), secs(60)).multiplier(1.5), 8);
    assert_eq!(series, exact.map(Duration::from_nanos));
    let mut behind = Duration::ZERO;
    for (ours, theirs) in series.into_iter().zip(row.map(ms)) {
        let more = ours.checked_sub(theirs + behind.mul_f64(1.5)).unwrap();
        assert!(more < ms(1), "{ours:?} is {more:?} above {theirs:?} and what it was behind before");
        behind = ours - theirs;
    }
}

#[test]
fn r4_03_a_randomised_interval() {
    let policy = Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(50))).build().unwrap();
    assert_eq!(policy.bounds(7), Some((ms(50), ms(150))));
}

#[test]
fn r4_05_every_share_from_nothing_to_the_whole_is_accepted() {
    for (percent, lo, hi) in [(0, 100, 100), (10, 90, 110), (25, 75, 125), (50, 50, 150), (75, 25, 175), (100, 0, 200)]
    {
        let policy = Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(percent))).build().unwrap();
        assert_eq!(policy.bounds(1), Some((ms(lo), ms(hi))), "{percent} %");
    }
    assert!(Policy::constant(ms(100)).jitter(Jitter::Factor(Ratio::percent(101))).build().is_err());
}

#[test]
fn r4_07_one_attempt_sleeps_never() {
    let policy = Policy::exponential(ms(500), secs(30)).max_attempts(1).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.runs, trace.waits, trace.stop), (1, vec![], Some(Stop::Attempts)));
}
