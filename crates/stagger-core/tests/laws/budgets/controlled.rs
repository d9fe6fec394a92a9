//! [`Controlled`] and [`RetryControl`]: modes and shares of an operator control.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::breaker::{BreakerState, CircuitBreaker};
use stagger_core::budget::{
    Concurrent, ControlMode, ControlSetting, Controlled, Refund, RetryControl, Throttle, Tokens, Window,
};
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::pacer::Pacer;
use stagger_core::quiet::QuietPeriod;
use stagger_core::{FailureKind, Guard, Guards, Outcome, Ratio, Seed};

use super::{NOW, attempt, drain};
use crate::laws::support::{RecordingGuard, Start, secs};

const MODES: [ControlMode; 4] =
    [ControlMode::Enforced, ControlMode::Observed, ControlMode::Off, ControlMode::NoRetries];

fn tokens(capacity: u32) -> Tokens {
    Tokens::builder().capacity(capacity).cost(1).reward(1).build().unwrap()
}

fn acquire(budget: &dyn Guard, times: usize) -> Vec<Permit> {
    (0..times).filter_map(|_| budget.reserve(FailureKind::Transient, &NOW)).collect()
}

/// Requests retries from a budget under the control and, after it, from the control, and returns how many are granted.
fn granted(tokens: &Tokens, control: &RetryControl, times: usize) -> usize {
    let controlled = Controlled::new(tokens, control);
    let list: [&dyn Guard; 2] = [&controlled, control];
    let guards = Guards::of(&list);
    (0..times).filter(|_| guards.another_of_several(|| NOW).is_ok()).count()
}

#[test]
fn the_default_mode_enforces_the_budget() {
    let (tokens, control) = (tokens(3), RetryControl::new());
    let budget = Controlled::new(&tokens, &control);
    assert_eq!((control.setting().mode(), ControlMode::default()), (ControlMode::Enforced, ControlMode::Enforced));
    assert_eq!((acquire(&budget, 5).len(), budget.available()), (3, Some(0)));
    assert_eq!(control.snapshot().rejected, 2);
}

#[test]
fn observed_mode_grants_and_counts_what_it_would_reject() {
    let (tokens, control) = (tokens(3), RetryControl::new());
    let budget = Controlled::new(&tokens, &control);
    control.set(ControlMode::Observed);
    assert_eq!(acquire(&budget, 5).len(), 5);
    let seen = control.snapshot();
    assert_eq!((seen.mode, seen.would_have_rejected, seen.rejected), (ControlMode::Observed, 2, 0));
    assert_eq!((tokens.snapshot().tokens, budget.available()), (0, None));
}

#[test]
fn off_mode_grants_without_charging_the_budget() {
    let (tokens, control) = (tokens(3), RetryControl::new());
    control.set(ControlMode::Off);
    assert_eq!(acquire(&Controlled::new(&tokens, &control), 5).len(), 5);
    assert_eq!((tokens.snapshot().tokens, control.snapshot().would_have_rejected), (3, 0));
}

#[test]
fn no_retries_mode_rejects_without_charging_the_budget() {
    let (tokens, control) = (tokens(3), RetryControl::new());
    control.set(ControlMode::NoRetries);
    assert_eq!((granted(&tokens, &control, 5), control.available()), (0, Some(0)));
    assert_eq!((tokens.snapshot().tokens, control.snapshot().stopped, control.snapshot().rejected), (3, 5, 0));
}

/// Attempts reach the guard in every mode, so that its state is current when it is enforced again.
#[test]
fn the_guard_is_told_of_every_attempt_in_every_mode() {
    for mode in MODES {
        let control = RetryControl::new();
        control.set(mode);
        let throttle = Throttle::new(10, Ratio::ONE).unwrap();
        let budget = Controlled::new(&throttle, &control);
        attempt(&budget, Outcome::TRANSIENT, NOW);
        let retry = budget.reserve(FailureKind::Transient, &NOW).expect("half of the tokens are left");
        budget.settle(retry, End::Made(&Outcome::TRANSIENT), &NOW);
        assert_eq!(throttle.snapshot().milli_tokens, 8_000, "{mode:?}");

        // Window counts attempts that start, and a breaker those that it let start.
        let (window, breaker) = (Window::new(), CircuitBreaker::new(Seed::new(1)));
        attempt(&Controlled::new(&window, &control), Outcome::Success, NOW);
        assert_eq!(window.snapshot(NOW).calls, 1, "{mode:?}");
        (0..5).for_each(|_| attempt(&Controlled::new(&breaker, &control), Outcome::TRANSIENT, NOW));
        assert_eq!(breaker.state(), BreakerState::Open, "{mode:?}");
    }
}

