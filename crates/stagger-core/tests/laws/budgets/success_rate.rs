//! [`SuccessRate`].

use stagger_core::budget::{BudgetProblem, SuccessRate};
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, attempt, faults};

fn lends(budget: &SuccessRate) -> bool {
    budget.try_acquire(FailureKind::Transient, &NOW).is_some()
}

/// Against a list that is kept and counted.
#[test]
fn it_lends_while_enough_of_the_last_n_succeeded() {
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
            assert_eq!(lends(&budget), succeeded * 100 >= percent * n, "{succeeded} of {n}, {percent} %");
        }
    }
}

#[test]
fn the_sixth_failure_of_the_last_fifty_ends_it_and_fifty_successes_bring_all_back() {
    let budget = SuccessRate::default();
    assert_eq!(budget.available(), Some(5));
    for _ in 0..5 {
        attempt(&budget, Outcome::TRANSIENT, NOW);
        assert!(lends(&budget));
    }
    assert_eq!(budget.available(), Some(0));
    attempt(&budget, Outcome::throttled(None), NOW);
    assert!(!lends(&budget));
    for _ in 0..50 {
        attempt(&budget, Outcome::Permanent, NOW);
    }
    assert_eq!(budget.available(), Some(5));
}

#[test]
fn what_nobody_is_blamed_for_does_not_count() {
    let budget = SuccessRate::with(Ratio::ONE, 1).unwrap();
    for outcome in
        [Outcome::Cancelled, Outcome::NotProcessed, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None }]
    {
        attempt(&budget, outcome, NOW);
        assert!(lends(&budget), "{outcome:?}");
    }
    attempt(&budget, Outcome::TRANSIENT, NOW);
    attempt(&budget, Outcome::Cancelled, NOW);
    assert!(!lends(&budget));
}

#[test]
fn a_number_or_a_share_out_of_range_is_refused_together() {
    for n in [0, 65] {
        let both = [BudgetProblem::RatioAboveOne, BudgetProblem::Attempts];
        assert_eq!(faults(SuccessRate::with(Ratio::percent(101), n)), both, "{n}");
    }
    assert_eq!(faults(SuccessRate::with(Ratio::ZERO, 50)), [BudgetProblem::RatioOfZero]);
}
