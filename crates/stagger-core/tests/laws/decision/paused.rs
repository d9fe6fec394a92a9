//! Paused retries: resumed, they continue as if they had not been paused.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guard, Guards, Instant, Outcome, Policy, Seed, StopReason, policy};

use crate::laws::support::{RecordingGuard, any_policy, at, cases, ms};

const LIMITED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(9).max_elapsed(ms(35)));

/// Fails up to `attempts` attempts in a row and returns the decisions. `between` replaces the state, the seed and the
/// time after each decision.
fn failing(
    policy: &Policy,
    attempts: u32,
    between: impl Fn(RetryState, Seed, &mut Instant) -> (RetryState, Seed),
) -> Vec<String> {
    let (mut state, mut seed, mut now) = (RetryState::new(), Seed::new(7), at(Duration::from_secs(1_000)));
    let outcome = |n: u32| if n % 3 == 2 { Outcome::NotProcessed } else { Outcome::TRANSIENT };
    let mut decisions = Vec::new();
    for n in 0..attempts {
        let mut retry = RetryMachine::new(policy, &mut state, seed);
        assert_eq!(retry.begin(Permits::NONE, || now, &Guards::none()), Ok(Permits::NONE));
        let decision = retry.decide(outcome(n), Permits::NONE, || now, &Guards::none());
        decisions.push(format!("{decision:?}"));
        let Decision::Retry { after, .. } = decision else { break };
        (state, seed) = between(state, seed, &mut now);
        // Stay far from the end of the clock, where arithmetic saturates.
        now = now.saturating_add(after.min(ms(86_400_000)));
    }
    decisions
}

proptest! {
    #![proptest_config(cases(256))]

    /// The epoch of the second clock may be before or after that of the first.
    #[test]
    fn a_resumed_retry_decides_as_if_it_was_never_paused(policy in any_policy(), epoch in 1_000_000_u64..1 << 30) {
        let untouched = failing(&policy, 6, |state, seed, _| (state, seed));
        let resumed = failing(&policy, 6, |state, seed, now| {
            let paused = state.pause(seed, *now);
            *now = Instant::from_nanos(epoch * 1_000_000_000);
            (paused.resume(*now), paused.seed())
        });
        prop_assert_eq!(untouched, resumed);
    }
}

#[test]
fn the_pause_counts_toward_the_limit_only_if_added() {
    for (pause, decisions) in [(0, 5), (5, 4), (10, 3), (15, 3), (16, 2)] {
        let made = failing(&LIMITED, 9, |state, seed, now| {
            (state.pause(seed, *now).advanced_by(ms(pause)).resume(*now), seed)
        });
        assert_eq!(made.len(), decisions, "{pause} ms of pause after every attempt: {made:?}");
    }
}

#[test]
fn a_call_that_does_not_track_time_has_no_elapsed_time() {
    let paused = RetryState::new().pause(Seed::new(1), at(ms(50))).advanced_by(ms(5));
    assert_eq!((paused.elapsed(), paused.resume(at(ms(90)))), (None, RetryState::new()));
}

#[test]
fn only_a_retry_with_a_permit_acquires_a_new_one() {
    let policy: Policy = "constant delay=10ms jitter=none max-attempts=9".parse().unwrap();
    let (transient, not_processed) = (Outcome::TRANSIENT, Outcome::NotProcessed);
    for (outcomes, acquired) in [
        (&[][..], &[][..]),
        (&[transient][..], &["reserve Transient"][..]),
        (&[not_processed][..], &[][..]),
        (&[not_processed, transient][..], &["reserve Transient"][..]),
        (&[transient, not_processed][..], &[][..]),
    ] {
        let (budget, mut state) = (RecordingGuard::budget().with_clock(), RetryState::new());
        let list: [&dyn Guard; 1] = [&budget];
        let guards = Guards::of(&list);
        let mut granted = Permits::NONE;
        for outcome in outcomes {
            let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
            let permit = retry.begin(Permits::take(&mut granted), || Instant::ZERO, &guards).unwrap();
            let Decision::Retry { permit, .. } = retry.decide(*outcome, permit, || Instant::ZERO, &guards) else {
                panic!("{outcome:?}")
            };
            granted = permit;
        }
        guards.release(granted, || Instant::ZERO);
        budget.events();
        let before = state;
        let retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        guards.release(retry.reacquire(|| Instant::ZERO, &guards).unwrap(), || Instant::ZERO);
        assert_eq!(
            budget.events().iter().filter(|event| !event.starts_with("never made")).collect::<Vec<_>>(),
            acquired
        );
        budget.set_rejects(true);
        let rejected = if acquired.is_empty() { Ok(Permits::NONE) } else { Err(StopReason::BUDGET) };
        assert_eq!(retry.reacquire(|| Instant::ZERO, &guards), rejected, "{outcomes:?}");
        assert_eq!((state, budget.outstanding()), (before, 0), "{outcomes:?}");
    }
}

