//! [`Concurrent`].

use stagger_core::budget::{BudgetProblem, Concurrent};
use stagger_core::{Budget, FailureKind, Outcome, Ratio, guard::BudgetPermit};

use super::{NOW, drain, faults};

fn quarter(floor: u32) -> Concurrent {
    Concurrent::with(Ratio::percent(25), floor).unwrap()
}

fn firsts(budget: &Concurrent, calls: usize) -> Vec<BudgetPermit> {
    (0..calls).map(|_| budget.on_first_attempt(&NOW)).collect()
}

/// The call's attempt fails, and it asks for a retry.
fn fail(budget: &Concurrent, loan: BudgetPermit) -> Option<BudgetPermit> {
    budget.record(loan, &Outcome::TRANSIENT, &NOW);
    budget.try_acquire(FailureKind::Transient, &NOW)
}

#[test]
fn bd_13_a_quarter_of_a_hundred_calls_may_retry() {
    let budget = quarter(3);
    let calls = firsts(&budget, 100);
    let lent: Vec<_> = calls.into_iter().filter_map(|call| fail(&budget, call)).collect();
    // Those that are refused end, so they are not active when the next one asks; a retry in its backoff is.
    assert_eq!(lent.len(), 25);
    assert_eq!(budget.snapshot().retries, 25);
}

/// There one more is let through, since the share is looked at before the retry counts.
#[test]
fn fg_21_a_place_that_becomes_free_is_lent_once() {
    let budget = Concurrent::with(Ratio::percent(50), 1).unwrap();
    let mut calls = firsts(&budget, 3);
    let first = fail(&budget, calls.pop().unwrap()).expect("one of three");
    assert_eq!(fail(&budget, calls.pop().unwrap()), None);
    budget.release(first);
    assert!(budget.try_acquire(FailureKind::Transient, &NOW).is_some());
    assert_eq!(budget.try_acquire(FailureKind::Transient, &NOW), None);
}

#[test]
fn a_retry_counts_while_it_waits_and_while_it_runs() {
    let budget = Concurrent::with(Ratio::ZERO, 1).unwrap();
    let waits = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    assert_eq!(budget.try_acquire(FailureKind::Transient, &NOW), None);
    assert_eq!(budget.available(), Some(0));
    budget.record(waits, &Outcome::TRANSIENT, &NOW);
    assert_eq!(budget.available(), Some(1));
}

/// The share alone would shrink to nothing as calls turn into retries.
#[test]
fn a_client_that_goes_offline_keeps_its_floor() {
    for active in [1, 2, 5] {
        let budget = Concurrent::default();
        let calls = firsts(&budget, active);
        let mut lent: Vec<_> = calls.into_iter().filter_map(|call| fail(&budget, call)).collect();
        assert_eq!(lent.len(), active.min(3));
        for _ in 0..100 {
            // Every retry fails, too, and asks again.
            lent = lent.into_iter().map(|retry| fail(&budget, retry).expect("its place is its own")).collect();
        }
    }
    assert_eq!(drain(&Concurrent::default(), NOW).len(), 3);
}

#[test]
fn however_a_call_ends_its_place_becomes_free() {
    let budget = quarter(1);
    for outcome in [Outcome::Success, Outcome::Permanent, Outcome::TRANSIENT, Outcome::Cancelled, Outcome::NotProcessed]
    {
        let loan = budget.on_first_attempt(&NOW);
        budget.record(loan, &outcome, &NOW);
        let loan = budget.try_acquire(FailureKind::LocalExhaustion, &NOW).unwrap();
        budget.record(loan, &outcome, &NOW);
        assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0), "{outcome:?}");
    }
    let loan = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    budget.release(loan);
    assert_eq!(budget.snapshot().retries, 0);
}

#[test]
fn a_share_above_all_is_refused() {
    assert_eq!(faults(Concurrent::with(Ratio::percent(101), 3)), [BudgetProblem::RatioAboveOne]);
    let all = Concurrent::with(Ratio::ONE, 0).unwrap();
    assert_eq!(firsts(&all, 10).into_iter().filter_map(|call| fail(&all, call)).count(), 10);
}
