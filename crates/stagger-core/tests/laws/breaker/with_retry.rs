//! The breaker as a guard of retries.

use core::time::Duration;

use stagger_core::breaker::{BreakerState, CircuitBreaker};
use stagger_core::guard::{Answer, End, Permits};
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guard, Guards, Jitter, Outcome, Policy, Seed, ServerHint, StopReason};

use super::support::{FAILED, exactly};
use crate::laws::support::{Call, Start, at, ms, secs};

fn breaker() -> CircuitBreaker {
    CircuitBreaker::builder(Seed::new(1)).consecutive(2).open(exactly(secs(5))).build().unwrap()
}

fn open(breaker: &CircuitBreaker, from: Duration) {
    (0..2).for_each(|_| breaker.settle(breaker.start(&at(from)), End::Made(&FAILED), &at(from)));
}

fn policy(wait: Duration) -> Policy {
    Policy::constant(wait).jitter(Jitter::None).max_attempts(10).build().unwrap()
}

#[test]
fn a_call_dropped_during_its_probe_releases_the_probe() {
    let (breaker, policy, now) = (breaker(), policy(ms(100)), at(secs(5)));
    open(&breaker, Duration::ZERO);
    let list: [&dyn Guard; 1] = [&breaker];
    let guards = Guards::of(&list);
    for _ in 0..100 {
        let mut state = RetryState::new();
        let permit =
            RetryMachine::new(&policy, &mut state, Seed::new(1)).begin(Permits::NONE, || now, &guards).unwrap();
        assert_eq!(breaker.snapshot(&now).probes, 1);
        guards.abandon(permit, || now);
        assert_eq!((breaker.snapshot(&now).probes, breaker.state()), (0, BreakerState::HalfOpen));
    }
}

/// A breaker permit belongs to an attempt in flight: a call in its backoff does not hold one.
#[test]
fn a_call_in_its_backoff_holds_no_probe() {
    let breaker =
        CircuitBreaker::builder(Seed::new(1)).consecutive(2).open(exactly(secs(5))).probes(2).build().unwrap();
    let (policy, now) = (policy(secs(5)), at(secs(5)));
    open(&breaker, Duration::ZERO);
    let list: [&dyn Guard; 1] = [&breaker];
    let guards = Guards::of(&list);
    let mut state = RetryState::new();
    let mut retry = RetryMachine::new(&policy, &mut state, Seed::new(1));
    let permit = retry.begin(Permits::NONE, || now, &guards).unwrap();
    let local = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };
    let Decision::Retry { permit, .. } = retry.decide(local, permit, || now, &guards) else { panic!() };
    assert_eq!(breaker.snapshot(&now).probes, 0);
    guards.release(permit, || now);
    assert_eq!(breaker.snapshot(&now).probes, 0);
}

#[test]
fn footgun_28_an_open_breaker_uses_up_no_attempt() {
    // If the retry would start while the breaker is open, the call stops at once with the server's error.
    let breaker = breaker();
    let early = policy(secs(1));
    let mut call = Call::new(&early);
    let list: [&dyn Guard; 1] = [&breaker];
    call.guards = Guards::of(&list);
    let trace = call.failing();
    assert_eq!((trace.runs, trace.waits.len(), trace.stop), (2, 1, Some(StopReason::BREAKER)));
    // An outer retry layer gets `retry_in` as a hint and does not retry earlier.
    let now = Call::START.saturating_add(secs(1));
    let Answer::No { retry_in } = breaker.first(&now) else { panic!("open") };
    let rejected = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(retry_in)) };
    let mut state = RetryState::new();
    let mut outer = RetryMachine::new(&early, &mut state, Seed::new(1));
    let permit = outer.begin(Permits::NONE, || now, &Guards::none()).unwrap();
    let Decision::Retry { after, .. } = outer.decide(rejected, permit, || now, &Guards::none()) else { panic!() };
    assert!(after >= retry_in && retry_in == secs(5), "{after:?}");
    breaker.start(&now.saturating_add(after));
}

/// The burst invariant for sequential calls: however often they retry, a server that stays down receives only the
/// failures that tripped the breaker and one probe per open time.
#[test]
fn retries_reach_a_server_that_is_down_only_as_probes() {
    let policy = Policy::exponential(ms(10), secs(1)).max_attempts(10).build().unwrap();
    let breaker = breaker();
    let list: [&dyn Guard; 1] = [&breaker];
    let guards = Guards::of(&list);
    let mut calls: Vec<_> =
        (0..100).map(|n| (at(Duration::ZERO), Permits::NONE, RetryState::new(), Seed::new(n))).collect();
    let (mut attempts, mut last) = (0_u64, Duration::ZERO);
    // In order of time, as in a simulation; each call that stops is replaced by a new one a second later.
    for _ in 0..40_000 {
        let next = (0..calls.len()).min_by_key(|&n| calls[n].0).unwrap();
        let (now, permit, state, seed) = &mut calls[next];
        last = now.saturating_since(at(Duration::ZERO));
        let mut retry = RetryMachine::new(&policy, state, *seed);
        let stopped = match retry.begin(Permits::take(permit), || *now, &guards) {
            Ok(permits) => {
                attempts += 1;
                match retry.decide(FAILED, permits, || *now, &guards) {
                    Decision::Retry { after, permit: granted, .. } => {
                        *now = now.saturating_add(after);
                        *permit = granted;
                        false
                    }
                    _ => true,
                }
            }
            Err(_) => true,
        };
        if stopped {
            (*now, *state, *seed) = (now.saturating_add(secs(1)), RetryState::new(), seed.for_call(1));
        }
    }
    assert!(last > secs(100), "{last:?}");
    assert!(attempts <= 2 + 1 + last.as_secs() / 5, "{attempts} attempts in {last:?}");
}
