//! Step 4: a request that was certainly not processed is retried transparently: at once, once per call, uncounted.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guard, Guards, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{Call, RecordingGuard, at, ms, secs};

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

/// The server has not seen the attempt, so for the guards the repeat is the same one.
#[test]
fn a_transparent_retry_keeps_its_permits_and_the_guards_are_neither_told_nor_asked() {
    let (budget, breaker, policy) = (RecordingGuard::budget().rejecting(), RecordingGuard::breaker(), Policy::DEFAULT);
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("the repeat is allowed")
    };
    for guard in [&budget, &breaker] {
        assert_eq!((guard.events(), guard.outstanding()), (vec!["ask first".to_owned()], 1));
        assert_eq!(guard.checked_waits(), [Duration::ZERO]);
    }

    let permit = retry.begin(permit, now, &guards).unwrap();
    assert_eq!(retry.attempt(), 1);
    assert_eq!(retry.decide(Outcome::Success, permit, now, &guards), Decision::Done);
    assert_eq!(breaker.records(), [(1, Outcome::Success)]);
    assert_eq!(breaker.events(), ["made 1 Healthy"]);
    assert_eq!(budget.events(), ["made 1 Healthy"]);
    budget.assert_balanced();
    breaker.assert_balanced();
}

#[test]
fn a_repeat_that_is_not_made_gives_its_permits_back() {
    let (budget, breaker, policy) = (RecordingGuard::budget(), RecordingGuard::breaker(), Policy::DEFAULT);
    let list: [&dyn Guard; 2] = [&breaker, &budget];
    let guards = Guards::of(&list);
    let now = || at(secs(1));
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
    let Decision::Retry { permit, .. } = retry.decide(Outcome::NotProcessed, permit, now, &guards) else {
        panic!("the repeat is allowed")
    };
    let mut retry = retry.deadline(Some(now()));
    assert_eq!(retry.begin(permit, now, &guards), Err(StopReason::Deadline));
    assert_eq!(budget.events(), ["ask first", "never made 1"]);
    assert_eq!(breaker.events(), ["ask first", "never made 1"]);
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
