//! Paused retries: resumed, they continue as if they had not been paused.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, StopReason, policy};

use crate::laws::support::{RecordingBudget, any_policy, at, cases, ms};

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
        (&[transient][..], &["try_acquire Transient"][..]),
        (&[not_processed][..], &[][..]),
        (&[not_processed, transient][..], &["try_acquire Transient"][..]),
        (&[transient, not_processed][..], &[][..]),
    ] {
        let (budget, mut state) = (RecordingBudget::with_clock(), RetryState::new());
        let guards = Guards::none().budget(&budget);
        let mut granted = Permits::NONE;
        for outcome in outcomes {
            let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
            let permit = retry.begin(Permits::take(&mut granted), || Instant::ZERO, &guards).unwrap();
            let Decision::Retry { permit, .. } = retry.decide(*outcome, permit, || Instant::ZERO, &guards) else {
                panic!("{outcome:?}")
            };
            granted = permit;
        }
        guards.release(granted);
        budget.events();
        let before = state;
        let retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
        guards.release(retry.reacquire(|| Instant::ZERO, &guards).unwrap());
        assert_eq!(budget.events().iter().filter(|event| !event.starts_with("release")).collect::<Vec<_>>(), acquired);
        budget.set_rejects(true);
        let rejected = if acquired.is_empty() { Ok(Permits::NONE) } else { Err(StopReason::Budget) };
        assert_eq!(retry.reacquire(|| Instant::ZERO, &guards), rejected, "{outcomes:?}");
        assert_eq!((state, budget.outstanding()), (before, 0), "{outcomes:?}");
    }
}

/// Otherwise every crash of a worker would be a retry that the budget does not see.
#[test]
fn an_attempt_in_progress_when_paused_is_followed_by_a_retry_with_a_permit() {
    let budget = RecordingBudget::with_clock();
    let (guards, mut state) = (Guards::none().budget(&budget), RetryState::new());
    let mut retry = RetryMachine::new(&Policy::DEFAULT, &mut state, Seed::new(1));
    guards.release(retry.begin(Permits::NONE, || Instant::ZERO, &guards).unwrap());
    budget.set_rejects(true);

    let mut resumed = state.pause(Seed::new(1), Instant::ZERO).resume(Instant::ZERO);
    let retry = RetryMachine::new(&Policy::DEFAULT, &mut resumed, Seed::new(1));
    assert_eq!(retry.reacquire(|| Instant::ZERO, &guards), Err(StopReason::Budget));
}

#[cfg(feature = "serde")]
mod serialized {
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

    /// Later versions must be able to read what this one wrote.
    #[test]
    fn the_serialized_form_is_frozen() {
        const TABLE: &str = r#"{"attempt":1,"episode":0,"flags":41,"carry":4716133919349538816,"elapsed":{"secs":0,"nanos":3},"seed":-1}"#;
        let policy: Policy = "exponential base=10ms cap=10s max-elapsed=1h".parse().unwrap();
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(u64::MAX));
        let _ = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none());
        let _ = retry.decide(Outcome::TRANSIENT, Permits::NONE, || Instant::ZERO, &Guards::none());
        let paused = state.pause(Seed::new(u64::MAX), Instant::from_nanos(3));
        assert_eq!(serde_json::to_string(&paused).unwrap(), TABLE);
        assert_eq!(serde_json::from_str::<Paused>(TABLE).unwrap(), paused);
    }

    #[test]
    fn values_that_no_state_can_have_are_rejected() {
        let valid = serde_json::to_value(RetryState::new().pause(Seed::new(1), Instant::ZERO)).unwrap();
        assert!(serde_json::from_value::<Paused>(valid.clone()).is_ok());
        for (key, value) in [
            ("flags", 64),
            ("flags", 256),
            ("carry", f64::NAN.to_bits() as i64),
            ("carry", (-1.0_f64).to_bits() as i64),
            ("attempt", -1),
            ("episode", 65_536),
        ] {
            let mut damaged = valid.clone();
            damaged[key] = value.into();
            assert!(serde_json::from_value::<Paused>(damaged).is_err(), "{key} {value}");
        }
    }
}
