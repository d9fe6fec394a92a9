//! The [`SuccessRate`] budget.

use stagger_core::budget::{BudgetProblem, SuccessRate};
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, attempt, problems};

fn grants(budget: &SuccessRate) -> bool {
    budget.try_acquire(FailureKind::Transient, &NOW).is_some()
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