/// Otherwise every crash of a worker would be a retry that the budget does not see.
#[test]
fn an_attempt_in_progress_when_paused_is_followed_by_a_retry_with_a_permit() {
    let budget = RecordingGuard::budget().with_clock();
    let list: [&dyn Guard; 1] = [&budget];
    let (guards, mut state) = (Guards::of(&list), RetryState::new());
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    guards.release(retry.begin(Permits::NONE, || Instant::ZERO, &guards).unwrap(), || Instant::ZERO);
    budget.set_rejects(true);

    let mut resumed = state.pause(Seed::new(1), Instant::ZERO).resume(Instant::ZERO);
    let retry = RetryMachine::new(&Policy::DEFAULT, &mut resumed, Seed::new(1));
    assert_eq!(retry.reacquire(|| Instant::ZERO, &guards), Err(StopReason::BUDGET));
}

#[test]
fn a_retry_paused_during_an_attempt_says_so_until_the_decision() {
    let (guards, mut state) = (Guards::none(), RetryState::new());
    let paused = |state: RetryState| state.pause(Seed::new(1), Instant::ZERO);
    assert!(!paused(state).is_in_flight(), "no attempt has begun");
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    let _ = retry.begin(Permits::NONE, || Instant::ZERO, &guards);
    assert!(paused(state).is_in_flight());
    let mut resumed = paused(state).resume(Instant::ZERO);
    assert!(paused(resumed).is_in_flight(), "paused again without a decision");
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut resumed, Seed::new(1));
    assert!(matches!(retry.decide_unrecorded(Outcome::TRANSIENT, || Instant::ZERO, &guards), Decision::Retry { .. }));
    assert!(!paused(resumed).is_in_flight());
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut resumed, Seed::new(1));
    let _ = retry.begin(Permits::NONE, || Instant::ZERO, &guards);
    assert!(paused(resumed).is_in_flight(), "the second attempt");
}

proptest! {
    #![proptest_config(cases(256))]

    /// The delays after interrupted attempts are those after failed ones.
    #[test]
    fn an_interrupted_attempt_is_followed_by_what_follows_a_failed_one(policy in any_policy(), interrupted: [bool; 5]) {
        let (mut state, seed, now) = (RetryState::new(), Seed::new(7), at(Duration::from_secs(1_000)));
        for (decision, interrupted) in failing_at_once(&policy).into_iter().zip(interrupted) {
            let mut retry = RetryMachine::new(&policy, &mut state, seed);
            let _ = retry.begin(Permits::NONE, || now, &Guards::none());
            let made = if interrupted {
                state = state.pause(seed, now).resume(now);
                let mut retry = RetryMachine::new(&policy, &mut state, seed);
                retry.decide_unrecorded(Outcome::TRANSIENT, || now, &Guards::none())
            } else {
                retry.decide(Outcome::TRANSIENT, Permits::NONE, || now, &Guards::none())
            };
            prop_assert_eq!(format!("{made:?}"), decision);
        }
    }

    /// For attempts that another layer made, such as a batch.
    #[test]
    fn attempts_made_elsewhere_advance_the_schedule(policy in any_policy(), made in 1_u32..6) {
        let (seed, now) = (Seed::new(7), at(Duration::from_secs(1_000)));
        let Some(expected) = failing_at_once(&policy).get(made as usize - 1).cloned() else { return Ok(()) };
        let mut state = RetryState::started(now).with_attempts(made);
        let decided =
            RetryMachine::new(&policy, &mut state, seed).decide_unrecorded(Outcome::TRANSIENT, || now, &Guards::none());
        prop_assert_eq!(format!("{decided:?}"), expected);
    }
}

