//! Delays of a [`Strategy`] in place of the policy's.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::guard::Permits;
use stagger_core::machine::{
    Decision, ReconnectMachine, ReconnectStep, RetryContext, RetryMachine, RetryPlan, RetryState, Strategy,
};
use stagger_core::{DelaySource, Guards, Instant, Outcome, Policy, Seed};

use crate::laws::support::{at, cases, ms, secs};

fn zero() -> Policy {
    Policy::zero().unlimited_attempts().build().unwrap()
}

/// Returns the number, the delay before, and the random bits of four retries.
fn contexts(seed: Seed) -> Vec<RetryContext> {
    let seen = std::sync::Mutex::new(Vec::new());
    let record = |retry: &RetryContext| {
        seen.lock().unwrap().push(*retry);
        Some(ms(10 * u64::from(retry.number)))
    };
    let (policy, mut state) = (zero(), RetryState::new());
    for _ in 0..4 {
        let mut retry = RetryMachine::new(&policy, &mut state, seed).strategy(Some(&record));
        let permits = retry.begin(Permits::NONE, || Instant::ZERO, &Guards::none()).unwrap();
        let decision = retry.decide(Outcome::TRANSIENT, permits, || Instant::ZERO, &Guards::none());
        assert!(matches!(decision, Decision::Retry { source: DelaySource::Schedule, .. }));
    }
    seen.into_inner().unwrap()
}

#[test]
fn a_strategy_gets_the_number_of_the_retry_and_its_own_last_delay() {
    let seen: Vec<_> = contexts(Seed::new(1)).iter().map(|retry| (retry.number, retry.previous)).collect();
    assert_eq!(seen, [(1, ms(0)), (2, ms(10)), (3, ms(20)), (4, ms(30))]);
}

#[test]
fn the_random_bits_are_those_of_the_seed() {
    assert_eq!(contexts(Seed::new(1)), contexts(Seed::new(1)));
    let [one, other] = [1, 2].map(|seed| contexts(Seed::new(seed)));
    assert!(one.iter().zip(&other).all(|(one, other)| one.random != other.random));
}

#[test]
fn a_lost_connection_waits_as_the_strategy_says() {
    let (policy, guards) = (zero(), Guards::none());
    let wait = |_: &RetryContext| Some(secs(7));
    let mut machine = ReconnectMachine::new(Seed::new(1));
    let ReconnectStep::Connect { generation } = machine.reconnect_now(&policy, || at(secs(0)), &guards) else {
        panic!()
    };
    let plan = RetryPlan::from(&policy).strategy(Some(&wait));
    let step = machine.ended(generation, Outcome::TRANSIENT, at(secs(1)), plan, &guards);
    assert!(matches!(step, ReconnectStep::Wait { after, .. } if after == secs(7)), "{step:?}");
    let ReconnectStep::Connect { generation } = machine.due(&policy, at(secs(8)), &guards) else { panic!() };
    assert_eq!(machine.opened(generation, || at(secs(8)), &guards), ReconnectStep::Rest);
    let step = machine.ended(generation, Outcome::TRANSIENT, at(secs(9)), plan, &guards);
    assert!(matches!(step, ReconnectStep::Wait { after, .. } if after == secs(7)), "{step:?}");
}

#[test]
fn a_closure_is_a_strategy_and_prints_as_one() {
    let strategy: &dyn Strategy = &|_: &RetryContext| None;
    assert_eq!(strategy.next_delay(&RetryContext::new(1, 0)), None);
    assert_eq!(format!("{strategy:?}"), "Strategy");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_uniform_delay_is_between_its_bounds(from: u64, span: u64, random: u64) {
        let (from, to) = (Duration::from_nanos(from / 8), Duration::from_nanos(from / 8 + span / 8));
        let drawn = RetryContext::new(1, random).uniform(from, to);
        prop_assert!((from..=to).contains(&drawn), "{drawn:?}");
        prop_assert_eq!(RetryContext::new(1, random).uniform(to, Duration::ZERO), to);
    }
}

#[test]
fn a_uniform_delay_reaches_both_bounds() {
    let drawn = |random| RetryContext::new(1, random).uniform(ms(1), ms(3));
    assert_eq!((drawn(0), drawn(u64::MAX)), (ms(1), ms(3)));
}
