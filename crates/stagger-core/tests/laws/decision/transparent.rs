//! Step 4: a request that was certainly not processed is retried transparently: at once, once per call, uncounted.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guards, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{Call, RecordingBreaker, RecordingBudget, at, ms, secs};

#[test]
fn a_transparent_retry_is_immediate_and_advances_nothing() {
    let policy = Policy::exponential(ms(100), secs(30)).max_attempts(3).build().unwrap();
    let trace = Call::new(&policy).seed(7).run([Outcome::NotProcessed, Outcome::TRANSIENT, Outcome::TRANSIENT]);
    let mut delays = policy.delays(Seed::new(7));
    assert_eq!(trace.waits, [Duration::ZERO, delays.next().unwrap(), delays.next().unwrap()]);
    assert_eq!(trace.sources, [DelaySource::Transparent, DelaySource::Schedule, DelaySource::Schedule]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (4, 3, None));
}

#[test]
fn a_transparent_retry_is_made_once_per_call() {
    let policy = Policy::exponential(ms(100), secs(30)).max_attempts(3).build().unwrap();
    let trace = Call::new(&policy).run([Outcome::NotProcessed; 9]);
    assert_eq!(trace.sources, [DelaySource::Transparent, DelaySource::Schedule, DelaySource::Schedule]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (4, 3, Some(StopReason::Attempts)));
}

#[test]
fn the_last_attempt_may_be_retried_transparently() {
    let policy = Policy::DEFAULT.to_builder().max_attempts(1).build().unwrap();
    let trace = Call::new(&policy).run([Outcome::NotProcessed]);
    assert_eq!((trace.runs, trace.attempts, trace.stop), (2, 1, None));
}

/// The budget permit stays with the call, the breaker permit does not: a half-open breaker counts attempts, not calls.
#[test]
fn a_transparent_retry_keeps_its_budget_permit_only() {
    let (budget, breaker, policy) = (RecordingBudget::rejecting(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("the repeat is allowed")
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
fn a_breaker_open_before_the_repeat_releases_the_permit() {
    let (budget, breaker, policy) = (RecordingBudget::default(), RecordingBreaker::default(), Policy::DEFAULT);
    let guards = Guards::none().budget(&budget).breaker(&breaker);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("the repeat is allowed")
    };
    breaker.set_open(true);
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::Breaker));
    assert_eq!(budget.events(), ["on_first_attempt", "release 1"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn there_is_no_transparent_retry_after_max_elapsed() {
    let policy = Policy::constant(secs(1)).max_elapsed(secs(10)).build().unwrap();
    for (took, runs) in [(secs(10), 2), (secs(10) + Duration::from_nanos(1), 1)] {
        let trace = Call::new(&policy).took(took).run([Outcome::NotProcessed]);
        assert_eq!(trace.runs, runs, "{took:?}");
    }
}

#[test]
fn every_episode_allows_one_transparent_retry() {
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
