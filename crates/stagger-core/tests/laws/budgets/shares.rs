//! Budgets that bound a share: of the active calls, of all attempts, of the last ones.

use stagger_core::budget::{BudgetProblem, Concurrent, Lifetime, SuccessRate};
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Outcome, Ratio};

use super::{NOW, attempt, drain, problems};
use crate::laws::support::Start;

// The [`Concurrent`] budget.

fn quarter(floor: u32) -> Concurrent {
    Concurrent::with(Ratio::percent(25), floor).unwrap()
}

fn first_attempts(budget: &Concurrent, calls: usize) -> Vec<Permit> {
    (0..calls).map(|_| budget.start(&NOW)).collect()
}

/// Records a failed attempt and requests a retry.
fn fail(budget: &Concurrent, permit: Permit) -> Option<Permit> {
    budget.settle(permit, End::Made(&Outcome::TRANSIENT), &NOW);
    budget.reserve(FailureKind::Transient, &NOW)
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
    budget.settle(first, End::NeverMade, &NOW);
    assert!(budget.reserve(FailureKind::Transient, &NOW).is_some());
    assert_eq!(budget.reserve(FailureKind::Transient, &NOW), None);
}

#[test]
fn a_retry_is_counted_while_it_waits_and_while_it_runs() {
    let budget = Concurrent::with(Ratio::ZERO, 1).unwrap();
    let waiting = budget.reserve(FailureKind::Transient, &NOW).unwrap();
    assert_eq!(budget.reserve(FailureKind::Transient, &NOW), None);
    assert_eq!(budget.available(), Some(0));
    budget.settle(waiting, End::Made(&Outcome::TRANSIENT), &NOW);
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
        let permit = budget.start(&NOW);
        budget.settle(permit, End::Made(&outcome), &NOW);
        let permit = budget.reserve(FailureKind::LocalExhaustion, &NOW).unwrap();
        budget.settle(permit, End::Made(&outcome), &NOW);
        assert_eq!((budget.snapshot().firsts, budget.snapshot().retries), (0, 0), "{outcome:?}");
    }
    let permit = budget.reserve(FailureKind::Transient, &NOW).unwrap();
    budget.settle(permit, End::NeverMade, &NOW);
    assert_eq!(budget.snapshot().retries, 0);
}

#[test]
fn a_ratio_above_one_is_rejected() {
    assert_eq!(problems(Concurrent::with(Ratio::percent(101), 3)), [BudgetProblem::RatioAboveOne]);
    let unbounded = Concurrent::with(Ratio::ONE, 0).unwrap();
    assert_eq!(first_attempts(&unbounded, 10).into_iter().filter_map(|call| fail(&unbounded, call)).count(), 10);
}

// The [`Lifetime`] budget.

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
                let granted = budget.reserve(FailureKind::Transient, &NOW).is_some();
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
    budget.settle(Permit::NONE, End::NeverMade, &NOW);
    assert_eq!(budget.reserve(FailureKind::Transient, &NOW), None);
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
    let permit = budget.reserve(FailureKind::Transient, &NOW).unwrap();
    budget.settle(permit, End::NeverMade, &NOW);
    assert_eq!(budget.available(), Some(2));
    for outcome in [Outcome::Success, Outcome::Cancelled] {
        let permit = budget.reserve(FailureKind::Transient, &NOW).unwrap();
        budget.settle(permit, End::Made(&outcome), &NOW);
    }
    assert_eq!(budget.snapshot().retries, 2);
    assert_eq!(drain(&budget, NOW).len(), 0);
}

#[test]
fn a_ratio_of_one_or_more_is_rejected() {
    assert_eq!(problems(Lifetime::with(Ratio::ONE, 100)), [BudgetProblem::RatioOfOne]);
    assert_eq!(problems(Lifetime::with(Ratio::percent(110), 100)), [BudgetProblem::RatioAboveOne]);
}

// The [`SuccessRate`] budget.

fn grants(budget: &SuccessRate) -> bool {
    budget.reserve(FailureKind::Transient, &NOW).is_some()
}

/// Compares the budget with a list of all outcomes.
#[test]
fn it_grants_while_enough_of_the_last_n_succeeded() {
    for (percent, n) in [(90, 50), (90, 10), (1, 5), (100, 1), (100, 64), (50, 63), (33, 64)] {
        let budget = SuccessRate::with(Ratio::percent(percent), n).unwrap();
        let mut last = vec![true; n as usize];
        let mut bits = 0x2545_f491_4f6c_dd1d_u64;
        for step in 0..2_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let success = (bits >> 33) % 100 < [97, 50, 3][step / 100 % 3];
            attempt(&budget, if success { Outcome::Success } else { Outcome::TRANSIENT }, NOW);
            last.rotate_left(1);
            *last.last_mut().unwrap() = success;
            let succeeded = last.iter().filter(|&&success| success).count() as u32;
            assert_eq!(budget.snapshot().succeeded, succeeded);
            assert_eq!(grants(&budget), succeeded * 100 >= percent * n, "{succeeded} of {n}, {percent} %");
        }
    }
}

#[test]
fn the_sixth_failure_of_fifty_exhausts_it_until_successes() {
    let budget = SuccessRate::default();
    assert_eq!(budget.available(), Some(5));
    for _ in 0..5 {
        attempt(&budget, Outcome::TRANSIENT, NOW);
        assert!(grants(&budget));
    }
    assert_eq!(budget.available(), Some(0));
    attempt(&budget, Outcome::throttled(None), NOW);
    assert!(!grants(&budget));
    for _ in 0..50 {
        attempt(&budget, Outcome::Permanent, NOW);
    }
    assert_eq!(budget.available(), Some(5));
}

#[test]
fn neutral_outcomes_do_not_count() {
    let budget = SuccessRate::with(Ratio::ONE, 1).unwrap();
    for outcome in
        [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }]
    {
        attempt(&budget, outcome, NOW);
        assert!(grants(&budget), "{outcome:?}");
    }
    attempt(&budget, Outcome::TRANSIENT, NOW);
    attempt(&budget, Outcome::Cancelled, NOW);
    assert!(!grants(&budget));
}

#[test]
fn attempts_and_ratio_out_of_range_are_both_reported() {
    for n in [0, 65] {
        let both = [BudgetProblem::RatioAboveOne, BudgetProblem::Attempts];
        assert_eq!(problems(SuccessRate::with(Ratio::percent(101), n)), both, "{n}");
    }
    assert_eq!(problems(SuccessRate::with(Ratio::ZERO, 50)), [BudgetProblem::RatioOfZero]);
}