/// A retry that was granted without the breaker asks it when it starts, as every attempt does.
#[test]
fn a_breaker_is_asked_about_a_retry_that_was_reserved_in_another_mode() {
    let (breaker, control) = (RecordingGuard::breaker(), RetryControl::new());
    let controlled = Controlled::new(&breaker, &control);
    control.set(ControlMode::Off);
    let retry = controlled.reserve(FailureKind::Transient, &NOW).unwrap();
    control.set(ControlMode::Enforced);
    breaker.set_open(true);
    let mut ask = Ask::FIRST;
    ask.is_first = false;
    assert!(matches!(controlled.ask(ask, retry, &NOW), Answer::No { .. }));
    breaker.assert_balanced();
}

/// Permits granted in one mode are returned in another, for every pair of modes.
#[test]
fn permits_are_returned_after_a_change_of_mode() {
    for granted_in in MODES {
        for returned_in in MODES {
            let (tokens, concurrent) = (tokens(2), Concurrent::with(Ratio::ZERO, 2).unwrap());
            let control = RetryControl::new();
            let budgets = (Controlled::new(&tokens, &control), Controlled::new(&concurrent, &control));
            for budget in [&budgets.0 as &dyn Guard, &budgets.1] {
                control.set(granted_in);
                let first = budget.start(&NOW);
                let permits = acquire(budget, 4);
                control.set(returned_in);
                budget.settle(first, End::Made(&Outcome::Cancelled), &NOW);
                permits.into_iter().for_each(|permit| budget.settle(permit, End::NeverMade, &NOW));
            }
            assert_eq!(tokens.snapshot().tokens, 2, "{granted_in:?}, {returned_in:?}");
            assert_eq!(concurrent.snapshot().firsts, 0, "{granted_in:?}, {returned_in:?}");
            assert_eq!(concurrent.snapshot().retries, 0, "{granted_in:?}, {returned_in:?}");
            control.set(ControlMode::Enforced);
            assert_eq!(drain(&budgets.0, NOW).len(), 2);
        }
    }
}

