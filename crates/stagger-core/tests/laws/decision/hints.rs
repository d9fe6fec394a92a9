//! Steps 7 and 8: how a hint changes the delay.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::{
    DelaySource, FailureKind, HintMode, Jitter, Outcome, Policy, PolicyBuilder, Ratio, Seed, ServerHint, StopReason,
    profile,
};

use crate::laws::support::{Call, Trace, any_delays, cases, length, ms, secs};

fn failed_with(hint: ServerHint) -> Outcome {
    Outcome::Failed { kind: FailureKind::Transient, hint: Some(hint) }
}

fn run_hinted(policy: PolicyBuilder, seed: u64, hint: ServerHint) -> Trace {
    Call::new(&policy.max_attempts(2).build().unwrap()).seed(seed).run([failed_with(hint)])
}

fn span(policy: PolicyBuilder, hint: Duration) -> (Duration, Duration) {
    let waits = (0..3_000).map(|seed| run_hinted(policy, seed, ServerHint::AtLeast(hint)).waits[0]);
    let waits: Vec<_> = waits.collect();
    (*waits.iter().min().unwrap(), *waits.iter().max().unwrap())
}

fn assert_spans(policy: PolicyBuilder, hint: Duration, most: Duration) {
    let (least_seen, most_seen) = span(policy, hint);
    let edge = (most - hint) / 100;
    assert!(hint <= least_seen && least_seen < hint + edge, "least {least_seen:?}, of {hint:?} to {most:?}");
    assert!(most - edge < most_seen && most_seen <= most, "most {most_seen:?}, of {hint:?} to {most:?}");
}

/// `hint + U[0, max(ceiling, hint · hint_spread)]`, where the ceiling is the upper bound of the delay, for every
/// jitter.
#[test]
fn at_least_hints_are_spread_over_ceiling_or_hint_spread() {
    let base = |jitter| Policy::exponential(secs(2), secs(60)).jitter(jitter);
    // `hint · hint_spread` is larger.
    assert_spans(base(Jitter::Full), secs(10), secs(15));
    assert_spans(base(Jitter::Full).hint_spread(Ratio::percent(100)), secs(10), secs(20));
    // The ceiling is larger.
    for jitter in [Jitter::None, Jitter::Full, Jitter::Equal] {
        assert_spans(base(jitter), secs(1), secs(3));
    }
    assert_spans(base(Jitter::Factor(Ratio::percent(50))), secs(1), secs(4));
    assert_spans(base(Jitter::Decorrelated), secs(1), secs(7));
    assert_spans(base(Jitter::Full).hint_spread(Ratio::ZERO), secs(100), secs(102));
    // A hint of zero has no effect.
    assert_spans(base(Jitter::Full), Duration::ZERO, secs(2));
}

#[test]
fn exact_and_reserved_hints_are_used_to_the_nanosecond() {
    let policy = Policy::exponential(secs(2), secs(60));
    for seed in 0..20 {
        let hint = Duration::from_nanos(1_234_567_891);
        let trace = run_hinted(policy.hint_mode(HintMode::Exact), seed, ServerHint::AtLeast(hint));
        assert_eq!((trace.waits, trace.sources), (vec![hint], vec![DelaySource::Hint]));
        for mode in [HintMode::AtLeast, HintMode::Exact, HintMode::Clamp(secs(1))] {
            assert_eq!(run_hinted(policy.hint_mode(mode), seed, ServerHint::Reserved(hint)).waits, [hint], "{mode}");
        }
    }
}

#[test]
fn clamp_stays_between_the_delay_and_the_delay_plus_limit() {
    let policy = Policy::constant(secs(10)).jitter(Jitter::None).hint_mode(HintMode::Clamp(secs(5)));
    for (hint, want) in [(0, 10), (9, 10), (10, 10), (12, 12), (15, 15), (16, 15), (300, 15)] {
        assert_eq!(run_hinted(policy, 1, ServerHint::AtLeast(secs(hint))).waits, [secs(want)], "{hint}");
    }
}

#[test]
fn a_hint_above_max_hint_stops_and_one_at_max_hint_does_not() {
    let policy = Policy::constant(secs(1));
    for (policy, hint, want) in [
        (policy, secs(300), None),
        (policy, secs(300) + Duration::from_nanos(1), Some(StopReason::Hint)),
        (policy.max_hint(secs(5)), secs(5), None),
        (policy.max_hint(secs(5)), ms(5001), Some(StopReason::Hint)),
        (policy.max_hint(Duration::ZERO), ms(1), Some(StopReason::Hint)),
        (policy.unlimited_hint(), secs(1 << 40), None),
    ] {
        assert_eq!(run_hinted(policy, 1, ServerHint::AtLeast(hint)).stop, want, "{hint:?}");
        assert_eq!(run_hinted(policy, 1, ServerHint::Reserved(hint)).stop, want, "{hint:?}");
    }
    assert_eq!(run_hinted(policy.unlimited_hint(), 1, ServerHint::DoNotRetry).stop, Some(StopReason::Hint));
}

#[test]
fn a_hinted_retry_counts_toward_attempts_and_max_elapsed() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(10)).max_attempts(4).hint_mode(HintMode::Exact);
    let policy = policy.build().unwrap();
    let trace = Call::new(&policy).run([failed_with(ServerHint::AtLeast(secs(4))); 9]);
    assert_eq!((trace.waits, trace.stop), (vec![secs(4); 2], Some(StopReason::Elapsed)));
    let trace = Call::new(&policy).run([failed_with(ServerHint::AtLeast(ms(4))); 9]);
    assert_eq!((trace.attempts, trace.stop), (4, Some(StopReason::Attempts)));
}

