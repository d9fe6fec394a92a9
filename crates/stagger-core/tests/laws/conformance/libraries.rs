//! The rows of libraries and SDKs whose delays are those of a profile.

use core::time::Duration;

use stagger_core::profile::{
    ANTHROPIC, AWS_DYNAMODB_2026, AWS_SDK, AWS_SDK_2026, CENKALTI, FAILSAFE_GO, GOOGLE_HTTP_JAVA, GRPC_A6, OPENAI,
    RESILIENCE4J,
};
use stagger_core::schedule::draw;
use stagger_core::{FailureKind, Jitter, Outcome, Policy, Ratio, Seed, ServerHint, StopReason};

use super::series::{ceilings, upper_bounds};
use crate::laws::support::{Call, bits_of, ms, secs};

// AW: the AWS SDKs. Their tests use the sample `r = 1`, the upper end of full jitter, which is the ceiling.

const CAP: Duration = secs(20);

#[test]
fn aw_01_delays_double_from_one_second() {
    assert_eq!(upper_bounds(&AWS_SDK.policy(), 3), [1, 2, 4].map(secs));
}

#[test]
fn aw_03_a_high_attempt_number_is_capped_without_overflow() {
    for (base, idx) in [(10, 100_000), (1, 33)] {
        let policy = AWS_SDK.policy().to_builder().base(secs(base)).build().unwrap();
        assert_eq!(policy.bounds(idx + 1), Some((Duration::ZERO, CAP)));
    }
}

#[test]
fn aw_05_three_attempts_have_two_delays() {
    let policy = AWS_SDK.policy().to_builder().jitter(Jitter::None).build().unwrap();
    let trace = Call::new(&policy).failing();
    assert_eq!((trace.waits, trace.stop), ([1, 2].map(secs).to_vec(), Some(StopReason::Attempts)));
}

#[test]
fn aw_09_five_attempts_have_four_delays() {
    let policy = AWS_SDK.policy().to_builder().jitter(Jitter::None).max_attempts(5).build().unwrap();
    assert_eq!(Call::new(&policy).failing().waits, [1, 2, 4, 8].map(secs));
}

#[test]
fn aw_15_a_cap_of_200_ms_is_reached_at_the_third_delay() {
    let builder = Policy::exponential(ms(50), ms(200)).max_attempts(5);
    assert_eq!(ceilings(builder, 4), [50, 100, 200, 200].map(ms));
    let trace = Call::new(&builder.build().unwrap()).failing();
    assert_eq!((trace.waits.len(), trace.stop), (4, Some(StopReason::Attempts)));
}

#[test]
fn aw_17_throttled_failures_use_a_base_of_one_second() {
    let builder = AWS_SDK_2026.policy().to_builder().max_attempts(4);
    let policy = builder.jitter(Jitter::None).build().unwrap();
    let trace = Call::new(&policy).run([Outcome::throttled(None)]);
    assert_eq!((trace.waits, trace.stop), (vec![secs(1)], None));
    // Only the delay of that failure is longer. The schedule advances as usual.
    let trace = Call::new(&policy).run([Outcome::throttled(None), Outcome::TRANSIENT, Outcome::throttled(None)]);
    assert_eq!(trace.waits, [1000, 100, 4000].map(ms));
}

#[test]
fn dynamodb_has_a_shorter_base_and_one_attempt_more() {
    let [general, dynamodb] = [AWS_SDK_2026, AWS_DYNAMODB_2026].map(|profile| profile.policy());
    assert_eq!(general.to_builder().base(ms(25)).max_attempts(4).build().unwrap(), dynamodb);
    let policy = dynamodb.to_builder().jitter(Jitter::None).build().unwrap();
    assert_eq!(Call::new(&policy).failing().waits, [25, 50, 100].map(ms));
    assert_eq!(Call::new(&policy).run([Outcome::throttled(None)]).waits, [secs(1)]);
}

#[test]
fn aw_19_a_hint_is_clamped_to_delay_plus_five_seconds() {
    let builder = AWS_SDK_2026.policy().to_builder();
    let policy = builder.jitter(Jitter::None).build().unwrap();
    for (hint, want) in [(secs(3), secs(3)), (ms(10), ms(50)), (secs(10), ms(5050))] {
        let failed = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(hint)) };
        assert_eq!(Call::new(&policy).run([failed]).waits, [want], "{hint:?}");
    }
}

// CK: cenkalti/backoff, as a policy. The other rows are tested with `stagger-cenkalti`, which replaces the package.

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

// FG: failsafe-go.

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

// GR: gRPC, proposal A6.

#[test]
fn gr_01_jitter_is_20_percent_around_the_capped_ceiling() {
    let want = [(80, 120), (160, 240), (320, 480), (640, 960), (800, 1200), (800, 1200)];
    for (n, (lo, hi)) in (1..).zip(want) {
        assert_eq!(GRPC_A6.policy().bounds(n), Some((ms(lo), ms(hi))), "retry {n}");
    }
}

#[test]
fn gr_09_server_pushback_is_used_exactly() {
    let pushback = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(secs(1))) };
    assert_eq!(Call::new(&GRPC_A6.policy()).run([pushback]).waits, [secs(1)]);
    let never = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::DoNotRetry) };
    assert_eq!(Call::new(&GRPC_A6.policy()).run([never]).stop, Some(StopReason::Hint));
}

/// In gRPC the call ends at its deadline, during the backoff. stagger stops as soon as the delay would pass the
/// deadline.
#[test]
fn gr_23_a_backoff_beyond_the_deadline_stops_at_once() {
    let policy = GRPC_A6.policy().to_builder().base(secs(5)).cap(secs(5)).build().unwrap();
    let trace = Call::new(&policy).deadline(Call::START.saturating_add(secs(1))).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (1, vec![], Some(StopReason::Deadline)));
}

// The SDKs of the providers of language models, by their source.

#[test]
fn delays_are_three_quarters_to_all_of_a_ceiling_from_500_ms_to_8_s() {
    for policy in [OPENAI, ANTHROPIC].map(|profile| profile.policy()) {
        let bounds = |retry| policy.bounds(retry).unwrap();
        assert_eq!(
            [1, 2, 4, 5, 6].map(bounds),
            [(ms(375), ms(500)), (ms(750), secs(1)), (secs(3), secs(4)), (secs(6), secs(8)), (secs(6), secs(8)),]
        );
        assert_eq!(Call::new(&policy).failing().waits.len(), 2, "two retries");
    }
}

#[test]
fn a_hint_replaces_the_delay_and_only_openai_limits_it_to_two_minutes() {
    for (profile, hint, want) in
        [(OPENAI, secs(120), true), (OPENAI, ms(120_001), false), (ANTHROPIC, secs(3600), true)]
    {
        let trace = Call::new(&profile.policy()).run([Outcome::throttled(Some(ServerHint::AtLeast(hint)))]);
        let (waits, stop) = if want { (vec![hint], None) } else { (vec![], Some(StopReason::Hint)) };
        assert_eq!((trace.waits, trace.stop), (waits, stop), "{hint:?}");
    }
}

// R4: resilience4j.

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
