//! [`ControlledBudget`]: modes and shares of an operator control.

use std::sync::Arc;

use stagger_core::budget::{
    Concurrent, ControlMode, ControlSetting, ControlledBudget, Refund, RetryControl, Throttle, Tokens, Unlimited,
};
use stagger_core::guard::BudgetPermit;
use stagger_core::{Budget, FailureKind, Outcome, Ratio};

use super::{NOW, attempt, drain};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

fn control(capacity: u32) -> ControlledBudget<Tokens> {
    ControlledBudget::new(Tokens::builder().capacity(capacity).cost(1).reward(1).build().unwrap())
}

fn acquire(control: &dyn Budget, times: usize) -> Vec<BudgetPermit> {
    (0..times).filter_map(|_| control.try_acquire(FailureKind::Transient, &NOW)).collect()
}

#[test]
fn the_default_mode_enforces_the_budget() {
    let control = control(3);
    assert_eq!((control.mode(), ControlMode::default()), (ControlMode::Enforced, ControlMode::Enforced));
    assert_eq!((acquire(&control, 5).len(), control.available()), (3, Some(0)));
    assert_eq!(control.snapshot().rejected, 2);
}

#[test]
fn observed_mode_grants_and_counts_what_it_would_reject() {
    let control = control(3);
    control.set(ControlMode::Observed);
    assert_eq!(acquire(&control, 5).len(), 5);
    let seen = control.snapshot();
    assert_eq!((seen.mode, seen.would_have_rejected, seen.rejected), (ControlMode::Observed, 2, 0));
    assert_eq!((control.budget().snapshot().tokens, control.available()), (0, None));
}

#[test]
fn off_mode_grants_without_charging_the_budget() {
    let control = control(3);
    control.set(ControlMode::Off);
    assert_eq!(acquire(&control, 5).len(), 5);
    assert_eq!((control.budget().snapshot().tokens, control.snapshot().would_have_rejected), (3, 0));
}

#[test]
fn no_retries_mode_rejects_without_charging_the_budget() {
    let control = control(3);
    control.set(ControlMode::NoRetries);
    assert_eq!((acquire(&control, 5).len(), control.available()), (0, Some(0)));
    assert_eq!(
        (control.budget().snapshot().tokens, control.snapshot().stopped, control.snapshot().rejected),
        (3, 5, 0)
    );
}

/// Attempts reach the budget in every mode, so that its state is current when it is enforced again.
#[test]
fn the_budget_records_every_attempt_in_every_mode() {
    for mode in MODES {
        let control = ControlledBudget::new(Throttle::new(10, Ratio::ONE).unwrap());
        control.set(mode);
        attempt(&control, Outcome::TRANSIENT, NOW);
        if let Some(permit) = control.try_acquire(FailureKind::Transient, &NOW) {
            control.record(permit, &Outcome::TRANSIENT, &NOW);
        } else {
            attempt(&control, Outcome::TRANSIENT, NOW);
        }
        assert_eq!(control.budget().snapshot().milli_tokens, 8_000, "{mode:?}");
    }
}

/// Permits granted in one mode are returned in another, for every pair of modes.
#[test]
fn permits_are_returned_after_a_change_of_mode() {
    for granted_in in MODES {
        for returned_in in MODES {
            let (tokens, concurrent) = (control(2), ControlledBudget::new(Concurrent::with(Ratio::ZERO, 2).unwrap()));
            for budget in [&tokens as &dyn Budget, &concurrent] {
                let set = |mode| (tokens.set(mode), concurrent.set(mode));
                set(granted_in);
                let first = budget.on_first_attempt(&NOW);
                let mut permits = acquire(budget, 4);
                set(returned_in);
                budget.record(first, &Outcome::Cancelled, &NOW);
                if let Some(permit) = permits.pop() {
                    budget.release(permit);
                }
                permits.into_iter().for_each(|permit| budget.release(permit));
            }
            assert_eq!(tokens.budget().snapshot().tokens, 2, "{granted_in:?}, {returned_in:?}");
            assert_eq!(concurrent.budget().snapshot().firsts, 0, "{granted_in:?}, {returned_in:?}");
            assert_eq!(concurrent.budget().snapshot().retries, 0, "{granted_in:?}, {returned_in:?}");
            tokens.set(ControlMode::Enforced);
            assert_eq!(drain(&tokens, NOW).len(), 2);
        }
    }
}

