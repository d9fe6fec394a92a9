//! Step 4: what was certainly not processed is repeated at once, once, without counting.

use core::time::Duration;

use stagger_core::{
    DelaySource, Guards, Outcome, Policy, Seed, StopReason, guard::Permits, machine::Decision, machine::RetryMachine,
    machine::RetryState,
};

use crate::laws::support::{Call, RecordingBreaker, RecordingBudget, at, ms, secs};

#[test]
fn it_is_repeated_at_once_under_the_same_number_and_the_schedule_does_not_move() {
    let policy = Policy::exponential(ms(100), secs(30)).max_attempts(3).build().unwrap();
    let trace = Call::new(&policy).seed(7).run([Outcome::NotProcessed, Outcome::TRANSIENT, Outcome::TRANSIENT]);
    let mut delays = policy.delays(Seed::new(7));
    assert_eq!(trace.waits, [Duration::ZERO, delays.next().unwrap(), delays.next().unwrap()]);
    assert_eq!(trace.sources, [DelaySource::Transparent, DelaySource::Schedule, DelaySource::Schedule]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (4, 3, None));
}

#[test]
fn it_is_repeated_once_in_a_call_and_counts_like_any_failure_then() {
    let policy = Policy::exponential(ms(100), secs(30)).max_attempts(3).build().unwrap();
    let trace = Call::new(&policy).run([Outcome::NotProcessed; 9]);
    assert_eq!(trace.sources, [DelaySource::Transparent, DelaySource::Schedule, DelaySource::Schedule]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (4, 3, Some(StopReason::Attempts)));
}

#[test]
fn it_is_repeated_even_by_the_last_attempt() {
    let policy = Policy::DEFAULT.to_builder().max_attempts(1).build().unwrap();
    let trace = Call::new(&policy).run([Outcome::NotProcessed]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (2, 1, None));
}

/// The loan goes on with the attempt; the pass does not: a half-open breaker counts attempts, not calls.
#[test]
fn the_repeat_keeps_its_loan_and_asks_the_breaker_again() {
    let (budget, breaker, policy) = (RecordingBudget::rejecting(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("nothing forbids it")
    };
    assert_eq!(breaker.records(), [(1, Outcome::NotProcessed)]);
    assert_eq!((budget.events(), budget.outstanding()), (vec!["on_first_attempt".to_owned()], 1));
    assert_eq!(breaker.checked_waits(), [Duration::ZERO]);

    let permit = retry.begin(permit, now, &guards).unwrap();
    assert_eq!(retry.attempt(), 1);
    assert_eq!(retry.decide(Outcome::Success, permit, now, &guards), Decision::Done);
    assert_eq!(breaker.records(), [(2, Outcome::Success)]);
    assert_eq!(budget.events(), ["record 1 Healthy"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn a_breaker_that_opens_before_the_repeat_gets_the_loan_back() {
    let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("nothing forbids it")
    };
    breaker.set_open(true);
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::Breaker));
    assert_eq!(budget.events(), ["on_first_attempt", "release 1"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn after_the_limit_of_time_it_is_not_repeated() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(10)).build().unwrap();
    for (took, runs) in [(secs(10), 2), (secs(10) + Duration::from_nanos(1), 1)] {
        let trace = Call::new(&policy).took(took).run([Outcome::NotProcessed]);
        assert_eq!(trace.runs, runs, "{took:?}");
    }
}

#[test]
fn a_new_episode_may_repeat_once_more() {
    let policy = Policy::DEFAULT;
    let (guards, now) = (Guards::none(), || at(secs(1)));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut sources = Vec::new();
    for reset in [false, false, true] {
        if reset {
            retry.reset();
        }
        let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
        if let Decision::Retry { source, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) {
            sources.push(source);
        }
    }
    assert_eq!(sources, [DelaySource::Transparent, DelaySource::Schedule, DelaySource::Transparent]);
}