/// Of the first n requests `share · n` are granted, rounded down; of any consecutive ones the share, within one.
#[test]
fn a_share_is_granted_exactly_and_evenly() {
    for millionths in [0, 1, 250_000, 333_333, 500_000, 999_999, 1_000_000] {
        let share = Ratio::millionths(millionths);
        let control = RetryControl::new();
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
fn a_share_applies_in_each_mode_to_what_the_budget_grants() {
    for (mode, want, rejected, would_have_rejected, limited) in [
        (ControlMode::Enforced, 3, 4, 0, 3),
        (ControlMode::Observed, 5, 0, 4, 5),
        (ControlMode::Off, 5, 0, 0, 5),
        (ControlMode::NoRetries, 0, 0, 0, 0),
    ] {
        let (tokens, control) = (tokens(3), RetryControl::new());
        control.set(ControlSetting::new(mode, Ratio::percent(50)));
        assert_eq!(granted(&tokens, &control, 10), want, "{mode:?}");
        let seen = control.snapshot();
        assert_eq!((seen.mode, seen.share), (mode, Ratio::percent(50)));
        assert_eq!((seen.rejected, seen.would_have_rejected), (rejected, would_have_rejected), "{mode:?}");
        let stopped = if mode == ControlMode::NoRetries { 10 } else { 0 };
        assert_eq!((seen.limited, seen.stopped), (limited, stopped), "{mode:?}");
    }
}

/// The budget did not grant these retries, so their success counts like that of a first attempt.
#[test]
fn the_success_of_a_retry_granted_without_the_budget_refunds_no_cost() {
    let tokens = Tokens::builder().capacity(500).initial(0).refund(Refund::LastCost).reward(1).build().unwrap();
    let control = RetryControl::new();
    let budget = Controlled::new(&tokens, &control);
    for (mode, want) in [(ControlMode::Observed, 1), (ControlMode::Off, 2)] {
        control.set(mode);
        for permit in acquire(&budget, 1) {
            budget.settle(permit, End::Made(&Outcome::Success), &NOW);
        }
        assert_eq!(tokens.snapshot().tokens, want, "{mode:?}");
    }
}

#[test]
fn a_share_of_zero_rejects_every_retry_and_charges_none() {
    let (tokens, control) = (tokens(3), RetryControl::new());
    control.set(Ratio::ZERO);
    assert_eq!((granted(&tokens, &control, 3), control.available(), tokens.available()), (0, Some(0), Some(3)));
}

#[test]
fn guards_with_one_control_are_set_together_and_share_its_counters() {
    let control = Arc::new(RetryControl::new());
    let empty = Tokens::builder().initial(0);
    let (one, other) = (empty.build().unwrap(), empty.build().unwrap());
    let budgets = [&one, &other].map(|tokens| Controlled::new(tokens, Arc::clone(&control)));
    assert!(budgets.iter().all(|budget| acquire(budget, 1).is_empty()));
    control.set(ControlMode::Observed);
    assert!(budgets.iter().all(|budget| acquire(budget, 1).len() == 1));
    assert_eq!((control.snapshot().rejected, control.snapshot().would_have_rejected), (2, 2));
}

#[test]
fn an_open_breaker_rejects_only_while_it_is_enforced_and_changes_its_state_in_every_mode() {
    for (mode, is_enforced, would_have_rejected) in [
        (ControlMode::Enforced, true, 0),
        (ControlMode::NoRetries, true, 0),
        (ControlMode::Observed, false, 3),
        (ControlMode::Off, false, 0),
    ] {
        let (breaker, control) = (CircuitBreaker::new(Seed::new(1)), RetryControl::new());
        let controlled = Controlled::new(&breaker, &control);
        control.set(mode);
        (0..5).for_each(|_| attempt(&controlled, Outcome::TRANSIENT, NOW));
        for outcome in [Outcome::Success, Outcome::TRANSIENT, Outcome::Success] {
            match controlled.first(&NOW) {
                Answer::Go(permit) if !is_enforced => controlled.settle(permit, End::Made(&outcome), &NOW),
                Answer::No { .. } if is_enforced => {}
                answer => panic!("{mode:?}: {answer:?}"),
            }
        }
        assert_eq!(breaker.state(), BreakerState::Open, "{mode:?}: results of those that it did not let start");
        let seen = control.snapshot();
        assert_eq!((seen.rejected, seen.would_have_rejected), (if is_enforced { 3 } else { 0 }, would_have_rejected));
        control.set(ControlMode::Enforced);
        assert!(matches!(controlled.first(&NOW), Answer::No { .. }), "enforced after {mode:?}");
        control.set(mode);
        assert_eq!(controlled.retry_in(&NOW).is_zero(), !is_enforced, "{mode:?}");
        assert_eq!(controlled.would_refuse(Duration::ZERO, None, &NOW), is_enforced, "{mode:?}");
        // One probe, in every mode; an attempt beside it does not count.
        let later = NOW.saturating_add(secs(5));
        let probe = controlled.start(&later);
        if let Answer::Go(permit) = controlled.first(&later) {
            controlled.settle(permit, End::Made(&Outcome::TRANSIENT), &later);
        }
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "{mode:?}");
        controlled.settle(probe, End::Made(&Outcome::Success), &later);
        assert_eq!(breaker.state(), BreakerState::Closed, "{mode:?}");
    }
}

#[test]
fn a_quiet_period_and_a_pacer_hold_nobody_unless_they_are_enforced() {
    let (quiet, pacer) = (QuietPeriod::new(), Pacer::new());
    quiet.pause(secs(10), &NOW);
    // Half of the calls of a second are refused. The next one ends the measuring, and has the first turn.
    let mut now = NOW;
    for n in 0..100 {
        attempt(&pacer, if n % 2 == 0 { Outcome::throttled(None) } else { Outcome::Success }, now);
        now = now.saturating_add(Duration::from_millis(10));
    }
    attempt(&pacer, Outcome::Success, now);
    for (guard, waiting) in [
        (&quiet as &dyn Guard, &(|| quiet.snapshot(&now).waiting) as &dyn Fn() -> u32),
        (&pacer, &|| pacer.snapshot().waiting),
    ] {
        let control = RetryControl::new();
        let controlled = Controlled::new(guard, &control);
        let Answer::Wait { permit, .. } = controlled.first(&now) else { panic!("{guard:?} is enforced") };
        assert_eq!(waiting(), 1);
        for (mode, would_have_rejected) in [(ControlMode::Observed, 1), (ControlMode::Off, 1)] {
            control.set(mode);
            assert!(matches!(controlled.first(&now), Answer::Go(_)), "{guard:?}, {mode:?}");
            assert_eq!(control.snapshot().would_have_rejected, would_have_rejected, "{guard:?}, {mode:?}");
        }
        // One that waited when the mode changed starts, too, and its place is free.
        let permit = match controlled.ask(Ask::FIRST, permit, &now) {
            Answer::Go(permit) => permit,
            answer => panic!("{guard:?}: {answer:?}"),
        };
        assert_eq!(waiting(), 0, "{guard:?}");
        controlled.settle(permit, End::Made(&Outcome::Success), &now);
        assert!(controlled.retry_in(&now).is_zero() && !guard.retry_in(&now).is_zero());
    }
}

#[test]
fn a_setting_sets_mode_and_share_and_displays_both() {
    let control = RetryControl::new();
    for (setting, text) in [
        (ControlSetting::default(), "enforced"),
        (ControlSetting::from(ControlMode::Off), "off"),
        (ControlSetting::from(Ratio::percent(25)), "enforced 25%"),
        (ControlSetting::new(ControlMode::Observed, Ratio::millionths(1)), "observed 0.0001%"),
        (ControlSetting::new(ControlMode::Observed, Ratio::percent(200)), "observed"),
    ] {
        control.set(setting);
        assert_eq!((control.setting(), setting.to_string()), (setting, text.to_owned()));
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
