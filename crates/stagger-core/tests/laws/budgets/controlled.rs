//! [`ControlledBudget`].

use std::sync::Arc;

use stagger_core::budget::{
    Concurrent, ControlMode, ControlSetting, ControlledBudget, RetryControl, Throttle, Tokens, Unlimited,
};
use stagger_core::{Budget, FailureKind, Outcome, Ratio, guard::BudgetPermit};

use super::{NOW, attempt, drain};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

fn control(capacity: u32) -> ControlledBudget<Tokens> {
    ControlledBudget::new(Tokens::builder().capacity(capacity).cost(1).reward(1).build().unwrap())
}

fn ask(control: &dyn Budget, times: usize) -> Vec<BudgetPermit> {
    (0..times).filter_map(|_| control.try_acquire(FailureKind::Transient, &NOW)).collect()
}

#[test]
fn it_is_enforced_unless_it_is_moved() {
    let control = control(3);
    assert_eq!((control.mode(), ControlMode::default()), (ControlMode::Enforced, ControlMode::Enforced));
    assert_eq!((ask(&control, 5).len(), control.available()), (3, Some(0)));
    assert_eq!(control.snapshot().rejected, 2);
}

#[test]
fn what_is_observed_passes_and_is_counted() {
    let control = control(3);
    control.set(ControlMode::Observed);
    assert_eq!(ask(&control, 5).len(), 5);
    let seen = control.snapshot();
    assert_eq!((seen.mode, seen.would_have_rejected, seen.rejected), (ControlMode::Observed, 2, 0));
    assert_eq!((control.budget().snapshot().tokens, control.available()), (0, None));
}

#[test]
fn what_is_off_is_not_asked() {
    let control = control(3);
    control.set(ControlMode::Off);
    assert_eq!(ask(&control, 5).len(), 5);
    assert_eq!((control.budget().snapshot().tokens, control.snapshot().would_have_rejected), (3, 0));
}

#[test]
fn no_retries_are_none_and_cost_nothing() {
    let control = control(3);
    control.set(ControlMode::NoRetries);
    assert_eq!((ask(&control, 5).len(), control.available()), (0, Some(0)));
    assert_eq!(
        (control.budget().snapshot().tokens, control.snapshot().stopped, control.snapshot().rejected),
        (3, 5, 0)
    );
}

/// In every mode the budget hears of the attempts, so that it knows the present when it is enforced again.
#[test]
fn the_budget_hears_of_every_attempt_in_every_mode() {
    for mode in MODES {
        let control = ControlledBudget::new(Throttle::new(10, Ratio::ONE).unwrap());
        control.set(mode);
        attempt(&control, Outcome::TRANSIENT, NOW);
        if let Some(loan) = control.try_acquire(FailureKind::Transient, &NOW) {
            control.record(loan, &Outcome::TRANSIENT, &NOW);
        } else {
            attempt(&control, Outcome::TRANSIENT, NOW);
        }
        assert_eq!(control.budget().snapshot().milli_tokens, 8_000, "{mode:?}");
    }
}

/// What was lent in one mode and comes back in another, in every combination.
#[test]
fn loans_come_home_whatever_the_mode_has_become() {
    for lent_in in MODES {
        for settled_in in MODES {
            let (tokens, places) = (control(2), ControlledBudget::new(Concurrent::with(Ratio::ZERO, 2).unwrap()));
            for budget in [&tokens as &dyn Budget, &places] {
                let set = |mode| (tokens.set(mode), places.set(mode));
                set(lent_in);
                let first = budget.on_first_attempt(&NOW);
                let mut loans = ask(budget, 4);
                set(settled_in);
                budget.record(first, &Outcome::Cancelled, &NOW);
                if let Some(loan) = loans.pop() {
                    budget.release(loan);
                }
                loans.into_iter().for_each(|loan| budget.release(loan));
            }
            assert_eq!(tokens.budget().snapshot().tokens, 2, "{lent_in:?}, {settled_in:?}");
            assert_eq!(places.budget().snapshot().firsts, 0, "{lent_in:?}, {settled_in:?}");
            assert_eq!(places.budget().snapshot().retries, 0, "{lent_in:?}, {settled_in:?}");
            tokens.set(ControlMode::Enforced);
            assert_eq!(drain(&tokens, NOW).len(), 2);
        }
    }
}