/// Returns the decisions after up to 6 transient failures, with a clock that stands still.
fn failing_at_once(policy: &Policy) -> Vec<String> {
    let (mut state, now, mut decisions) = (RetryState::new(), at(Duration::from_secs(1_000)), Vec::new());
    for _ in 0..6 {
        let mut retry = RetryMachine::new(policy, &mut state, Seed::new(7));
        let _ = retry.begin(Permits::NONE, || now, &Guards::none());
        let decision = retry.decide(Outcome::TRANSIENT, Permits::NONE, || now, &Guards::none());
        decisions.push(format!("{decision:?}"));
        if !matches!(decision, Decision::Retry { .. }) {
            break;
        }
    }
    decisions
}

/// The permits of the attempt are gone, so there is nothing to settle; the retry is charged as any other.
#[test]
fn a_decision_without_a_report_charges_the_budget_and_reports_nothing() {
    for (outcome, want) in [
        (Outcome::TRANSIENT, &["reserve Transient"][..]),
        (Outcome::NotProcessed, &["reserve Transient"][..]),
        (Outcome::Permanent, &[][..]),
    ] {
        let (budget, mut state) = (RecordingGuard::budget().with_clock(), RetryState::new().with_attempts(2));
        let list: [&dyn Guard; 1] = [&budget];
        let guards = Guards::of(&list);
        let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
        let decision = retry.decide_unrecorded(outcome, || Instant::ZERO, &guards);
        assert_eq!(budget.events(), want, "{outcome:?}");
        match decision {
            Decision::Retry { permit, .. } => guards.release(permit, || Instant::ZERO),
            other => assert_eq!((outcome, other), (Outcome::Permanent, Decision::Stop(StopReason::Permanent))),
        }
    }
}

/// Otherwise moving retries into requests of their own would make them free.
#[test]
fn a_call_of_retries_acquires_a_permit_and_makes_no_deposit() {
    let (budget, mut state) = (RecordingGuard::budget().with_clock(), RetryState::new().as_retry());
    let list: [&dyn Guard; 1] = [&budget];
    let guards = Guards::of(&list);
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    let permits = retry.reacquire(|| Instant::ZERO, &guards).unwrap();
    guards.release(retry.begin(permits, || Instant::ZERO, &guards).unwrap(), || Instant::ZERO);
    assert_eq!(budget.events(), ["reserve Transient", "ask retry", "never made 1"]);
    assert_eq!(state.attempt(), 1);
}

/// A damaged or forged file must not keep the processor busy.
#[test]
fn a_huge_number_of_attempts_is_decided_at_once() {
    for policy in ["exponential base=1ns cap=10000h jitter=decorrelated", "linear base=1ns step=1ns cap=10000h"] {
        let policy: Policy = format!("{policy} max-attempts=unlimited").parse().unwrap();
        let mut state = RetryState::new().with_attempts(u32::MAX);
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        // Four billion replayed delays would take minutes.
        let decision = retry.decide_unrecorded(Outcome::TRANSIENT, || Instant::ZERO, &Guards::none());
        assert!(matches!(decision, Decision::Retry { .. }), "{policy}");
    }
}

#[cfg(feature = "serde")]
mod serialized {
    use serde_json::json;
    use stagger_core::ServerHint;
    use stagger_core::machine::Paused;

    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct File {
        retry: Paused,
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn a_paused_retry_round_trips_through_json_and_toml(policy in any_policy(), seed: u64, pause: u64) {
            failing(&policy, 5, |state, own, now| {
                let file = File { retry: state.pause(Seed::new(seed), *now).advanced_by(Duration::from_nanos(pause)) };
                let json = serde_json::to_string(&file).unwrap();
                assert_eq!(serde_json::from_str::<File>(&json).unwrap(), file, "{json}");
                let toml = toml::to_string(&file).unwrap();
                assert_eq!(toml::from_str::<File>(&toml).unwrap(), file, "{toml}");
                (state, own)
            });
        }
    }

