use core::time::Duration;

use serde_json::{Value, json};
use stagger_core::budget::{Refund, SuccessRate, Tokens, Window};
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{FailureKind, Guard, Guards, Instant, Outcome, Policy, Ratio, Seed, ServerHint};

use super::courses;
use crate::shell::Result;

const POLICIES: [&str; 12] = [
    "default",
    "serverless",
    "background-job",
    "exponential base=1s cap=20s spread=5s max-elapsed=1m max-attempts=inf throttled-base=7s",
    "exponential base=1s cap=20s hint-spread=10% max-hint=inf max-attempts=8 max-elapsed=90s",
    "exponential base=1s cap=20s hint=exact max-hint=20s max-attempts=12",
    "exponential base=1s cap=20s hint=clamp:5s max-hint=inf",
    "exponential base=1s cap=3s jitter=add:500ms max-attempts=12",
    "linear base=250ms cap=2s max-attempts=20",
    "decorrelated base=100ms cap=20s max-attempts=20",
    "list delays=0s,2s,10s jitter=none max-hint=inf spread=1s",
    "stop spread=1s",
];

const SEEDS: u64 = 60;
/// How many calls share a budget, and how many attempts each of them makes at most.
const CALLS: u64 = 12;
const ATTEMPTS: u64 = 12;
const LONGEST_ATTEMPT: u64 = 3_000_000_000;
const LONGEST_HINT: u64 = 40_000_000_000;

/// Returns what the machine for retries decides in random courses of calls: one in full, and a hash of many.
pub(super) fn vectors() -> Result<Value> {
    let rows = POLICIES.iter().flat_map(|policy| {
        ["none", "tokens", "tokens-refill", "success-rate", "window"].map(|budget| (policy, budget))
    });
    let rows: Result<Vec<_>> = rows.map(|(policy, budget)| row(policy, budget)).collect();
    Ok(json!({ "policies": rows? }))
}

fn row(text: &str, budget: &str) -> Result<Value> {
    let policy: Policy = text.parse()?;
    let (listed, sha256) = courses(SEEDS, 24, |seed| Ok(course(&policy, budget_named(budget)?.as_deref(), seed)))?;
    Ok(json!({ "policy": text, "budget": budget, "seeds": SEEDS, "listed": listed, "sha256": sha256 }))
}

fn budget_named(name: &str) -> Result<Option<Box<dyn Guard>>> {
    let tokens = Tokens::builder().capacity(20).initial(15).transient_cost(3).throttled_cost(5).local_cost(0);
    Ok(match name {
        "tokens" => Some(Box::new(tokens.fractional_reward(Ratio::millionths(1_300_000)).build()?)),
        "tokens-refill" => {
            let refilled = tokens.refund(Refund::LastCost).refill(7, Duration::from_secs(60)).reward(1);
            Some(Box::new(refilled.build()?))
        }
        "success-rate" => Some(Box::new(SuccessRate::with(Ratio::percent(55), 7)?)),
        "window" => {
            let window = Window::builder().ttl(Duration::from_secs(33)).ratio(Ratio::percent(45)).min_per_second(0);
            Some(Box::new(window.build()?))
        }
        _ => None,
    })
}

/// Returns a line for each decision of one course, which the draws of the seed decide.
fn course(policy: &Policy, budget: Option<&dyn Guard>, seed: Seed) -> Vec<String> {
    let guards = Guards::of(budget.as_slice());
    let mut now = Instant::from_nanos(1_000_000_000);
    let mut lines = Vec::new();
    for call in 0..CALLS {
        let random = seed.draw(call << 8);
        let mut advance = |length: u64| {
            now = now.saturating_add(Duration::from_nanos(length));
            now
        };
        let start = advance(random % LONGEST_ATTEMPT);
        let deadline =
            random.is_multiple_of(3).then(|| start.saturating_add(Duration::from_nanos((random >> 8) % LONGEST_HINT)));
        let mut state = RetryState::new();
        let mut machine = RetryMachine::new(policy, &mut state, seed.for_call(call)).deadline(deadline);
        let spread = machine.spread(|| start);
        let mut at = advance(spread.as_nanos() as u64);
        lines.push(format!("call {call} spread {}", spread.as_nanos()));
        let mut permit = Permits::NONE;
        for attempt in 1..=ATTEMPTS {
            permit = match machine.begin(permit, || at, &guards) {
                Ok(permit) => permit,
                Err(reason) => {
                    lines.push(format!("not begun {}", reason.name()));
                    break;
                }
            };
            let random = seed.draw(call << 8 | attempt);
            at = advance((random >> 16) % LONGEST_ATTEMPT);
            let outcome = if call % 4 == 3 { hostile_outcome(random) } else { outcome(random) };
            let decision = machine.decide(outcome, core::mem::replace(&mut permit, Permits::NONE), || at, &guards);
            let left = budget.and_then(Guard::available).map_or_else(|| "-".to_owned(), |left| left.to_string());
            lines.push(format!("{} attempt {} budget {left}", shown(&decision), machine.attempt()));
            let Decision::Retry { after, permit: granted, .. } = decision else { break };
            permit = granted;
            at = advance(after.as_nanos() as u64);
            // One call in eight is cancelled after its wait.
            if random >> 61 == 0 {
                guards.release(core::mem::replace(&mut permit, Permits::NONE), || at);
                break;
            }
        }
    }
    lines
}

fn outcome(random: u64) -> Outcome {
    let hint = Duration::from_nanos((random >> 24) % LONGEST_HINT);
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    match random % 16 {
        0 | 1 => Outcome::Success,
        2 => Outcome::Permanent,
        3 => Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None },
        4 => failed(FailureKind::Throttled, Some(ServerHint::AtLeast(hint))),
        5 => failed(FailureKind::Transient, Some(ServerHint::AtLeast(hint))),
        6 => failed(FailureKind::Throttled, Some(ServerHint::Reserved(hint))),
        7 => failed(FailureKind::Throttled, None),
        8 if random & 64 == 0 => failed(FailureKind::Transient, Some(ServerHint::DoNotRetry)),
        8 | 9 => failed(FailureKind::LocalExhaustion, None),
        10 => Outcome::NotProcessed,
        _ => Outcome::TRANSIENT,
    }
}

/// Returns what a server answers that asks for nearly every retry at once or soon.
fn hostile_outcome(random: u64) -> Outcome {
    let hint = Duration::from_nanos(if random & 16 == 0 { 0 } else { ((random >> 24) % LONGEST_HINT) >> 8 });
    match random % 16 {
        0 => Outcome::TRANSIENT,
        1 => Outcome::throttled(Some(ServerHint::AtLeast(hint))),
        _ => Outcome::throttled(Some(ServerHint::Reserved(hint))),
    }
}

fn shown(decision: &Decision) -> String {
    match decision {
        Decision::Retry { after, source, .. } => format!("retry {} {}", after.as_nanos(), source.name()),
        Decision::Stop(reason) => format!("stop {}", reason.name()),
        Decision::Done => "done".to_owned(),
        _ => "unknown".to_owned(),
    }
}