/// The bases for throttling and for local exhaustion change the ceiling of that failure only.
#[test]
fn each_failure_kind_has_its_own_base() {
    let none = |builder: PolicyBuilder| builder.jitter(Jitter::None);
    let exponential = none(Policy::exponential(ms(50), secs(20)));
    let failed = |kind| Outcome::Failed { kind, hint: None };
    for (policy, kind, want) in [
        (exponential, FailureKind::Transient, [50, 100, 200]),
        (exponential, FailureKind::Throttled, [50, 100, 200]),
        (exponential, FailureKind::LocalExhaustion, [500, 1000, 2000]),
        (exponential.throttled_base(secs(1)), FailureKind::Throttled, [1000, 2000, 4000]),
        (exponential.throttled_base(secs(8)), FailureKind::Throttled, [8000, 16000, 20000]),
        (exponential.local_base(ms(70)), FailureKind::LocalExhaustion, [70, 140, 280]),
        (none(Policy::linear(ms(50), ms(50), secs(20))), FailureKind::LocalExhaustion, [500, 1000, 1500]),
        (none(Policy::constant(ms(50))), FailureKind::LocalExhaustion, [500, 500, 500]),
        (none(Policy::constant(ms(200))), FailureKind::LocalExhaustion, [1000, 1000, 1000]),
        (none(Policy::constant(secs(2))), FailureKind::LocalExhaustion, [2000, 2000, 2000]),
        (none(Policy::list(&[ms(5), ms(7)])), FailureKind::LocalExhaustion, [5, 7, 7]),
        (Policy::zero(), FailureKind::LocalExhaustion, [0, 0, 0]),
    ] {
        let policy = policy.max_attempts(4).build().unwrap();
        assert_eq!(Call::new(&policy).run([failed(kind); 3]).waits, want.map(ms), "{policy} {kind:?}");
    }
}

/// Transient failures take a shorter code path, which must not be used for the other kinds.
#[test]
fn full_jitter_spans_the_ceiling_of_the_failure_kind() {
    let builder = Policy::exponential(ms(50), secs(20)).throttled_base(secs(1)).max_attempts(3);
    for (kind, ceilings) in [
        (FailureKind::Transient, [50, 100]),
        (FailureKind::Throttled, [1000, 2000]),
        (FailureKind::LocalExhaustion, [500, 1000]),
    ] {
        let policy = builder.build().unwrap();
        for (retry, ceiling) in ceilings.map(ms).into_iter().enumerate() {
            let wait = |seed| Call::new(&policy).seed(seed).run([Outcome::Failed { kind, hint: None }; 2]).waits[retry];
            let most = (0..2_000).map(wait).max().unwrap();
            assert!(most <= ceiling && most > ceiling.mul_f64(0.98), "{kind:?}, retry {}: {most:?}", retry + 1);
        }
    }
}

#[test]
fn decorrelated_jitter_uses_the_base_of_the_failure_kind() {
    let policy = Policy::decorrelated(ms(100), secs(10)).throttled_base(secs(1)).max_attempts(3).build().unwrap();
    let waits: Vec<_> =
        (0..3_000).map(|seed| Call::new(&policy).seed(seed).run([Outcome::throttled(None)]).waits[0]).collect();
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(secs(1) <= least && least < ms(1020) && ms(2980) < most && most <= secs(3), "{least:?} to {most:?}");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_schedule_advances_under_hints_as_without_them(
        policy in any_delays(), seed in any::<u64>(), hinted in prop::collection::vec(any::<bool>(), 1..12),
        hint in length(),
    ) {
        let policy = policy.to_builder().unlimited_attempts().unlimited_hint().build().unwrap();
        let failed = failed_with(ServerHint::AtLeast(hint));
        let outcomes = hinted.iter().map(|&yes| if yes { failed } else { Outcome::TRANSIENT });
        let trace = Call::new(&policy).seed(seed).run(outcomes);
        for (at, (delay, yes)) in policy.schedule(Seed::new(seed)).zip(&hinted).enumerate() {
            let (waited, source) = (trace.waits[at], trace.sources[at]);
            if *yes {
                prop_assert!(waited >= hint.min(Duration::from_nanos(i64::MAX as u64)) && source == DelaySource::Hint);
            } else {
                prop_assert_eq!((waited, source), (delay, DelaySource::Schedule));
            }
        }
    }
}

/// A hint must not make a call wait longer than its caller does: with a hint of 299 s, the default waited 984 s.
#[test]
fn a_hint_does_not_keep_a_call_longer_than_its_purpose() {
    for (policy, longest, worst) in [
        (profile::INTERACTIVE.policy(), secs(2), secs(3)),
        (profile::SERVERLESS.policy(), secs(10), secs(30)),
        (Policy::DEFAULT, secs(30), secs(135)),
        (profile::DEFAULT.policy(), secs(30), secs(135)),
    ] {
        assert_eq!(policy.max_hint(), Some(longest));
        for seed in 0..200 {
            let hinted = |hint| Outcome::throttled(Some(ServerHint::AtLeast(hint)));
            let refused = Call::new(&policy).seed(seed).run([hinted(longest + ms(1)); 9]);
            assert_eq!((refused.waits.len(), refused.stop), (0, Some(StopReason::Hint)), "{policy}");
            let followed = Call::new(&policy).seed(seed).run([hinted(longest); 9]);
            let waited: Duration = followed.waits.iter().sum();
            assert!(waited <= worst, "{policy}: {waited:?}");
            assert_eq!(followed.stop, Some(StopReason::Attempts));
        }
    }
}