    /// Reads JSON and writes it as JavaScript does, whose only numbers are `f64`.
    fn through_javascript(json: &str) -> String {
        fn rounded(value: serde_json::Value) -> serde_json::Value {
            use serde_json::Value::{Array, Number, Object};
            match value {
                Number(number) => match number.as_f64() {
                    Some(number) if number.fract() == 0.0 => serde_json::from_str(&format!("{number:.0}")).unwrap(),
                    number => number.into(),
                },
                Array(items) => items.into_iter().map(rounded).collect(),
                Object(fields) => Object(fields.into_iter().map(|(name, value)| (name, rounded(value))).collect()),
                other => other,
            }
        }
        rounded(serde_json::from_str(json).unwrap()).to_string()
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Otherwise a retry that a script has touched would continue with another seed and other delays.
        #[test]
        fn a_paused_retry_survives_javascript(policy in any_policy(), seed: u64, pause: u64) {
            failing(&policy, 5, |state, own, now| {
                for by in [Duration::from_nanos(pause), Duration::MAX] {
                    let paused = state.pause(Seed::new(seed), *now).advanced_by(by);
                    let json = serde_json::to_string(&paused).unwrap();
                    let through = through_javascript(&json);
                    assert_eq!(serde_json::from_str::<Paused>(&through).unwrap(), paused, "{json} became {through}");
                }
                (state, own)
            });
        }
    }

    /// Later versions must be able to read what this one wrote.
    #[test]
    fn the_serialized_form_is_frozen() {
        let policy: Policy = "exponential base=10ms cap=10s max-elapsed=1h".parse().unwrap();
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(u64::MAX));
        let _ = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none());
        let in_flight = retry_state_at(state);
        let mut hinted = state;
        for _ in 0..3 {
            let now = Outcome::throttled(Some(ServerHint::Reserved(Duration::ZERO)));
            let mut retry = RetryMachine::new(&policy, &mut hinted, Seed::new(u64::MAX));
            let _ = retry.decide(now, Permits::NONE, || Instant::ZERO, &Guards::none());
        }
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(u64::MAX));
        let _ = retry.decide(Outcome::TRANSIENT, Permits::NONE, || Instant::ZERO, &Guards::none());
        for (paused, table) in [
            (
                retry_state_at(state),
                r#"{"attempt":1,"episode":0,"flags":41,"carry_ns":"20000000","elapsed":{"secs":0,"nanos":3},"seed":"18446744073709551615"}"#,
            ),
            // Three waits were shortened.
            (
                retry_state_at(hinted),
                r#"{"attempt":1,"episode":0,"flags":425,"carry_ns":"80000000","elapsed":{"secs":0,"nanos":3},"seed":"18446744073709551615"}"#,
            ),
            (
                in_flight,
                r#"{"attempt":1,"episode":0,"flags":97,"carry_ns":"0","elapsed":{"secs":0,"nanos":3},"seed":"18446744073709551615"}"#,
            ),
            (
                in_flight.advanced_by(Duration::MAX),
                r#"{"attempt":1,"episode":0,"flags":97,"carry_ns":"0","elapsed":{"secs":9223372036,"nanos":854775807},"seed":"18446744073709551615"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&paused).unwrap(), table);
            assert_eq!(serde_json::from_str::<Paused>(table).unwrap(), paused);
        }
    }

    fn retry_state_at(state: RetryState) -> Paused {
        state.pause(Seed::new(u64::MAX), Instant::from_nanos(3))
    }

    #[test]
    fn values_that_no_state_can_have_are_rejected() {
        let valid = serde_json::to_value(RetryState::new().pause(Seed::new(1), Instant::ZERO)).unwrap();
        assert!(serde_json::from_value::<Paused>(valid.clone()).is_ok());
        for (key, value) in [
            ("flags", json!(512)),
            ("flags", json!(65_536)),
            ("carry_ns", json!("NaN")),
            ("carry_ns", json!("-1")),
            ("carry_ns", json!("")),
            ("carry_ns", json!(1)),
            ("carry_ns", json!("1".repeat(400))),
            ("flags", json!("0")),
            ("attempt", json!(-1)),
            ("episode", json!(65_536)),
            ("seed", json!("-1")),
            ("seed", json!("18446744073709551616")),
            ("seed", json!("1 ")),
            ("seed", json!(1)),
        ] {
            let mut damaged = valid.clone();
            damaged[key] = value.clone();
            assert!(serde_json::from_value::<Paused>(damaged).is_err(), "{key} {value}");
        }
    }
}