/// Of the first n requests `share · n` are granted, rounded down; of any consecutive ones the share, within one.
#[test]
fn a_share_is_granted_exactly_and_evenly() {
    for millionths in [0, 1, 250_000, 333_333, 500_000, 999_999, 1_000_000] {
        let share = Ratio::millionths(millionths);
        let control = ControlledBudget::new(Unlimited);
        control.set(share);
        let mut granted = 0;
        for requested in 1..=10_000 {
            granted += acquire(&control, 1).len() as u64;
            assert_eq!(granted, share.of(requested), "{share} of {requested}");
        }
        assert_eq!(control.snapshot().limited, 10_000 - granted);
    }
}

#[test]
fn a_share_applies_in_each_mode_before_the_budget() {
    for (mode, granted, refused, would_have_rejected) in [
        (ControlMode::Enforced, 3, 2, 0),
        (ControlMode::Observed, 5, 0, 2),
        (ControlMode::Off, 5, 0, 0),
        (ControlMode::NoRetries, 0, 0, 0),
    ] {
        let control = control(3);
        control.set(ControlSetting::new(mode, Ratio::percent(50)));
        assert_eq!(acquire(&control, 10).len(), granted, "{mode:?}");
        let seen = control.snapshot();
        assert_eq!((seen.mode, seen.share), (mode, Ratio::percent(50)));
        assert_eq!((seen.rejected, seen.would_have_rejected), (refused, would_have_rejected), "{mode:?}");
        let (limited, stopped) = if mode == ControlMode::NoRetries { (0, 10) } else { (5, 0) };
        assert_eq!((seen.limited, seen.stopped), (limited, stopped), "{mode:?}");
    }
}

/// The budget did not grant these retries, so their success counts like that of a first attempt.
#[test]
fn the_success_of_a_retry_granted_without_the_budget_refunds_no_cost() {
    let tokens = Tokens::builder().capacity(500).initial(0).refund(Refund::LastCost).reward(1).build().unwrap();
    let control = ControlledBudget::new(tokens);
    for (mode, want) in [(ControlMode::Observed, 1), (ControlMode::Off, 2)] {
        control.set(mode);
        for permit in acquire(&control, 1) {
            control.record(permit, &Outcome::Success, &NOW);
        }
        assert_eq!(control.budget().snapshot().tokens, want, "{mode:?}");
    }
}

#[test]
fn a_share_of_zero_rejects_every_retry() {
    let control = control(3);
    control.set(Ratio::ZERO);
    assert_eq!((acquire(&control, 3).len(), control.available(), control.budget().available()), (0, Some(0), Some(3)));
}

#[test]
fn budgets_with_one_control_apply_its_share_jointly() {
    let shared = Arc::new(RetryControl::new());
    let (one, other) = (
        ControlledBudget::with_control(Unlimited, Arc::clone(&shared)),
        ControlledBudget::with_control(control(9), &*shared),
    );
    shared.set(Ratio::percent(50));
    assert_eq!((0..6).map(|_| acquire(&one, 1).len() + acquire(&other, 1).len()).sum::<usize>(), 6);
    other.set(ControlMode::NoRetries);
    assert_eq!((acquire(&one, 5).len(), one.snapshot().stopped), (0, 5));
}

#[test]
fn a_setting_sets_mode_and_share_and_displays_both() {
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
fn mode_names_round_trip() {
    assert_eq!(ControlMode::ALL, MODES);
    assert_eq!(MODES.map(ControlMode::name), ["enforced", "observed", "off", "no-retries"]);
    for mode in MODES {
        assert_eq!(ControlMode::from_name(mode.name()), Some(mode));
    }
    assert_eq!(ControlMode::from_name("Off"), None);
}
