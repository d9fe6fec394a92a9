use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::quiet::QuietPeriod;
use stagger_core::{Guard, Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason};

use crate::laws::support::{RecordingGuard, Start, ms, secs};

const START: Instant = Instant::from_nanos(1_000_000_000_000);

/// How much later than a first attempt a retry may be the probe.
const LATER: Duration = ms(100);

fn policy() -> Policy {
    Policy::exponential(ms(100), secs(1)).max_attempts(4).build().unwrap()
}

fn paused(length: Duration) -> QuietPeriod {
    let quiet = QuietPeriod::new();
    quiet.pause(length, &START);
    quiet
}

#[test]
fn a_retry_waits_on_without_using_an_attempt_or_paying_twice() {
    let (quiet, budget) = (QuietPeriod::new(), RecordingGuard::budget());
    let list: [&dyn Guard; 2] = [&quiet, &budget];
    let guards = Guards::of(&list);
    let (policy, mut state) = (policy(), RetryState::new());
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut permits = Permits::NONE;
    assert_eq!(retry.turn(&mut permits, || START, &guards), Ok(Duration::ZERO));
    let Decision::Retry { after, permit, .. } = retry.decide(Outcome::TRANSIENT, permits, || START, &guards) else {
        panic!("a retry")
    };
    // Another call is told to wait for 5 s while this one sleeps.
    quiet.pause(secs(5), &START);
    let (mut permits, woken) = (permit, START.saturating_add(after));
    budget.events();
    for _ in 0..3 {
        assert_eq!(retry.turn(&mut permits, || woken, &guards), Ok(secs(5) - after + LATER));
    }
    assert_eq!((budget.events(), retry.attempt(), quiet.snapshot(&woken).waiting), (Vec::<String>::new(), 1, 1));
    let end = START.saturating_add(secs(5) + LATER);
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    assert_eq!((retry.attempt(), quiet.snapshot(&end).waiting), (2, 0));
    assert_eq!(retry.decide(Outcome::Success, permits, || end, &guards), Decision::Done);
}

#[test]
fn a_call_whose_limits_end_before_its_turn_is_rejected_at_once() {
    for (deadline, max_elapsed, want) in [
        (None, None, Ok(secs(10))),
        (Some(secs(11)), None, Ok(secs(10))),
        (Some(secs(10)), None, Err(StopReason::QUIET)),
        (None, Some(ms(9_999)), Err(StopReason::QUIET)),
        (None, Some(secs(10)), Ok(secs(10))),
        (Some(secs(11)), Some(secs(9)), Err(StopReason::QUIET)),
        (Some(Duration::ZERO), None, Err(StopReason::Deadline)),
    ] {
        let quiet = paused(secs(10));
        let builder = Policy::constant(ms(1)).max_attempts(4);
        let policy = max_elapsed.map_or(builder, |limit| builder.max_elapsed(limit)).build().unwrap();
        let (mut state, mut permits) = (RetryState::new(), Permits::NONE);
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1))
            .deadline(deadline.map(|length| START.saturating_add(length)));
        let list: [&dyn Guard; 1] = [&quiet];
        let got = retry.turn(&mut permits, || START, &Guards::of(&list));
        assert_eq!(got, want, "deadline {deadline:?}, max_elapsed {max_elapsed:?}");
        assert_eq!((got.is_ok(), quiet.snapshot(&START).waiting), (permits != Permits::NONE, u32::from(got.is_ok())));
    }
}

#[test]
fn a_retry_that_would_be_rejected_does_not_pay_the_budget() {
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(secs(2))));
    for (max_waiting, deadline, want) in
        [(0, None, Some(StopReason::QUIET)), (5, Some(secs(9)), Some(StopReason::QUIET)), (5, None, None)]
    {
        let quiet = QuietPeriod::builder().max_waiting(max_waiting).build().unwrap();
        let budget = RecordingGuard::budget();
        let list: [&dyn Guard; 2] = [&quiet, &budget];
        let guards = Guards::of(&list);
        let (policy, mut state) = (policy(), RetryState::new());
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1))
            .deadline(deadline.map(|length| START.saturating_add(length)));
        let permits = retry.begin(Permits::NONE, || START, &guards).unwrap();
        // The target has been asked for 10 s of quiet through another call.
        quiet.pause(secs(10), &START);
        let decision = retry.decide(hint, permits, || START, &guards);
        match want {
            Some(stop) => assert_eq!(decision, Decision::Stop(stop), "{max_waiting}"),
            None => assert!(matches!(decision, Decision::Retry { .. }), "{max_waiting}: {decision:?}"),
        }
        let acquired = budget.events().iter().any(|event| event.contains("reserve"));
        assert_eq!(acquired, want.is_none(), "{max_waiting}");
    }
}

#[test]
fn a_probe_that_the_breaker_rejects_is_given_back() {
    let (quiet, breaker) = (paused(secs(1)), RecordingGuard::breaker());
    breaker.set_open(true);
    let list: [&dyn Guard; 2] = [&quiet, &breaker];
    let guards = Guards::of(&list);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let end = START.saturating_add(secs(1));
    assert_eq!(retry.turn(&mut permits, || end, &guards), Err(StopReason::BREAKER));
    quiet.start(&end);
}

#[test]
fn a_probe_that_was_not_processed_and_repeats_stays_the_probe() {
    let quiet = paused(secs(1));
    let list: [&dyn Guard; 1] = [&quiet];
    let guards = Guards::of(&list);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let end = START.saturating_add(secs(1));
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    let Decision::Retry { mut permit, .. } = retry.decide(Outcome::NotProcessed, permits, || end, &guards) else {
        panic!("a repeat")
    };
    assert!(!quiet.retry_in(&end).is_zero(), "no other call is the probe");
    assert_eq!(retry.turn(&mut permit, || end, &guards), Ok(Duration::ZERO), "the probe again");
    let permits = permit;
    guards.abandon(permits, || end);
    quiet.start(&end);
}

#[test]
fn a_cancelled_wait_frees_its_place() {
    let quiet = paused(secs(10));
    let list: [&dyn Guard; 1] = [&quiet];
    let guards = Guards::of(&list);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let _ = RetryMachine::new(&policy, &mut state, Seed::new(1)).turn(&mut permits, || START, &guards);
    assert_eq!(quiet.snapshot(&START).waiting, 1);
    guards.release(permits, || START);
    assert_eq!(quiet.snapshot(&START).waiting, 0);
}
