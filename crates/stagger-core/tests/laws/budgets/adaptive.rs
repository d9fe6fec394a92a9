//! [`Adaptive`].

use stagger_core::budget::{Adaptive, AdaptiveBuilder, BudgetProblem};
use stagger_core::{Budget, FailureKind, Instant, Outcome, Ratio, Seed};

use super::{NOW, attempt, faults};
use crate::laws::support::{at, ms, secs};

const BARE: AdaptiveBuilder = Adaptive::builder(Seed::new(7)).min_requests(0);

fn after(builder: AdaptiveBuilder, requests: u32, accepts: u32) -> Adaptive {
    let budget = builder.build().unwrap();
    for n in 0..requests {
        attempt(&budget, if n < accepts { Outcome::Success } else { Outcome::TRANSIENT }, NOW);
    }
    budget
}

/// In millionths, rounded down.
fn refusal(builder: AdaptiveBuilder, requests: u32, accepts: u32) -> u32 {
    after(builder, requests, accepts).snapshot(NOW).rejection_probability.as_millionths()
}

#[test]
fn bd_15_the_formula_of_the_book() {
    assert_eq!(refusal(BARE.multiplier(Ratio::percent(110)), 100, 50), 445_544);
    assert_eq!(refusal(BARE, 100, 50), 0);
    assert_eq!(refusal(BARE, 100, 0), 990_099);
}

/// A tolerated failure rate of a tenth is K = 1 / (1 − 0.1), here to the nearest millionth.
#[test]
fn fg_27_the_throttler_of_failsafe_go() {
    let builder = BARE.multiplier(Ratio::millionths(1_111_111)).max_rejection_probability(Ratio::percent(80));
    let cases = [(100, 95, 0), (120, 90, 1_653), (200, 50, 7_186), (1_000, 10, 8_000), (0, 0, 0), (100, 0, 8_000)];
    for (requests, accepts, want) in cases {
        assert_eq!((refusal(builder, requests, accepts) + 50) / 100, want, "{requests} / {accepts}");
    }
}

/// There half of the first retries are refused, if the first call failed; here none, since it says too little.
#[test]
fn fg_29_a_new_client_whose_first_call_failed() {
    assert_eq!(refusal(BARE, 1, 0), 500_000);
    assert_eq!(refusal(Adaptive::builder(Seed::new(7)), 9, 0), 0);
    assert_eq!(refusal(Adaptive::builder(Seed::new(7)), 10, 0), 909_090);
}

#[test]
fn refusals_are_requests_and_come_as_often_as_told() {
    let budget = after(BARE, 1_000, 250);
    let (mut refused, mut expected) = (0_u32, 0.0);
    for _ in 0..20_000 {
        expected += budget.snapshot(NOW).rejection_probability.as_f64();
        refused += u32::from(budget.try_acquire(FailureKind::Transient, &NOW).is_none());
    }
    assert_eq!(budget.snapshot(NOW).requests, 21_000);
    // The standard deviation is below 40: the probability is above 0.97 nearly all the time.
    assert!((f64::from(refused) - expected).abs() < 200.0, "{refused} refused, {expected:.0} expected");
}

#[test]
fn two_clients_of_one_seed_refuse_alike_and_others_do_not() {
    let series = |seed| {
        let budget =
            Adaptive::builder(Seed::new(seed)).multiplier(Ratio::ONE).max_rejection_probability(Ratio::percent(50));
        let budget = after(budget.min_requests(0), 1_000, 0);
        (0..64).map(|_| budget.try_acquire(FailureKind::Transient, &NOW).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(series(1), series(1));
    assert_ne!(series(1), series(2));
}

/// A hundred thousand successes are forgotten after two minutes, so that it throttles when the server fails then.
#[test]
fn what_happened_two_minutes_ago_is_forgotten() {
    let budget = Adaptive::new(Seed::new(1));
    for _ in 0..100_000 {
        attempt(&budget, Outcome::Success, at(secs(5)));
    }
    for second in 0..130 {
        attempt(&budget, Outcome::TRANSIENT, at(secs(6 + second)));
    }
    let seen = budget.snapshot(at(secs(135)));
    assert_eq!((seen.accepts, seen.requests), (0, 116), "since the slot that began at 20 s");
    assert!(seen.rejection_probability > Ratio::percent(98));
    assert_eq!(budget.snapshot(Instant::from_nanos(u64::MAX)).requests, 0);
}

#[test]
fn the_last_slot_lasts_for_ever() {
    let budget = BARE.window(secs(1)).build().unwrap();
    let end = Instant::from_nanos(u64::MAX);
    attempt(&budget, Outcome::Success, end);
    assert_eq!((budget.snapshot(end).requests, budget.snapshot(end).accepts), (1, 1));
}

#[test]
fn a_request_and_its_acceptance_pass_together() {
    let budget = BARE.window(secs(12)).build().unwrap();
    let loan = budget.on_first_attempt(&at(ms(100)));
    budget.record(loan, &Outcome::Success, &at(secs(11)));
    assert_eq!(budget.snapshot(at(ms(11_999))).accepts, 1);
    assert_eq!(budget.snapshot(at(secs(12))).accepts, 0);
    let late = budget.on_first_attempt(&at(secs(20)));
    attempt(&budget, Outcome::Success, at(secs(32)));
    budget.record(late, &Outcome::Success, &at(secs(32)));
    assert_eq!(budget.snapshot(at(secs(32))).accepts, 1, "its request has passed already");
}

#[test]
fn what_nobody_is_blamed_for_and_what_was_never_made_is_no_request() {
    let budget = BARE.build().unwrap();
    for outcome in
        [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }]
    {
        attempt(&budget, outcome, NOW);
        assert_eq!(budget.snapshot(NOW).requests, 0, "{outcome:?}");
    }
    let loan = budget.try_acquire(FailureKind::Transient, &NOW).expect("nothing has failed yet");
    assert_eq!(budget.snapshot(NOW).requests, 1);
    budget.release(loan);
    assert_eq!(budget.snapshot(NOW).requests, 0);
    assert_eq!(budget.available(), None);
}

#[test]
fn every_fault_is_told_at_once() {
    let built = BARE
        .multiplier(Ratio::millionths(999_999))
        .window(ms(999))
        .max_rejection_probability(Ratio::percent(101))
        .build();
    assert_eq!(faults(built), [BudgetProblem::RatioAboveOne, BudgetProblem::WindowLength, BudgetProblem::Multiplier]);
    assert_eq!(faults(BARE.multiplier(Ratio::millionths(1_000_000_001)).build()), [BudgetProblem::Multiplier]);
    assert_eq!(faults(BARE.window(secs(3_601)).build()), [BudgetProblem::WindowLength]);
}
