//! The [`Adaptive`] budget.

use stagger_core::budget::{Adaptive, AdaptiveBuilder, BudgetProblem};
use stagger_core::guard::End;
use stagger_core::{FailureKind, Guard, Instant, Outcome, Ratio, Seed};

use super::{NOW, attempt, problems};
use crate::laws::support::{Start, at, ms, secs};

const WITHOUT_MINIMUM: AdaptiveBuilder = Adaptive::builder(Seed::new(7)).min_requests(0);

fn after(builder: AdaptiveBuilder, requests: u32, accepts: u32) -> Adaptive {
    let budget = builder.build().unwrap();
    for n in 0..requests {
        attempt(&budget, if n < accepts { Outcome::Success } else { Outcome::TRANSIENT }, NOW);
    }
    budget
}

/// Returns the rejection probability in millionths, rounded down.
fn refusal(builder: AdaptiveBuilder, requests: u32, accepts: u32) -> u32 {
    after(builder, requests, accepts).snapshot(NOW).rejection_probability.as_millionths()
}

#[test]
fn bd_15_rejection_probability_matches_the_sre_book() {
    assert_eq!(refusal(WITHOUT_MINIMUM.multiplier(Ratio::percent(110)), 100, 50), 445_544);
    assert_eq!(refusal(WITHOUT_MINIMUM, 100, 50), 0);
    assert_eq!(refusal(WITHOUT_MINIMUM, 100, 0), 990_099);
}

/// A tolerated failure rate of 10 % is K = 1 / (1 − 0.1), here to the nearest millionth.
#[test]
fn fg_27_rejects_like_the_failsafe_go_throttler() {
    let builder =
        WITHOUT_MINIMUM.multiplier(Ratio::millionths(1_111_111)).max_rejection_probability(Ratio::percent(80));
    let cases = [(100, 95, 0), (120, 90, 1_653), (200, 50, 7_186), (1_000, 10, 8_000), (0, 0, 0), (100, 0, 8_000)];
    for (requests, accepts, want) in cases {
        assert_eq!((refusal(builder, requests, accepts) + 50) / 100, want, "{requests} / {accepts}");
    }
}

/// If the first call fails, failsafe-go rejects half of the next ones. stagger rejects none, because one call says too
/// little.
#[test]
fn fg_29_a_failed_first_call_does_not_reject_retries() {
    assert_eq!(refusal(WITHOUT_MINIMUM, 1, 0), 500_000);
    assert_eq!(refusal(Adaptive::builder(Seed::new(7)), 9, 0), 0);
    assert_eq!(refusal(Adaptive::builder(Seed::new(7)), 10, 0), 909_090);
}

#[test]
fn rejections_count_as_requests_and_match_the_probability() {
    let budget = after(WITHOUT_MINIMUM, 1_000, 250);
    let (mut rejected, mut expected) = (0_u32, 0.0);
    for _ in 0..20_000 {
        expected += budget.snapshot(NOW).rejection_probability.as_f64();
        rejected += u32::from(budget.reserve(FailureKind::Transient, &NOW).is_none());
    }
    assert_eq!(budget.snapshot(NOW).requests, 21_000);
    // The standard deviation is below 40: the probability is above 0.97 nearly all the time.
    assert!((f64::from(rejected) - expected).abs() < 200.0, "{rejected} rejected, {expected:.0} expected");
}

#[test]
fn the_seed_determines_which_retries_are_rejected() {
    let series = |seed| {
        let budget =
            Adaptive::builder(Seed::new(seed)).multiplier(Ratio::ONE).max_rejection_probability(Ratio::percent(50));
        let budget = after(budget.min_requests(0), 1_000, 0);
        (0..64).map(|_| budget.reserve(FailureKind::Transient, &NOW).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(series(1), series(1));
    assert_ne!(series(1), series(2));
}

/// 100,000 successes leave the window after two minutes, so the budget throttles when the server fails then.
#[test]
fn results_expire_after_two_minutes() {
    let budget = Adaptive::new(Seed::new(1));
    for _ in 0..100_000 {
        attempt(&budget, Outcome::Success, at(secs(5)));
    }
    for second in 0..130 {
        attempt(&budget, Outcome::TRANSIENT, at(secs(6 + second)));
    }
    let seen = budget.snapshot(at(secs(135)));
    assert_eq!((seen.accepts, seen.requests), (0, 116), "counted from the slot that began at 20 s");
    assert!(seen.rejection_probability > Ratio::percent(98));
    assert_eq!(budget.snapshot(Instant::from_nanos(u64::MAX)).requests, 0);
}

#[test]
fn the_last_slot_never_expires() {
    let budget = WITHOUT_MINIMUM.window(secs(1)).build().unwrap();
    let end = Instant::from_nanos(u64::MAX);
    attempt(&budget, Outcome::Success, end);
    assert_eq!((budget.snapshot(end).requests, budget.snapshot(end).accepts), (1, 1));
}

#[test]
fn a_request_and_its_success_expire_together() {
    let budget = WITHOUT_MINIMUM.window(secs(12)).build().unwrap();
    let permit = budget.start(&at(ms(100)));
    budget.settle(permit, End::Made(&Outcome::Success), &at(secs(11)));
    assert_eq!(budget.snapshot(at(ms(11_999))).accepts, 1);
    assert_eq!(budget.snapshot(at(secs(12))).accepts, 0);
    let late = budget.start(&at(secs(20)));
    attempt(&budget, Outcome::Success, at(secs(32)));
    budget.settle(late, End::Made(&Outcome::Success), &at(secs(32)));
    assert_eq!(budget.snapshot(at(secs(32))).accepts, 1, "its request has expired");
}

#[test]
fn neutral_outcomes_and_released_permits_are_not_requests() {
    let budget = WITHOUT_MINIMUM.build().unwrap();
    for outcome in
        [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }]
    {
        attempt(&budget, outcome, NOW);
        assert_eq!(budget.snapshot(NOW).requests, 0, "{outcome:?}");
    }
    let permit = budget.reserve(FailureKind::Transient, &NOW).expect("no call has failed yet");
    assert_eq!(budget.snapshot(NOW).requests, 1);
    budget.settle(permit, End::NeverMade, &NOW);
    assert_eq!(budget.snapshot(NOW).requests, 0);
    assert_eq!(budget.available(), None);
}

#[test]
fn the_builder_reports_all_problems_at_once() {
    let built = WITHOUT_MINIMUM
        .multiplier(Ratio::millionths(999_999))
        .window(ms(999))
        .max_rejection_probability(Ratio::percent(101))
        .build();
    assert_eq!(problems(built), [BudgetProblem::RatioAboveOne, BudgetProblem::WindowLength, BudgetProblem::Multiplier]);
    assert_eq!(
        problems(WITHOUT_MINIMUM.multiplier(Ratio::millionths(1_000_000_001)).build()),
        [BudgetProblem::Multiplier]
    );
    assert_eq!(problems(WITHOUT_MINIMUM.window(secs(3_601)).build()), [BudgetProblem::WindowLength]);
}
