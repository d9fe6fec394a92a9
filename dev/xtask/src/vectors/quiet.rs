use core::time::Duration;

use serde_json::{Value, json};
use stagger_core::guard::{Answer, Ask, End, Guard as _, Permit};
use stagger_core::quiet::{QuietPeriod, QuietState, QuietTrigger};
use stagger_core::{FailureKind, Instant, Outcome, Seed, ServerHint};

use super::courses;
use crate::shell::Result;

const SEEDS: u64 = 60;
const EVENTS: u64 = 400;
/// The longest time between two events, in nanoseconds: from many calls in a second to few in a minute.
const GAPS: [u64; 4] = [3_000_000, 60_000_000, 1_000_000_000, 8_000_000_000];
const MAX: u64 = 60_000_000_000;

/// Returns what a quiet period does in random courses of calls: the beginning of one, and a hash of many.
pub(super) fn vectors() -> Result<Value> {
    let rows = GAPS.map(|gap| {
        let (listed, sha256) = courses(SEEDS, 60, |seed| course(gap, seed))?;
        Ok(json!({ "gap": gap, "seeds": SEEDS, "events": EVENTS, "listed": listed, "sha256": sha256 }))
    });
    let rows: Result<Vec<_>> = rows.into_iter().collect();
    Ok(json!({ "courses": rows? }))
}

/// Returns a line for each event of one course, which the draws of the seed decide.
fn course(gap: u64, seed: Seed) -> Result<Vec<String>> {
    let quiet = QuietPeriod::builder().trigger(QuietTrigger::Hints).max(Duration::from_nanos(MAX)).build()?;
    let mut now = Instant::from_nanos(1_000_000_000);
    let (mut waiting, mut running) = (Vec::new(), Vec::new());
    let mut lines = Vec::new();
    for n in 0..EVENTS {
        let random = seed.draw(n);
        now = now.saturating_add(Duration::from_nanos((random >> 20) % gap));
        let latest =
            (random >> 16).is_multiple_of(4).then(|| now.saturating_add(Duration::from_nanos((random >> 30) % MAX)));
        let pick = (random >> 8) as usize & 0xff;
        let line = match random % 8 {
            0..=2 => turn(&quiet, Permit::NONE, latest, now, &mut waiting, &mut running),
            3 | 4 if !waiting.is_empty() => {
                let permit = waiting.remove(pick % waiting.len());
                turn(&quiet, permit, latest, now, &mut waiting, &mut running)
            }
            5 if !waiting.is_empty() && pick < 40 => {
                quiet.settle(waiting.remove(pick % waiting.len()), End::NeverMade, &now);
                "left".to_owned()
            }
            _ if !running.is_empty() => {
                let permit: Permit = running.remove(pick % running.len());
                if pick >= 250 {
                    quiet.settle(permit, End::NeverMade, &now);
                    "released".to_owned()
                } else {
                    quiet.settle(permit, End::Made(&outcome(random >> 40)), &now);
                    "recorded".to_owned()
                }
            }
            _ => "nothing".to_owned(),
        };
        let rejects = quiet.would_refuse(Duration::from_nanos(gap), latest, &now);
        let state = match quiet.snapshot(&now).state {
            QuietState::Open => "open",
            QuietState::Quiet => "quiet",
            QuietState::Probing => "probing",
            _ => "returning",
        };
        lines.push(format!("{line} {state} {} {rejects}", quiet.snapshot(&now).waiting));
    }
    Ok(lines)
}

fn turn(
    quiet: &QuietPeriod,
    permit: Permit,
    latest: Option<Instant>,
    now: Instant,
    waiting: &mut Vec<Permit>,
    running: &mut Vec<Permit>,
) -> String {
    match quiet.ask(Ask::FIRST.by(latest), permit, &now) {
        Answer::Go(permit) => {
            running.push(permit);
            "now".to_owned()
        }
        Answer::Wait { after, permit } => {
            waiting.push(permit);
            format!("wait {}", after.as_nanos())
        }
        Answer::No { retry_in } => format!("rejected {}", retry_in.as_nanos()),
    }
}

fn outcome(random: u64) -> Outcome {
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    let length = Duration::from_millis((random >> 8) % 90_000);
    match random % 32 {
        0 => failed(FailureKind::Throttled, Some(ServerHint::AtLeast(length))),
        1 => failed(FailureKind::Throttled, Some(ServerHint::Reserved(length))),
        2 => failed(FailureKind::Throttled, Some(ServerHint::AtLeast(Duration::ZERO))),
        3 | 4 => failed(FailureKind::Throttled, None),
        5 => failed(FailureKind::Transient, Some(ServerHint::AtLeast(length))),
        6 => failed(FailureKind::LocalExhaustion, None),
        7 => Outcome::UnsafeToRetry { kind: FailureKind::Throttled, hint: None },
        8 => Outcome::Permanent,
        9 => Outcome::NotProcessed,
        _ => Outcome::Success,
    }
}
