//! AW: the AWS SDKs. Their tests use the sample `r = 1`, the upper end of full jitter, which is the ceiling.

use core::time::Duration;

use stagger_core::profile::{AWS_DYNAMODB_2026, AWS_SDK, AWS_SDK_2026};
use stagger_core::{FailureKind, Jitter, Outcome, Policy, ServerHint, StopReason};

use super::series::{ceilings, upper_bounds};
use crate::laws::support::{Call, ms, secs};

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
