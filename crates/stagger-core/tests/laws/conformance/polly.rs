//! PL: Polly.

use core::time::Duration;

use stagger_core::profile::POLLY_V8;
use stagger_core::schedule::draw;
use stagger_core::{FailureKind, HintMode, Jitter, Outcome, Policy, PolicyProblem, Ratio, Seed, ServerHint};

use super::series::{ceilings, upper_bounds};
use crate::laws::support::{Call, JITTERS, bits_of, ms, secs};

#[test]
fn pl_01_jitter_is_plus_or_minus_a_quarter() {
    let policy = Policy::constant(secs(1)).jitter(POLLY_V8.policy().jitter()).build().unwrap();
    let (lo, hi) = policy.bounds(1).unwrap();
    for (r, want) in [(0.0, 750), (0.4, 950), (0.6, 1050), (1.0, 1250)] {
        let got = draw(lo, hi, bits_of(r));
        // The interval holds whole nanoseconds, both ends included.
        assert!(got.abs_diff(ms(want)) <= Duration::from_nanos(1), "r = {r}: {got:?}");
    }
}

#[test]
fn pl_03_constant_backoff() {
    assert_eq!(ceilings(Policy::constant(secs(1)), 3), [secs(1); 3]);
}

#[test]
fn pl_05_exponential_backoff() {
    assert_eq!(ceilings(POLLY_V8.policy().to_builder().base(secs(1)), 3), [1, 2, 4].map(secs));
}

/// Polly caps after drawing, so beyond the cap every client waits exactly the cap. Only the profile's jitter does that.
/// (A cap below the base, as in the row, is rejected.)
#[test]
fn pl_07_the_profile_caps_after_jitter() {
    let jitter = POLLY_V8.policy().jitter();
    let policy = Policy::linear(secs(1), secs(10), secs(1)).jitter(jitter).build().unwrap();
    assert_eq!(policy.bounds(3), Some((secs(1), secs(1))));
    let policy = Policy::exponential(secs(1), secs(1)).jitter(jitter).build().unwrap();
    // The delay depends on its draw and the previous one, which may be close to each other on the curve.
    let at_cap = (0..1_000).filter(|&seed| policy.delay(9, Seed::new(seed)) == Some(secs(1))).count();
    assert!(at_cap >= 990, "{at_cap}");
}

#[test]
fn pl_07_native_jitters_draw_after_the_cap() {
    assert!(Policy::exponential(secs(10), secs(1)).build().unwrap_err().problems().eq([PolicyProblem::CapBelowBase]));
    for jitter in JITTERS {
        for builder in [Policy::exponential(ms(500), secs(1)), Policy::linear(ms(500), ms(500), secs(1))] {
            let Ok(policy) = builder.jitter(jitter).build() else {
                assert_eq!(jitter, Jitter::Decorrelated, "decorrelated jitter requires exponential backoff");
                continue;
            };
            let want = match jitter {
                Jitter::None => (secs(1), secs(1)),
                Jitter::Full => (Duration::ZERO, secs(1)),
                Jitter::Equal | Jitter::Decorrelated => (ms(500), secs(1)),
                Jitter::Factor(Ratio::ONE) => (Duration::ZERO, secs(2)),
                _ => (ms(800), ms(1200)),
            };
            assert_eq!(policy.bounds(3), Some(want), "{jitter}");
        }
    }
}

/// The longest duration is 292,277 years (of ticks) in Polly, and 292 years (of nanoseconds) in stagger.
#[test]
fn pl_09_an_uncapped_delay_saturates() {
    let policy = Policy::exponential(secs(86_400), secs(86_400)).uncapped().jitter(Jitter::None).build().unwrap();
    let longest = policy.delay(1000, Seed::new(1)).unwrap();
    assert_eq!(policy.delay(u32::MAX, Seed::new(2)), Some(longest));
    assert!(Duration::from_nanos(i64::MAX as u64) - longest < Duration::from_micros(2), "{longest:?}");
}

#[test]
fn pl_11_jittered_delays_are_positive_and_capped() {
    let capped = Policy::exponential(secs(1), secs(30)).jitter(Jitter::Equal).build().unwrap();
    let free = capped.to_builder().uncapped().build().unwrap();
    for n in 1..=1025 {
        let delay = capped.delay(n, Seed::new(5)).unwrap();
        assert!(!delay.is_zero() && delay <= secs(30), "retry {n}: {delay:?}");
        assert!(!free.delay(n, Seed::new(5)).unwrap().is_zero(), "retry {n}");
    }
}

/// Polly counts attempts from 0, stagger from 1.
#[test]
fn pl_17_linear_backoff() {
    let policy = Policy::linear(secs(2), secs(2), secs(60)).jitter(Jitter::None).max_attempts(4).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.waits, trace.attempts), ([2, 4, 6].map(secs).to_vec(), 4));
}

/// `MaxRetryAttempts` 12 is `max_attempts` 13, which includes the first call.
#[test]
fn pl_19_twelve_retries_are_thirteen_attempts() {
    let policy = Policy::zero().max_attempts(13).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.waits.len(), trace.attempts, trace.runs), (12, 13, 13));
}

/// The result of a delay generator is an exact hint.
#[test]
fn pl_21_a_generated_delay_replaces_the_computed_one() {
    let policy = Policy::exponential(secs(1), secs(30)).hint_mode(HintMode::Exact).max_attempts(4).build().unwrap();
    let failed = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(ms(120))) };
    assert_eq!(Call::new(&policy).run([failed; 4]).waits, [ms(120); 3]);
}

#[test]
fn pl_23_without_a_generated_delay_the_computed_one_is_used() {
    let policy = Policy::exponential(secs(1), secs(30)).hint_mode(HintMode::Exact).max_attempts(4).build().unwrap();
    let trace = Call::new(&policy).seed(4).failing();
    assert!(trace.waits.iter().copied().eq(policy.delays(Seed::new(4))));
    assert_eq!(upper_bounds(&policy, 3), [1, 2, 4].map(secs));
}
