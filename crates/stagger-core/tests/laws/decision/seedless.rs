//! Decisions that need no seed: every seed gives the same delay, on every timer.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::profile::Profile;
use stagger_core::{DelaySource, FailureKind, Guards, Outcome, Policy, Seed, ServerHint, StopReason};

use crate::laws::support::{any_policy, at, cases, ms, secs};

const TICKS: [Duration; 4] = [Duration::ZERO, Duration::from_nanos(1), ms(1), ms(7)];

fn outcomes() -> Vec<Outcome> {
    let mut all = vec![Outcome::Success, Outcome::Permanent, Outcome::NotProcessed, Outcome::Cancelled];
    for kind in [FailureKind::Transient, FailureKind::Throttled, FailureKind::LocalExhaustion] {
        all.push(Outcome::UnsafeToRetry { kind, hint: None });
        let hints = [ServerHint::DoNotRetry, ServerHint::Reserved(ms(1500))]
            .into_iter()
            .chain([Duration::ZERO, Duration::from_nanos(1), ms(10), secs(20)].map(ServerHint::AtLeast));
        all.extend(hints.map(Some).chain([None]).map(|hint| Outcome::Failed { kind, hint }));
    }
    all
}

/// Returns what a driver does in a call in which every attempt has this outcome: each decision with its wait.
fn waits(policy: &Policy, outcome: Outcome, tick: Duration, seed: u64) -> Vec<(Decision, Duration)> {
    let (mut state, guards, now) = (RetryState::new(), Guards::none(), || at(secs(5)));
    let mut retry = RetryMachine::new(policy, &mut state, Seed::new(seed));
    let mut waits = Vec::new();
    for _ in 0..8 {
        let permit = retry.begin(Permits::NONE, now, &guards).unwrap();
        let decision = retry.decide(outcome, permit, now, &guards);
        let wait = match &decision {
            Decision::Retry { after, source, .. } => retry.on_ticks(*after, *source, tick),
            _ => Duration::ZERO,
        };
        waits.push((decision, wait));
    }
    waits
}

fn same_for_every_seed_unless_needed(policy: &Policy) {
    for outcome in outcomes() {
        for tick in TICKS {
            if !policy.needs_seed(&outcome, tick) {
                let first = waits(policy, outcome, tick, 0);
                for seed in [1, 7, u64::MAX / 3, u64::MAX] {
                    assert_eq!(waits(policy, outcome, tick, seed), first, "{policy}, {outcome:?}, tick {tick:?}");
                }
            }
        }
    }
}

#[test]
fn without_a_needed_seed_every_seed_gives_the_same_delays() {
    let others = [
        "zero max-attempts=inf",
        "constant base=1500us jitter=none",
        "constant base=5s jitter=none hint=exact throttled-base=7s",
        "linear base=7ms step=14ms cap=21ms jitter=none",
        "linear base=7ms step=3500us cap=21ms jitter=none",
        "exponential base=7ms cap=28s multiplier=3 jitter=none hint=clamp:1ms max-attempts=inf",
        "exponential base=7ms cap=28s multiplier=1.5 jitter=none max-attempts=inf",
        "exponential base=7ms cap=28s floor=10500us multiplier=1 jitter=none max-attempts=inf",
        "exponential base=1ms cap=none multiplier=1e9 jitter=none max-attempts=inf",
        "exponential base=1ms cap=1500us jitter=none max-attempts=inf",
        "list delays=7ms,0s,1s jitter=none hint-spread=0%",
        "stop",
    ]
    .map(|text| text.parse().unwrap());
    for policy in Profile::all().map(Profile::policy).chain(others) {
        same_for_every_seed_unless_needed(&policy);
    }
}

#[test]
fn a_policy_that_draws_nothing_needs_no_seed() {
    let after = |asked| Outcome::throttled(Some(ServerHint::AtLeast(asked)));
    for (policy, outcome, tick, want) in [
        ("zero", Outcome::TRANSIENT, ms(1), false),
        ("zero", Outcome::NotProcessed, ms(1), false),
        ("zero", after(Duration::ZERO), ms(1), false),
        ("zero", after(secs(1)), ms(1), true),
        ("zero hint=exact", after(secs(1)), ms(1), false),
        ("zero hint-spread=0%", after(secs(1)), ms(1), false),
        ("zero spread=1s", Outcome::TRANSIENT, ms(1), true),
        ("stop", after(secs(1)), ms(1), false),
        ("exponential max-attempts=1", Outcome::TRANSIENT, ms(1), false),
        ("exponential", Outcome::TRANSIENT, Duration::ZERO, true),
        ("exponential", Outcome::Permanent, Duration::ZERO, false),
        ("exponential", Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None }, Duration::ZERO, false),
        ("exponential", Outcome::throttled(Some(ServerHint::DoNotRetry)), Duration::ZERO, false),
        ("exponential", Outcome::throttled(Some(ServerHint::Reserved(secs(1)))), Duration::ZERO, true),
        ("exponential jitter=none", Outcome::TRANSIENT, ms(1), false),
        ("exponential jitter=none", Outcome::throttled(Some(ServerHint::Reserved(secs(1)))), ms(1), false),
        ("exponential jitter=none", after(secs(1)), Duration::ZERO, true),
        ("exponential jitter=none multiplier=1.5", Outcome::TRANSIENT, ms(1), true),
        ("exponential jitter=none multiplier=1.5", Outcome::TRANSIENT, Duration::ZERO, false),
        ("exponential jitter=none throttled-base=1s", Outcome::throttled(None), ms(1), true),
        ("constant base=1500us jitter=none", Outcome::TRANSIENT, ms(1), true),
        ("constant base=1500us jitter=none", Outcome::TRANSIENT, Duration::from_micros(500), false),
        ("list delays=1s,2s jitter=none", Outcome::TRANSIENT, ms(1), false),
        ("curl", Outcome::TRANSIENT, ms(1), false),
        ("polly-v8", Outcome::TRANSIENT, Duration::ZERO, true),
        ("reconnecting-websocket", Outcome::TRANSIENT, Duration::ZERO, true),
    ] {
        let parsed: Policy = policy.parse().unwrap();
        assert_eq!(parsed.needs_seed(&outcome, tick), want, "{policy}, {outcome:?}, tick {tick:?}");
    }
}

#[test]
fn a_policy_without_delays_retries_at_once_after_every_kind_of_failure() {
    let policy = Policy::zero().max_attempts(4).build().unwrap();
    let retry = |after| Decision::Retry { after, source: DelaySource::Schedule, permit: Permits::NONE };
    for kind in [FailureKind::Transient, FailureKind::Throttled, FailureKind::LocalExhaustion] {
        let made = waits(&policy, Outcome::Failed { kind, hint: None }, ms(1), 7);
        let (retries, stopped) = made.split_at(3);
        assert_eq!(retries, [(); 3].map(|()| (retry(Duration::ZERO), Duration::ZERO)), "{kind:?}");
        assert_eq!(stopped[0].0, Decision::Stop(StopReason::Attempts), "{kind:?}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn without_a_needed_seed_no_policy_draws(policy in any_policy()) {
        same_for_every_seed_unless_needed(&policy);
    }
}
