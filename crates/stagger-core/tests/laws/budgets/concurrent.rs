//! The [`Concurrent`] budget.

use stagger_core::budget::{BudgetProblem, Concurrent};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, drain, problems};

fn quarter(floor: u32) -> Concurrent {
    Concurrent::with(Ratio::percent(25), floor).unwrap()
}

fn first_attempts(budget: &Concurrent, calls: usize) -> Vec<BudgetPermit> {
    (0..calls).map(|_| budget.on_first_attempt(&NOW)).collect()
}

/// Records a failed attempt and requests a retry.
fn fail(budget: &Concurrent, permit: BudgetPermit) -> Option<BudgetPermit> {
    budget.record(permit, &Outcome::TRANSIENT, &NOW);
    budget.try_acquire(FailureKind::Transient, &NOW)
}

#[test]
fn bd_13_a_quarter_of_a_hundred_calls_may_retry() {
    let budget = quarter(3);
    let calls = first_attempts(&budget, 100);
    let granted: Vec<_> = calls.into_iter().filter_map(|call| fail(&budget, call)).collect();
    // Rejected calls end, so they are not active for the next request; a retry in its backoff is active.
    assert_eq!(granted.len(), 25);
    assert_eq!(budget.snapshot().retries, 25);
}

/// failsafe-go admits one more retry, because it checks the share before it counts the retry.
#[test]
fn fg_21_a_released_permit_is_granted_once() {
    let budget = Concurrent::with(Ratio::percent(50), 1).unwrap();
    let mut calls = first_attempts(&budget, 3);
    let first = fail(&budget, calls.pop().unwrap()).expect("one of three may retry");
    assert_eq!(fail(&budget, calls.pop().unwrap()), None);
    budget.release(first);
    assert!(budget.try_acquire(FailureKind::Transient, &NOW).is_some());
    assert_eq!(budget.try_acquire(FailureKind::Transient, &NOW), None);
}

#[test]
fn a_retry_is_counted_while_it_waits_and_while_it_runs() {
    let budget = Concurrent::with(Ratio::ZERO, 1).unwrap();
    let waiting = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    assert_eq!(budget.try_acquire(FailureKind::Transient, &NOW), None);
    assert_eq!(budget.available(), Some(0));
    budget.record(waiting, &Outcome::TRANSIENT, &NOW);
    assert_eq!(budget.available(), Some(1));
}

/// The share alone would shrink to zero as calls become retries.
#[test]
fn a_client_that_goes_offline_keeps_its_floor() {
    for active in [1, 2, 5] {
        let budget = Concurrent::default();
        let calls = first_attempts(&budget, active);
        let mut granted: Vec<_> = calls.into_iter().filter_map(|call| fail(&budget, call)).collect();
        assert_eq!(granted.len(), active.min(3));
        for _ in 0..100 {
            // Every retry fails and requests another.
            granted = granted
                .into_iter()
                .map(|retry| fail(&budget, retry).expect("the retry's permit was just returned"))
                .collect();
        }
    }
    assert_eq!(drain(&Concurrent::default(), NOW).len(), 3);
}

#[test]
fn every_outcome_returns_the_permit() {
    let budget = quarter(1);
    for outcome in [Outcome::Success, Outcome::Permanent, Outcome::TRANSIENT, Outcome::Cancelled, Outcome::NotProcessed]
    {
        let permit = budget.on_first_attempt(&NOW);
        budget.record(permit, &outcome, &NOW);
        let permit = budget.try_acquire(FailureKind::LocalExhaustion, &NOW).unwrap();
        budget.record(permit, &outcome, &NOW);
        assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0), "{outcome:?}");
    }
    let permit = budget.try_acquire(FailureKind::Transient, &NOW).unwrap();
    budget.release(permit);
    assert_eq!(budget.snapshot().retries, 0);
}

#[test]
fn a_ratio_above_one_is_rejected() {
    assert_eq!(problems(Concurrent::with(Ratio::percent(101), 3)), [BudgetProblem::RatioAboveOne]);
    let unbounded = Concurrent::with(Ratio::ONE, 0).unwrap();
    assert_eq!(first_attempts(&unbounded, 10).into_iter().filter_map(|call| fail(&unbounded, call)).count(), 10);
}