/// Of the first n pass `share · n`, rounded down, so of any that follow one another the share, give or take one.
#[test]
fn a_share_passes_exactly_and_evenly() {
    for millionths in [0, 1, 250_000, 333_333, 500_000, 999_999, 1_000_000] {
        let share = Ratio::millionths(millionths);
        let control = ControlledBudget::new(Unlimited);
        control.set(share);
        let mut passed = 0;
        for asked in 1..=10_000 {
            passed += ask(&control, 1).len() as u64;
            assert_eq!(passed, share.of(asked), "{share} of {asked}");
        }
        assert_eq!(control.snapshot().limited, 10_000 - passed);
    }
}

#[test]
fn a_share_limits_beside_each_mode_before_the_budget_is_asked() {
    for (mode, passed, refused, would_have_rejected) in [
        (ControlMode::Enforced, 3, 2, 0),
        (ControlMode::Observed, 5, 0, 2),
        (ControlMode::Off, 5, 0, 0),
        (ControlMode::NoRetries, 0, 0, 0),
    ] {
        let control = control(3);
        control.set(ControlSetting::new(mode, Ratio::percent(50)));
        assert_eq!(ask(&control, 10).len(), passed, "{mode:?}");
        let seen = control.snapshot();
        assert_eq!((seen.mode, seen.share), (mode, Ratio::percent(50)));
        assert_eq!((seen.rejected, seen.would_have_rejected), (refused, would_have_rejected), "{mode:?}");
        let (limited, stopped) = if mode == ControlMode::NoRetries { (0, 10) } else { (5, 0) };
        assert_eq!((seen.limited, seen.stopped), (limited, stopped), "{mode:?}");
    }
}

#[test]
fn a_share_of_nothing_leaves_nothing() {
    let control = control(3);
    control.set(Ratio::ZERO);
    assert_eq!((ask(&control, 3).len(), control.available(), control.budget().available()), (0, Some(0), Some(3)));
}

#[test]
fn controls_that_share_a_switch_let_the_share_pass_together() {
    let switch = Arc::new(RetryControl::new());
    let (one, other) = (
        ControlledBudget::with_control(Unlimited, Arc::clone(&switch)),
        ControlledBudget::with_control(control(9), &*switch),
    );
    switch.set(Ratio::percent(50));
    assert_eq!((0..6).map(|_| ask(&one, 1).len() + ask(&other, 1).len()).sum::<usize>(), 6);
    other.set(ControlMode::NoRetries);
    assert_eq!((ask(&one, 5).len(), one.snapshot().stopped), (0, 5));
}

#[test]
fn a_setting_moves_both_and_reads_as_it_is_written() {
    let control = control(1);
    for (setting, text) in [
        (ControlSetting::default(), "enforced"),
        (ControlSetting::from(ControlMode::Off), "off"),
        (ControlSetting::from(Ratio::percent(25)), "enforced 25%"),
        (ControlSetting::new(ControlMode::Observed, Ratio::millionths(1)), "observed 0.0001%"),
        (ControlSetting::new(ControlMode::Observed, Ratio::percent(200)), "observed"),
    ] {
        control.set(setting);
        assert_eq!((control.control().setting(), setting.to_string()), (setting, text.to_owned()));
    }
}

#[test]
fn modes_have_names_that_are_read_back() {
    assert_eq!(ControlMode::ALL, MODES);
    assert_eq!(MODES.map(ControlMode::name), ["enforced", "observed", "off", "no-retries"]);
    for mode in MODES {
        assert_eq!(ControlMode::from_name(mode.name()), Some(mode));
    }
    assert_eq!(ControlMode::from_name("Off"), None);
}
