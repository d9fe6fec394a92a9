//! The burst invariant for budgets that do not bound every burst: a budget that rejects at random is checked against
//! its expected value, and an operator control whose mode changes by what it grants in enforced mode.

use std::sync::Mutex;

use proptest::prelude::*;
use stagger_core::budget::{Adaptive, ControlMode, ControlledBudget, Tokens};
use stagger_core::guard::{BudgetPermit, Now};
use stagger_core::{Budget, FailureKind, Outcome, Ratio, Seed};

use super::steps::{Step, run_steps, steps};
use crate::laws::support::cases;

/// Compares the grants of an [`Adaptive`] with the probabilities that it reports.
#[derive(Debug)]
struct PredictedAdaptive {
    budget: Adaptive,
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    granted: f64,
    expected: f64,
    variance: f64,
}

impl Budget for PredictedAdaptive {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.budget.on_first_attempt(now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let rejection = self.budget.snapshot(now.now()).rejection_probability.as_f64();
        let permit = self.budget.try_acquire(kind, now);
        let mut seen = self.seen.lock().unwrap();
        seen.granted += f64::from(u8::from(permit.is_some()));
        seen.expected += 1.0 - rejection;
        seen.variance += rejection * (1.0 - rejection);
        permit
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.budget.record(permit, outcome, now);
    }

    fn release(&self, permit: BudgetPermit) {
        self.budget.release(permit);
    }
}

/// An operator control on tokens whose mode changes before every retry.
#[derive(Debug)]
struct ChangingControl {
    control: ControlledBudget<Tokens>,
    modes: Vec<ControlMode>,
    grants: Mutex<Grants>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Grants {
    requested: usize,
    while_enforced: u64,
    while_no_retries: u64,
}

impl Budget for ChangingControl {
    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        let mut grants = self.grants.lock().unwrap();
        let mode = self.modes[grants.requested % self.modes.len()];
        grants.requested += 1;
        self.control.set(mode);
        let permit = self.control.try_acquire(kind, now);
        let counted = u64::from(permit.is_some());
        match mode {
            ControlMode::Enforced => grants.while_enforced += counted,
            ControlMode::NoRetries => grants.while_no_retries += counted,
            _ => {}
        }
        permit
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.control.record(permit, outcome, now);
    }

    fn release(&self, permit: BudgetPermit) {
        self.control.release(permit);
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn bd_17_adaptive_grants_as_often_as_it_reports(
        steps in steps(), seed: u64, k in 1_000_000_u32..3_000_000, min_requests in 0_u32..12,
    ) {
        let budget = Adaptive::builder(Seed::new(seed)).multiplier(Ratio::millionths(k)).min_requests(min_requests);
        let predicted = PredictedAdaptive { budget: budget.build().unwrap(), seen: Mutex::default() };
        run_steps(&predicted, &steps, |_| Ok(()))?;
        let seen = *predicted.seen.lock().unwrap();
        // Bernstein's inequality: exceeded once in 30 million runs.
        let tolerance = 6.0 * seen.variance.sqrt() + 12.0;
        prop_assert!((seen.granted - seen.expected).abs() < tolerance, "{seen:?}");
    }

    #[test]
    fn bd_17_a_control_bounds_retries_while_enforced(
        steps in steps(),
        modes in prop::collection::vec(prop::sample::select(ControlMode::ALL), 1..20),
        capacity in 5_u32..40,
    ) {
        // Released permits could not be told apart from ones that were never charged.
        let steps: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::Release(_))).collect();
        let tokens = Tokens::builder().capacity(capacity).reward(2).build().unwrap();
        let changing = ChangingControl { control: ControlledBudget::new(tokens), modes, grants: Mutex::default() };
        let tally = run_steps(&changing, &steps, |_| Ok(()))?;
        let grants = *changing.grants.lock().unwrap();
        prop_assert!(grants.while_enforced * 5 <= u64::from(capacity) + 2 * tally.successes, "{grants:?}");
        prop_assert_eq!(grants.while_no_retries, 0);
    }
}
