use core::time::Duration;

use stagger_core::guard::{Limiter, LimiterMode, LimiterPermit, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::quiet::QuietPeriod;
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason};

use crate::laws::support::{RecordingBreaker, RecordingBudget, ms, secs};

const START: Instant = Instant::from_nanos(1_000_000_000_000);

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
    let (quiet, budget) = (QuietPeriod::new(), RecordingBudget::default());
    let guards = Guards::none().budget(&budget).quiet(&quiet);
    let (policy, mut state) = (policy(), RetryState::new());
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let mut permits = Permits::NONE;
    assert_eq!(retry.turn(&mut permits, || START, &guards), Ok(Duration::ZERO));
    let permits = retry.begin(permits, || START, &guards).unwrap();
    let Decision::Retry { after, permit, .. } = retry.decide(Outcome::TRANSIENT, permits, || START, &guards) else {
        panic!("a retry")
    };
    // Another call is told to wait for 5 s while this one sleeps.
    quiet.pause(secs(5), &START);
    let (mut permits, woken) = (permit, START.saturating_add(after));
    budget.events();
    for _ in 0..3 {
        assert_eq!(retry.turn(&mut permits, || woken, &guards), Ok(secs(5) - after));
    }
    assert_eq!((budget.events(), retry.attempt(), quiet.snapshot(&woken).waiting), (Vec::<String>::new(), 1, 1));
    let end = START.saturating_add(secs(5));
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    let permits = retry.begin(permits, || end, &guards).unwrap();
    assert_eq!((retry.attempt(), quiet.snapshot(&end).waiting), (2, 0));
    assert_eq!(retry.decide(Outcome::Success, permits, || end, &guards), Decision::Done);
}

#[test]
fn a_call_whose_limits_end_before_its_turn_is_rejected_at_once() {
    for (deadline, max_elapsed, want) in [
        (None, None, Ok(secs(10))),
        (Some(secs(11)), None, Ok(secs(10))),
        (Some(secs(10)), None, Err(StopReason::Quiet)),
        (None, Some(ms(9_999)), Err(StopReason::Quiet)),
        (None, Some(secs(10)), Ok(secs(10))),
        (Some(secs(11)), Some(secs(9)), Err(StopReason::Quiet)),
        (Some(Duration::ZERO), None, Err(StopReason::Deadline)),
    ] {
        let quiet = paused(secs(10));
        let builder = Policy::constant(ms(1)).max_attempts(4);
        let policy = max_elapsed.map_or(builder, |limit| builder.max_elapsed(limit)).build().unwrap();
        let (mut state, mut permits) = (RetryState::new(), Permits::NONE);
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1))
            .deadline(deadline.map(|length| START.saturating_add(length)));
        let got = retry.turn(&mut permits, || START, &Guards::none().quiet(&quiet));
        assert_eq!(got, want, "deadline {deadline:?}, max_elapsed {max_elapsed:?}");
        assert_eq!((got.is_ok(), quiet.snapshot(&START).waiting), (permits != Permits::NONE, u32::from(got.is_ok())));
    }
}

#[test]
fn a_retry_that_would_be_rejected_does_not_pay_the_budget() {
    let hint = Outcome::throttled(Some(ServerHint::AtLeast(secs(2))));
    for (mode, deadline, want) in [
        (LimiterMode::FailFast, None, Some(StopReason::Quiet)),
        (LimiterMode::Wait, Some(secs(9)), Some(StopReason::Quiet)),
        (LimiterMode::Wait, None, None),
        (LimiterMode::Observe, Some(secs(9)), None),
    ] {
        let quiet = QuietPeriod::builder().mode(mode).build().unwrap();
        let budget = RecordingBudget::default();
        let guards = Guards::none().budget(&budget).quiet(&quiet);
        let (policy, mut state) = (policy(), RetryState::new());
        let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1))
            .deadline(deadline.map(|length| START.saturating_add(length)));
        let permits = retry.begin(Permits::NONE, || START, &guards).unwrap();
        // The target has been asked for 10 s of quiet through another call.
        quiet.pause(secs(10), &START);
        let decision = retry.decide(hint, permits, || START, &guards);
        match want {
            Some(stop) => assert_eq!(decision, Decision::Stop(stop), "{mode:?}"),
            None => assert!(matches!(decision, Decision::Retry { .. }), "{mode:?}: {decision:?}"),
        }
        let acquired = budget.events().iter().any(|event| event.contains("try_acquire"));
        assert_eq!(acquired, want.is_none(), "{mode:?}");
    }
}

#[test]
fn a_probe_that_the_breaker_rejects_is_given_back() {
    let (quiet, breaker) = (paused(secs(1)), RecordingBreaker::default());
    breaker.set_open(true);
    let guards = Guards::none().breaker(&breaker).quiet(&quiet);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let end = START.saturating_add(secs(1));
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    assert_eq!(retry.begin(permits, || end, &guards), Err(StopReason::Breaker));
    assert!(matches!(quiet.admit(LimiterPermit::NONE, None, &end), stagger_core::guard::Turn::Now(_)));
}

#[test]
fn a_probe_that_was_not_processed_and_repeats_asks_again() {
    let quiet = paused(secs(1));
    let guards = Guards::none().quiet(&quiet);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let end = START.saturating_add(secs(1));
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO));
    let permits = retry.begin(permits, || end, &guards).unwrap();
    let Decision::Retry { mut permit, .. } = retry.decide(Outcome::NotProcessed, permits, || end, &guards) else {
        panic!("a repeat")
    };
    assert_eq!(retry.turn(&mut permit, || end, &guards), Ok(Duration::ZERO), "the probe again");
    let permits = retry.begin(permit, || end, &guards).unwrap();
    guards.abandon(permits, || end);
    let mut permits = Permits::NONE;
    assert_eq!(retry.turn(&mut permits, || end, &guards), Ok(Duration::ZERO), "after it was cancelled");
}

#[test]
fn a_cancelled_wait_frees_its_place() {
    let quiet = paused(secs(10));
    let guards = Guards::none().quiet(&quiet);
    let (policy, mut state, mut permits) = (policy(), RetryState::new(), Permits::NONE);
    let _ = RetryMachine::new(&policy, &mut state, Seed::new(1)).turn(&mut permits, || START, &guards);
    assert_eq!(quiet.snapshot(&START).waiting, 1);
    guards.release(permits);
    assert_eq!(quiet.snapshot(&START).waiting, 0);
}
