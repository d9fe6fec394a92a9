//! The burst invariant for budgets that do not bound every burst: a budget that rejects at random is checked against
//! its expected value, and an operator control whose mode changes by what it grants in enforced mode.

use std::sync::Mutex;

use proptest::prelude::*;
use stagger_core::budget::{Adaptive, ControlMode, Controlled, RetryControl, Tokens};
use stagger_core::guard::{Answer, Ask, End, Now, Permit};
use stagger_core::{FailureKind, Guard, Ratio, Seed};

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

impl Guard for PredictedAdaptive {
    fn name(&self) -> &'static str {
        self.budget.name()
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.budget.ask(ask, held, now)
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let rejection = self.budget.snapshot(now.now()).rejection_probability.as_f64();
        let permit = self.budget.reserve(kind, now);
        let mut seen = self.seen.lock().unwrap();
        seen.granted += f64::from(u8::from(permit.is_some()));
        seen.expected += 1.0 - rejection;
        seen.variance += rejection * (1.0 - rejection);
        permit
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        self.budget.settle(permit, end, now);
    }
}

/// An operator control on tokens whose mode changes before every retry.
#[derive(Debug)]
struct ChangingControl<'a> {
    tokens: Controlled<&'a Tokens, &'a RetryControl>,
    control: &'a RetryControl,
    modes: Vec<ControlMode>,
    grants: Mutex<Grants>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Grants {
    requested: usize,
    while_enforced: u64,
    while_no_retries: u64,
}

impl Guard for ChangingControl<'_> {
    fn name(&self) -> &'static str {
        self.tokens.name()
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        let mut grants = self.grants.lock().unwrap();
        let mode = self.modes[grants.requested % self.modes.len()];
        grants.requested += 1;
        self.control.set(mode);
        let permit = self.tokens.reserve(kind, now)?;
        if self.control.reserve(kind, now).is_none() {
            self.tokens.settle(permit, End::NeverMade, now);
            return None;
        }
        match mode {
            ControlMode::Enforced => grants.while_enforced += 1,
            ControlMode::NoRetries => grants.while_no_retries += 1,
            _ => {}
        }
        Some(permit)
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        self.tokens.settle(permit, end, now);
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
        let control = RetryControl::new();
        let changing = ChangingControl {
            tokens: Controlled::new(&tokens, &control),
            control: &control,
            modes,
            grants: Mutex::default(),
        };
        let tally = run_steps(&changing, &steps, |_| Ok(()))?;
        let grants = *changing.grants.lock().unwrap();
        prop_assert!(grants.while_enforced * 5 <= u64::from(capacity) + 2 * tally.successes, "{grants:?}");
        prop_assert_eq!(grants.while_no_retries, 0);
    }
}
