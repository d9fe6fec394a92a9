use core::time::Duration;

use serde_json::{Value, json};
use stagger_core::machine::{ReconnectMachine, ReconnectPhase, ReconnectStep};
use stagger_core::{FailureKind, Guards, Instant, Outcome, Policy, Seed, ServerHint};

use super::courses;
use crate::shell::Result;

const POLICIES: [&str; 9] = [
    "web-socket",
    "web-socket max-hint=20s",
    "partysocket",
    "phoenix",
    "signalr",
    "exponential base=1s cap=20s spread=5s max-elapsed=2m max-attempts=inf throttled-base=7s",
    "exponential base=1s jitter=equal max-attempts=6",
    "decorrelated base=1s cap=1m spread=3s max-attempts=inf",
    "stop spread=1s max-hint=20s max-attempts=inf",
];

const SEEDS: u64 = 200;
const EVENTS: u64 = 60;

/// Returns what the machine for reconnects decides in random courses of events: one in full, and a hash of many.
pub(super) fn vectors() -> Result<Value> {
    let rows = POLICIES.map(|text| {
        let policy: Policy = text.parse()?;
        let (listed, sha256) = courses(SEEDS, usize::MAX, |seed| Ok(course(&policy, seed)))?;
        Ok(json!({ "policy": text, "seeds": SEEDS, "events": EVENTS, "listed": listed, "sha256": sha256 }))
    });
    let rows: Result<Vec<_>> = rows.into_iter().collect();
    Ok(json!({ "policies": rows? }))
}

/// Returns a line for each event of one course, which the draws of the seed decide. In its second half a server closes
/// the connections soon, and asks for the client back at once or soon.
fn course(policy: &Policy, seed: Seed) -> Vec<String> {
    let guards = Guards::none();
    let mut machine = ReconnectMachine::new(seed);
    let mut now = Instant::ZERO;
    let mut lines = Vec::new();
    for n in 0..EVENTS {
        let random = seed.draw(n);
        let (event, rare, length) = (random % 8, (random >> 3) % 8, (random >> 8) % 40_000_000_000);
        let is_hostile = n >= EVENTS / 2;
        let length = if is_hostile { length >> 6 } else { length };
        now = now.saturating_add(Duration::from_nanos(length));
        let generation = machine.generation();
        let step = match event {
            0 if rare < 2 || n == 0 => machine.reconnect_now(policy, || now, &guards),
            0..=2 => {
                if let ReconnectPhase::Waiting { until } = machine.phase() {
                    now = now.max(until);
                }
                match machine.phase() {
                    ReconnectPhase::Idle | ReconnectPhase::GivenUp(_) => machine.reconnect_now(policy, || now, &guards),
                    _ => machine.due(policy, now, &guards),
                }
            }
            3 => machine.opened(generation, || now, &guards),
            4.. if is_hostile && rare < 7 => {
                let asked = if rare < 4 { 0 } else { length };
                let hint = ServerHint::Reserved(Duration::from_nanos(asked));
                machine.ended(generation, Outcome::throttled(Some(hint)), now, policy, &guards)
            }
            4 | 5 => machine.ended(generation, Outcome::TRANSIENT, now, policy, &guards),
            6 => {
                let hint = ServerHint::Reserved(Duration::from_nanos(length));
                let outcome = Outcome::Failed { kind: FailureKind::Throttled, hint: Some(hint) };
                machine.ended(generation, outcome, now, policy, &guards)
            }
            _ if rare == 0 => machine.ended(generation, Outcome::Permanent, now, policy, &guards),
            _ if rare < 4 => {
                machine.distrust(generation);
                machine.due(policy, now, &guards)
            }
            _ => {
                let failed = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };
                machine.ended(generation, failed, now, policy, &guards)
            }
        };
        let unreachable = machine.unreachable().map_or(0, |unreachable| unreachable.attempts);
        let report = if machine.take_unreachable_report().is_some() { " reported" } else { "" };
        lines.push(format!("{} attempt {} unreachable {unreachable}{report}", shown(step), machine.attempt()));
    }
    lines
}

fn shown(step: ReconnectStep) -> String {
    match step {
        ReconnectStep::Connect { generation } => format!("connect {}", generation.get()),
        ReconnectStep::Wait { after, until, source } => {
            format!("wait {} until {} {source:?}", after.as_nanos(), until.as_nanos()).to_lowercase()
        }
        ReconnectStep::GiveUp(reason) => format!("stop {reason:?}").to_lowercase(),
        ReconnectStep::Stale => "stale".to_owned(),
        _ => "rest".to_owned(),
    }
}
