//! The [`Throttle`] budget.

use stagger_core::budget::{BudgetProblem, SuccessRate, Throttle};
use stagger_core::{FailureKind, Guard, Guards, NestedRetries, Outcome, Policy, Ratio, ServerHint, StopReason};

use super::{NOW, attempt, problems};
use crate::laws::support::{Call, ms};

fn throttle(max: u32, ratio: u32) -> Throttle {
    Throttle::new(max, Ratio::percent(ratio)).unwrap()
}

fn tokens(throttle: &Throttle) -> u32 {
    throttle.snapshot().milli_tokens
}

#[test]
fn gr_03_reconfigure_keeps_the_fill_ratio() {
    let throttle = throttle(4, 10);
    attempt(&throttle, Outcome::TRANSIENT, NOW);
    throttle.reconfigure(10, Ratio::percent(10)).unwrap();
    assert_eq!((tokens(&throttle), throttle.snapshot().max_milli_tokens), (7_500, 10_000));
}

#[test]
fn gr_05_twelve_calls_to_a_mostly_failing_server() {
    let (throttle, policy) = (throttle(10, 50), Policy::constant(ms(1)).max_attempts(4).build().unwrap());
    let succeeding = [0, 3, 6, 10, 11, 12, 13, 14, 16, 18];
    let (mut next, mut got) = (0, Vec::new());
    for _ in 0..12 {
        let outcomes: Vec<_> = (next..next + 4)
            .map(|call| if succeeding.contains(&call) { Outcome::Success } else { Outcome::TRANSIENT })
            .collect();
        let trace = Call::new(&policy).guards(&[&throttle]).run(outcomes);
        next += trace.attempts;
        got.push((next - 1, trace.stop.is_none(), tokens(&throttle)));
    }
    let want = [
        (0, true, 10_000),
        (3, true, 8_500),
        (6, true, 7_000),
        (8, false, 5_000),
        (9, false, 4_000),
        (10, true, 4_500),
        (11, true, 5_000),
        (12, true, 5_500),
        (13, true, 6_000),
        (14, true, 6_500),
        (16, true, 6_000),
        (17, false, 5_000),
    ];
    assert_eq!(got, want);
}

#[test]
fn gr_19_settings_outside_the_grpc_ranges_are_rejected() {
    for max in [0, 1_001, u32::MAX] {
        assert_eq!(problems(Throttle::new(max, Ratio::ONE)), [BudgetProblem::MaxTokens], "{max}");
    }
    for ratio in [Ratio::ZERO, Ratio::millionths(999), Ratio::millionths(1_000_001_000)] {
        assert_eq!(problems(Throttle::new(10, ratio)), [BudgetProblem::TokenRatio], "{ratio}");
    }
    assert!(Throttle::new(1, Ratio::millionths(1_000)).is_ok() && Throttle::new(1_000, Ratio::percent(160)).is_ok());
    let kept = throttle(10, 10);
    assert!(kept.reconfigure(0, Ratio::ONE).is_err());
    assert_eq!(kept.snapshot(), throttle(10, 10).snapshot());
}

#[test]
fn gr_21_tokens_are_thousandths_and_finer_digits_are_dropped() {
    let seen = throttle(2, 100).snapshot();
    assert_eq!((seen.milli_tokens, seen.max_milli_tokens, seen.milli_ratio), (2_000, 2_000, 1_000));
    assert_eq!(Throttle::new(2, Ratio::millionths(1_999)).unwrap().snapshot().milli_ratio, 1);
}

#[test]
fn exactly_half_full_rejects() {
    let throttle = throttle(4, 1);
    assert_eq!(throttle.available(), Some(1));
    attempt(&throttle, Outcome::TRANSIENT, NOW);
    assert!(throttle.reserve(FailureKind::Transient, &NOW).is_some());
    assert_eq!(throttle.available(), Some(0));
    attempt(&throttle, Outcome::TRANSIENT, NOW);
    assert_eq!(tokens(&throttle), 2_000);
    assert!(throttle.reserve(FailureKind::Transient, &NOW).is_none());
    attempt(&throttle, Outcome::Success, NOW);
    assert!(throttle.reserve(FailureKind::Transient, &NOW).is_some());
}

#[test]
fn tokens_stay_between_zero_and_the_maximum() {
    let throttle = throttle(1, 30);
    attempt(&throttle, Outcome::Success, NOW);
    assert_eq!(tokens(&throttle), 1_000);
    for _ in 0..3 {
        attempt(&throttle, Outcome::throttled(Some(ServerHint::DoNotRetry)), NOW);
    }
    assert_eq!(tokens(&throttle), 0);
    for want in [300, 600, 900, 1_000] {
        attempt(&throttle, Outcome::Success, NOW);
        assert_eq!(tokens(&throttle), want);
    }
}

#[test]
fn permanent_and_neutral_outcomes_do_not_change_tokens() {
    let throttle = throttle(10, 50);
    attempt(&throttle, Outcome::TRANSIENT, NOW);
    for outcome in [
        Outcome::Permanent,
        Outcome::NotProcessed,
        Outcome::Cancelled,
        Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
    ] {
        attempt(&throttle, outcome, NOW);
        assert_eq!(tokens(&throttle), 9_000, "{outcome:?}");
    }
}

#[test]
fn a_rejection_stops_the_call_with_its_own_reason() {
    let policy = Policy::constant(ms(1)).max_attempts(4).build().unwrap();
    assert_eq!(Call::new(&policy).guards(&[&throttle(2, 10)]).failing().stop, Some(StopReason::BUDGET));
}

/// Their permits carry nothing, but must differ from none: the first attempt of a nested call is not reported.
#[test]
fn failed_retries_of_a_nested_call_use_up_the_budget_that_it_shares() {
    let policy = Policy::constant(ms(1)).max_attempts(9).build().unwrap();
    let (throttle, rate) = (throttle(10, 10), SuccessRate::with(Ratio::percent(50), 8).unwrap());
    for budget in [&throttle as &dyn Guard, &rate] {
        let list = [budget];
        let mut call = Call::new(&policy);
        call.guards = Guards::of(&list).nested(NestedRetries::ShareBudget);
        let trace = call.failing();
        // Both tolerate four failures.
        assert_eq!((trace.attempts, trace.stop), (1 + 5, Some(StopReason::BUDGET)), "{budget:?}");
    }
}
