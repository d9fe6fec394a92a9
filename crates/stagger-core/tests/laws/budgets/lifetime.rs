//! [`Lifetime`].

use stagger_core::budget::{BudgetProblem, Lifetime};
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, attempt, drain, faults};

fn bare(ratio: Ratio) -> Lifetime {
    Lifetime::with(ratio, 0).unwrap()
}

fn calls(budget: &Lifetime, calls: u32) {
    for _ in 0..calls {
        attempt(budget, Outcome::TRANSIENT, NOW);
    }
}

#[test]
fn the_first_hundred_attempts_are_free_and_retries_are_attempts() {
    let budget = Lifetime::default();
    calls(&budget, 1);
    assert_eq!(budget.available(), Some(99));
    assert_eq!(drain(&budget, NOW).len(), 99);
    calls(&budget, 890);
    assert_eq!(drain(&budget, NOW).len(), 0, "99 of 990 is a tenth");
    calls(&budget, 9);
    assert_eq!(drain(&budget, NOW).len(), 1, "100 of 1000 is a tenth");
}

/// The rule is written as it is told; the budget solves it.
#[test]
fn retries_are_no_more_than_their_exact_share_of_all_attempts() {
    for millionths in [0, 1, 100_000, 300_000, 333_333, 400_000, 600_000, 750_000, 900_000, 999_999] {
        let budget = bare(Ratio::millionths(millionths));
        let (mut made, mut retries) = (0_u64, 0_u64);
        for _ in 0..2_000 {
            calls(&budget, 1);
            made += 1;
            for _ in 0..3 {
                let fits = (retries + 1) * 1_000_000 <= u64::from(millionths) * (made + retries + 1);
                let lent = budget.try_acquire(FailureKind::Transient, &NOW).is_some();
                assert_eq!(lent, fits, "{millionths} millionths, {made} calls, {retries} retries");
                retries += u64::from(lent);
            }
        }
    }
}

#[test]
fn bd_17_failing_calls_cause_at_most_a_share_of_all_attempts() {
    for (n, percent, want) in [(9, 10, 1), (8, 10, 0), (90, 10, 10), (1_000, 20, 250), (1_000, 0, 0), (3, 50, 3)] {
        let budget = bare(Ratio::percent(percent));
        calls(&budget, n);
        let lent = drain(&budget, NOW).len() as u32;
        assert_eq!(lent, want, "{n} calls, {percent} %");
        assert!(lent * 100 <= percent * (n + lent));
    }
}

#[test]
fn what_was_never_used_comes_back_and_what_was_used_does_not() {
    let budget = Lifetime::with(Ratio::ZERO, 3).unwrap();
    calls(&budget, 1);
    let loan = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    budget.release(loan);
    assert_eq!(budget.available(), Some(2));
    for outcome in [Outcome::Success, Outcome::Cancelled] {
        let loan = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
        budget.record(loan, &outcome, &NOW);
    }
    assert_eq!(budget.snapshot().retries, 2);
    assert_eq!(drain(&budget, NOW).len(), 0);
}

#[test]
fn a_share_that_is_never_reached_is_refused() {
    assert_eq!(faults(Lifetime::with(Ratio::ONE, 100)), [BudgetProblem::RatioOfOne]);
    assert_eq!(faults(Lifetime::with(Ratio::percent(110), 100)), [BudgetProblem::RatioAboveOne]);
}
