//! The inputs: policies with every jitter and setting, and proptest strategies for policies and scripts.

use core::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use stagger::{FailureKind, HintMode, Jitter, Outcome, Policy, PolicyBuilder, Ratio, ServerHint};

use super::script::{ScriptedAttempt, ScriptedResult};

/// Policies with every jitter.
pub(crate) const JITTERS: [&str; 6] = [
    "exponential base=10ms cap=200ms jitter=none max-attempts=6",
    "exponential base=10ms cap=200ms jitter=full max-attempts=6",
    "exponential base=10ms cap=200ms jitter=equal max-attempts=6",
    "exponential base=10ms cap=200ms jitter=decorrelated max-attempts=6",
    "exponential base=10ms cap=200ms jitter=±20% max-attempts=6",
    "exponential base=10ms cap=50ms jitter=±100% max-attempts=20",
];

/// Policies with every shape of backoff and every setting that affects a decision.
pub(crate) const SETTINGS: [&str; 14] = [
    "exponential base=3ms cap=none multiplier=1.5 floor=2ms jitter=full max-attempts=6",
    "linear base=5ms step=3ms cap=30ms jitter=full max-attempts=8",
    "constant base=200us jitter=none max-attempts=9",
    "constant base=10ms jitter=equal max-attempts=4",
    "list delays=1ms,5ms,2ms jitter=full max-attempts=7",
    "zero max-attempts=5",
    "stop",
    "exponential base=10ms cap=200ms max-attempts=1",
    "exponential base=10ms cap=200ms max-attempts=inf",
    "exponential base=10ms cap=200ms spread=50ms max-attempts=4",
    "exponential base=10ms cap=200ms max-elapsed=60ms max-attempts=inf",
    "exponential base=10ms cap=200ms hint=exact throttled-base=30ms local-base=40ms",
    "exponential base=10ms cap=200ms hint=clamp:5ms max-attempts=6",
    "exponential base=10ms cap=200ms hint-spread=0% max-hint=2ms max-attempts=6",
];

pub(crate) fn parsed(policy: &str) -> Policy {
    policy.parse().unwrap_or_else(|error| panic!("{policy}: {error}"))
}

fn up_to(micros: u64) -> impl Strategy<Value = Duration> {
    (0..=micros * 1_000).prop_map(Duration::from_nanos)
}

/// Generates valid policies with delays of at most some tens of milliseconds and fewer than 40 attempts.
pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let backoff = prop_oneof![
        4 => (up_to(20_000), up_to(50_000), 1.0..3.0_f64)
            .prop_map(|(base, cap, multiplier)| Policy::exponential(base, cap).multiplier(multiplier)),
        1 => (up_to(20_000), up_to(50_000)).prop_map(|(base, cap)| Policy::decorrelated(base, cap)),
        1 => (up_to(9_000), up_to(9_000), up_to(50_000)).prop_map(|(base, step, cap)| Policy::linear(base, step, cap)),
        1 => up_to(9_000).prop_map(Policy::constant),
        1 => Just(Policy::zero()),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        (0..=1_000_000_u32).prop_map(Ratio::millionths).prop_map(Jitter::Factor),
    ];
    let hint_mode =
        prop_oneof![Just(HintMode::AtLeast), Just(HintMode::Exact), up_to(5_000).prop_map(HintMode::Clamp),];
    let limits = (1..40_u32, option::of(up_to(90_000)), option::of(up_to(20_000)), up_to(9_000));
    (backoff, option::of(jitter), hint_mode, limits).prop_filter_map(
        "the policy is valid",
        |(backoff, jitter, mode, limits)| {
            let (attempts, max_elapsed, spread, max_hint) = limits;
            let set = |builder: PolicyBuilder| jitter.map_or(builder, |jitter| builder.jitter(jitter));
            let builder = set(backoff).hint_mode(mode).max_hint(max_hint).max_attempts(attempts);
            let builder = max_elapsed.map_or(builder, |limit| builder.max_elapsed(limit));
            builder.spread(spread.unwrap_or_default()).build().ok()
        },
    )
}

/// Generates scripts of fewer than 12 attempts.
pub(crate) fn attempts() -> impl Strategy<Value = Vec<ScriptedAttempt>> {
    let hint = prop_oneof![
        4 => up_to(9_000).prop_map(ServerHint::AtLeast),
        4 => up_to(9_000).prop_map(ServerHint::Reserved),
        1 => Just(ServerHint::DoNotRetry),
    ];
    let kind =
        prop_oneof![Just(FailureKind::Transient), Just(FailureKind::Throttled), Just(FailureKind::LocalExhaustion)];
    let outcome = prop_oneof![
        12 => (kind, option::of(hint)).prop_map(|(kind, hint)| Outcome::Failed { kind, hint }),
        3 => Just(Outcome::NotProcessed),
        1 => Just(Outcome::Permanent),
        1 => Just(Outcome::Cancelled),
    ];
    let result = prop_oneof![
        6 => outcome.clone().prop_map(ScriptedResult::Error),
        2 => outcome.prop_map(ScriptedResult::Marked),
        1 => Just(ScriptedResult::Invalid),
        1 => (1..u32::MAX).prop_map(ScriptedResult::Value),
    ];
    vec((up_to(9_000), result).prop_map(|(duration, result)| ScriptedAttempt { duration, result }), 0..12)
}
