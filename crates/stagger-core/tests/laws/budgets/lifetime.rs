//! The [`Lifetime`] budget.

use stagger_core::budget::{BudgetProblem, Lifetime};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, attempt, drain, problems};

fn without_bootstrap(ratio: Ratio) -> Lifetime {
    Lifetime::with(ratio, 0).unwrap()
}

fn calls(budget: &Lifetime, calls: u32) {
    for _ in 0..calls {
        attempt(budget, Outcome::TRANSIENT, NOW);
    }
}

#[test]
fn retries_count_toward_the_first_hundred_free_attempts() {
    let budget = Lifetime::default();
    calls(&budget, 1);
    assert_eq!(budget.available(), Some(99));
    assert_eq!(drain(&budget, NOW).len(), 99);
    calls(&budget, 890);
    assert_eq!(drain(&budget, NOW).len(), 0, "99 of 990 is a tenth");
    calls(&budget, 9);
    assert_eq!(drain(&budget, NOW).len(), 1, "100 of 1000 is a tenth");
}

/// The test checks the rule as documented; the budget uses it solved for the number of retries.
#[test]
fn retries_are_at_most_the_exact_share_of_all_attempts() {
    for millionths in [0, 1, 100_000, 300_000, 333_333, 400_000, 600_000, 750_000, 900_000, 999_999] {
        let budget = without_bootstrap(Ratio::millionths(millionths));
        let (mut made, mut retries) = (0_u64, 0_u64);
        for _ in 0..2_000 {
            calls(&budget, 1);
            made += 1;
            for _ in 0..3 {
                let fits = (retries + 1) * 1_000_000 <= u64::from(millionths) * (made + retries + 1);
                let granted = budget.try_acquire(FailureKind::Transient, &NOW).is_some();
                assert_eq!(granted, fits, "{millionths} millionths, {made} calls, {retries} retries");
                retries += u64::from(granted);
            }
        }
    }
}

#[test]
fn releasing_no_permit_allows_no_further_retry() {
    let budget = Lifetime::default();
    drain(&budget, NOW);
    budget.release(BudgetPermit::NONE);
    assert_eq!(budget.try_acquire(FailureKind::Transient, &NOW), None);
}

#[test]
fn bd_17_failing_calls_cause_at_most_the_share() {
    for (n, percent, want) in [(9, 10, 1), (8, 10, 0), (90, 10, 10), (1_000, 20, 250), (1_000, 0, 0), (3, 50, 3)] {
        let budget = without_bootstrap(Ratio::percent(percent));
        calls(&budget, n);
        let granted = drain(&budget, NOW).len() as u32;
        assert_eq!(granted, want, "{n} calls, {percent} %");
        assert!(granted * 100 <= percent * (n + granted));
    }
}

#[test]
fn released_permits_are_refunded_and_recorded_ones_are_not() {
    let budget = Lifetime::with(Ratio::ZERO, 3).unwrap();
    calls(&budget, 1);
    let permit = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    budget.release(permit);
    assert_eq!(budget.available(), Some(2));
    for outcome in [Outcome::Success, Outcome::Cancelled] {
        let permit = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
        budget.record(permit, &outcome, &NOW);
    }
    assert_eq!(budget.snapshot().retries, 2);
    assert_eq!(drain(&budget, NOW).len(), 0);
}

#[test]
fn a_ratio_of_one_or_more_is_rejected() {
    assert_eq!(problems(Lifetime::with(Ratio::ONE, 100)), [BudgetProblem::RatioOfOne]);
    assert_eq!(problems(Lifetime::with(Ratio::percent(110), 100)), [BudgetProblem::RatioAboveOne]);
}
