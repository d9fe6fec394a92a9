//! Operator controls.

use ::loom::sync::Arc;
use stagger_core::budget::{Concurrent, ControlMode, ControlSetting, Controlled, RetryControl, Tokens};
use stagger_core::guard::End;
use stagger_core::{FailureKind, Guard, Guards, Outcome, Ratio};

use super::support::{NOW, Start, model, together};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

/// A budget and the control that it is under.
#[derive(Debug)]
struct Target<B> {
    budget: B,
    control: RetryControl,
}

impl<B: Guard> Target<B> {
    fn new(budget: B) -> Arc<Self> {
        Arc::new(Self { budget, control: RetryControl::new() })
    }

    fn controlled(&self) -> Controlled<&B, &RetryControl> {
        Controlled::new(&self.budget, &self.control)
    }

    /// Requests a retry from the budget and, after it, from the control.
    fn acquire(&self) -> u64 {
        let controlled = self.controlled();
        let list: [&dyn Guard; 2] = [&controlled, &self.control];
        u64::from(Guards::of(&list).another_of_several(|| NOW).is_ok())
    }
}

fn acquire(control: &RetryControl) -> u64 {
    u64::from(control.reserve(FailureKind::Transient, &NOW).is_some())
}

#[test]
fn loom_every_request_is_counted_while_the_mode_changes() {
    model(|| {
        let target = Target::new(Tokens::builder().capacity(1).cost(1).reward(0).build().unwrap());
        let acquire: fn(&Target<Tokens>) -> u64 = |target| target.acquire();
        let stop: fn(&Target<Tokens>) -> u64 = |target| {
            target.control.set(ControlMode::NoRetries);
            0
        };
        let granted = together(&target, &[acquire, stop, acquire]);
        let seen = target.control.snapshot();
        assert!(granted <= 1, "the budget has one token");
        assert_eq!((granted + seen.rejected + seen.stopped, seen.would_have_rejected), (2, 0));
        assert_eq!(target.budget.snapshot().tokens, 1 - granted);
    });
}

#[test]
fn loom_permits_are_returned_while_the_mode_changes() {
    for mode in MODES {
        model(move || {
            let target = Target::new(Concurrent::with(Ratio::ZERO, 1).unwrap());
            let call: fn(&Target<Concurrent>) -> u64 = |target| {
                let controlled = target.controlled();
                let first = controlled.start(&NOW);
                controlled.settle(first, End::Made(&Outcome::TRANSIENT), &NOW);
                let Some(permit) = controlled.reserve(FailureKind::Transient, &NOW) else { return 0 };
                controlled.settle(permit, End::NeverMade, &NOW);
                1
            };
            let shared = target.clone();
            let setter = ::loom::thread::spawn(move || shared.control.set(mode));
            together(&target, &[call, call]);
            setter.join().unwrap();
            assert_eq!(target.control.setting().mode(), mode);
            let seen = target.budget.snapshot();
            assert_eq!((seen.firsts, seen.retries), (0, 0));
            assert!(target.budget.reserve(FailureKind::Transient, &NOW).is_some());
        });
    }
}

#[test]
fn loom_threads_get_exactly_the_share() {
    model(|| {
        let control = Arc::new(RetryControl::new());
        control.set(Ratio::percent(50));
        let twice: fn(&RetryControl) -> u64 = |control| acquire(control) + acquire(control);
        assert_eq!(together(&control, &[twice, twice, |control| acquire(control)]), 2);
        assert_eq!(control.snapshot().limited, 3);
    });
}

#[test]
fn loom_setting_a_control_is_atomic() {
    model(|| {
        let control = Arc::new(RetryControl::new());
        let (before, after) =
            (ControlSetting::new(ControlMode::Observed, Ratio::ZERO), ControlSetting::from(ControlMode::NoRetries));
        control.set(before);
        let shared = Arc::clone(&control);
        let setter = ::loom::thread::spawn(move || shared.set(ControlMode::NoRetries));
        let (granted, seen) = (acquire(&control), control.setting());
        setter.join().expect("the thread does not panic");
        assert!(granted == 0 && (seen == before || seen == after), "{seen}");
        let counted = control.snapshot();
        assert_eq!(counted.limited + counted.stopped, 1);
    });
}
