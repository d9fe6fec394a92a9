//! Operator controls.

use ::loom::sync::Arc;
use stagger_core::budget::{Concurrent, ControlMode, ControlSetting, ControlledBudget, Tokens, Unlimited};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::support::{NOW, model, together};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

fn acquire(budget: &dyn Budget) -> u64 {
    u64::from(budget.try_acquire(FailureKind::Transient, &NOW).is_some())
}

#[test]
fn loom_every_request_is_counted_while_the_mode_changes() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Tokens::builder().capacity(1).cost(1).reward(0).build().unwrap()));
        let acquire: fn(&ControlledBudget<Tokens>) -> u64 = |control| acquire(control);
        let stop: fn(&ControlledBudget<Tokens>) -> u64 = |control| {
            control.set(ControlMode::NoRetries);
            0
        };
        let granted = together(&control, &[acquire, stop, acquire]);
        let seen = control.snapshot();
        assert!(granted <= 1, "the budget has one token");
        assert_eq!((granted + seen.rejected + seen.stopped, seen.would_have_rejected), (2, 0));
        assert_eq!(control.budget().snapshot().tokens, 1 - granted);
    });
}

#[test]
fn loom_permits_are_returned_while_the_mode_changes() {
    for mode in MODES {
        model(move || {
            let control = Arc::new(ControlledBudget::new(Concurrent::with(Ratio::ZERO, 1).unwrap()));
            let call: fn(&ControlledBudget<Concurrent>) -> u64 = |control| {
                let first = control.on_first_attempt(&NOW);
                control.record(first, &Outcome::TRANSIENT, &NOW);
                let Some(permit) = control.try_acquire(FailureKind::Transient, &NOW) else { return 0 };
                control.release(permit);
                1
            };
            let shared = control.clone();
            let setter = ::loom::thread::spawn(move || shared.set(mode));
            together(&control, &[call, call]);
            setter.join().unwrap();
            assert_eq!(control.mode(), mode);
            let seen = control.budget().snapshot();
            assert_eq!((seen.firsts, seen.retries), (0, 0));
            assert_ne!(control.budget().try_acquire(FailureKind::Transient, &NOW), None::<BudgetPermit>);
        });
    }
}

#[test]
fn loom_threads_get_exactly_the_share() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Unlimited));
        control.set(Ratio::percent(50));
        let twice: fn(&ControlledBudget<Unlimited>) -> u64 = |control| acquire(control) + acquire(control);
        assert_eq!(together(&control, &[twice, twice, |control| acquire(control)]), 2);
        assert_eq!(control.snapshot().limited, 3);
    });
}

#[test]
fn loom_setting_a_control_is_atomic() {
    model(|| {
        let control = Arc::new(ControlledBudget::new(Unlimited));
        let (before, after) =
            (ControlSetting::new(ControlMode::Observed, Ratio::ZERO), ControlSetting::from(ControlMode::NoRetries));
        control.set(before);
        let shared = Arc::clone(&control);
        let setter = ::loom::thread::spawn(move || shared.set(ControlMode::NoRetries));
        let (granted, seen) = (acquire(&*control), control.control().setting());
        setter.join().expect("the thread does not panic");
        assert!(granted == 0 && (seen == before || seen == after), "{seen}");
        let counted = control.snapshot();
        assert_eq!(counted.limited + counted.stopped, 1);
    });
}
