//! The control.

use ::loom::sync::Arc;
use stagger_core::budget::{Concurrent, ControlMode, ControlSetting, ControlledBudget, Tokens, Unlimited};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::support::{NOW, model, together};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

fn ask(budget: &dyn Budget) -> u64 {
    u64::from(budget.try_acquire(FailureKind::Transient, &NOW).is_some())
}

#[test]
fn loom_every_retry_that_is_asked_for_is_counted_whoever_moves_the_control() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Tokens::builder().capacity(1).cost(1).reward(0).build().unwrap()));
        let ask: fn(&ControlledBudget<Tokens>) -> u64 = |control| ask(control);
        let stop: fn(&ControlledBudget<Tokens>) -> u64 = |control| {
            control.set(ControlMode::NoRetries);
            0
        };
        let lent = together(&control, &[ask, stop, ask]);
        let seen = control.snapshot();
        assert!(lent <= 1, "there is one token");
        assert_eq!((lent + seen.refused + seen.stopped, seen.would_have_rejected), (2, 0));
        assert_eq!(control.budget().snapshot().tokens, 1 - lent);
    });
}

#[test]
fn loom_a_loan_comes_home_whatever_the_control_has_become() {
    for mode in MODES {
        model(move || {
            let control = Arc::new(ControlledBudget::new(Concurrent::with(Ratio::ZERO, 1).unwrap()));
            let call: fn(&ControlledBudget<Concurrent>) -> u64 = |control| {
                let first = control.on_first_attempt(&NOW);
                control.record(first, &Outcome::TRANSIENT, &NOW);
                let Some(loan) = control.try_acquire(FailureKind::Transient, &NOW) else { return 0 };
                control.release(loan);
                1
            };
            let moving = control.clone();
            let mover = ::loom::thread::spawn(move || moving.set(mode));
            together(&control, &[call, call]);
            mover.join().unwrap();
            assert_eq!(control.mode(), mode);
            let seen = control.budget().snapshot();
            assert_eq!((seen.firsts, seen.retries), (0, 0));
            assert_ne!(control.budget().try_acquire(FailureKind::Transient, &NOW), None::<BudgetPermit>);
        });
    }
}

#[test]
fn loom_a_share_is_let_pass_to_the_last() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Unlimited));
        control.set(Ratio::percent(50));
        let twice: fn(&ControlledBudget<Unlimited>) -> u64 = |control| ask(control) + ask(control);
        assert_eq!(together(&control, &[twice, twice, |control| ask(control)]), 2);
        assert_eq!(control.snapshot().limited, 3);
    });
}

#[test]
fn loom_a_control_is_moved_whole() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Unlimited));
        let (here, there) =
            (ControlSetting::new(ControlMode::Observed, Ratio::ZERO), ControlSetting::from(ControlMode::NoRetries));
        control.set(here);
        let theirs = Arc::clone(&control);
        let mover = ::loom::thread::spawn(move || theirs.set(ControlMode::NoRetries));
        let (lent, seen) = (ask(&*control), control.control().setting());
        mover.join().expect("it does not panic");
        assert!(lent == 0 && (seen == here || seen == there), "{seen}");
        let counted = control.snapshot();
        assert_eq!(counted.limited + counted.stopped, 1);
    });
}
