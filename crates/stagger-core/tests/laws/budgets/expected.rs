//! The burst invariant of what does not bound every burst: a budget that refuses by chance, by its expectation, and a
//! operator control that is moved, by what it lets through while it enforces.

use std::sync::Mutex;

use proptest::prelude::*;
use stagger_core::budget::{Adaptive, ControlMode, ControlledBudget, Tokens};
use stagger_core::{Budget, FailureKind, Outcome, Ratio, Seed, guard::BudgetPermit, guard::Now};

use super::play::{Step, play, steps};
use crate::laws::support::cases;

/// Keeps book of what an [`Adaptive`] said that it would do, and of what it did.
#[derive(Debug)]
struct Foretold {
    budget: Adaptive,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    lent: f64,
    expected: f64,
    variance: f64,
}

impl Budget for Foretold {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.budget.on_first_attempt(now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let refusal = self.budget.snapshot(now.now()).rejection_probability.as_f64();
        let loan = self.budget.try_acquire(kind, now);
        let mut seen = self.seen.lock().unwrap();
        seen.lent += f64::from(u8::from(loan.is_some()));
        seen.expected += 1.0 - refusal;
        seen.variance += refusal * (1.0 - refusal);
        loan
    }

    fn record(&self, loan: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.budget.record(loan, outcome, now);
    }

    fn release(&self, loan: BudgetPermit) {
        self.budget.release(loan);
    }
}

/// An operator control on tokens that is moved before every retry.
#[derive(Debug)]
struct Moved {
    control: ControlledBudget<Tokens>,
    modes: Vec<ControlMode>,
    lent: Mutex<Lent>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lent {
    asked: usize,
    while_enforced: u64,
    while_there_are_none: u64,
}

impl Budget for Moved {
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let mut lent = self.lent.lock().unwrap();
        let mode = self.modes[lent.asked % self.modes.len()];
        lent.asked += 1;
        self.control.set(mode);
        let loan = self.control.try_acquire(kind, now);
        let counted = u64::from(loan.is_some());
        match mode {
            ControlMode::Enforced => lent.while_enforced += counted,
            ControlMode::NoRetries => lent.while_there_are_none += counted,
            _ => {}
        }
        loan
    }

    fn record(&self, loan: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.control.record(loan, outcome, now);
    }

    fn release(&self, loan: BudgetPermit) {
        self.control.release(loan);
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn bd_17_adaptive_lends_as_often_as_it_says(steps in steps(), seed: u64, k in 1_000_000_u32..3_000_000, least in 0_u32..12) {
        let budget = Adaptive::builder(Seed::new(seed)).multiplier(Ratio::millionths(k)).min_requests(least);
        let foretold = Foretold { budget: budget.build().unwrap(), seen: Mutex::default() };
        play(&foretold, &steps, |_| Ok(()))?;
        let seen = *foretold.seen.lock().unwrap();
        // Bernstein's inequality: exceeded once in thirty million runs.
        let most = 6.0 * seen.variance.sqrt() + 12.0;
        prop_assert!((seen.lent - seen.expected).abs() < most, "{seen:?}");
    }

    #[test]
    fn bd_17_a_control_that_is_moved(
        steps in steps(),
        modes in prop::collection::vec(prop::sample::select(vec![ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries]), 1..20),
        capacity in 5_u32..40,
    ) {
        // What is given back could not be told from what was never paid.
        let steps: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::GiveUp(_))).collect();
        let tokens = Tokens::builder().capacity(capacity).reward(2).build().unwrap();
        let moved = Moved { control: ControlledBudget::new(tokens), modes, lent: Mutex::default() };
        let book = play(&moved, &steps, |_| Ok(()))?;
        let lent = *moved.lent.lock().unwrap();
        prop_assert!(lent.while_enforced * 5 <= u64::from(capacity) + 2 * book.successes, "{lent:?}");
        prop_assert_eq!(lent.while_there_are_none, 0);
    }
}
