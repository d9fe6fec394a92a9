use core::time::Duration;

use serde_json::{Value, json};
use stagger_core::budget::Window;
use stagger_core::guard::{Ask, End, Guard as _, Permit};
use stagger_core::{FailureKind, Instant, Ratio, Seed};

use super::courses;
use crate::shell::Result;

const SEEDS: u64 = 40;
const EVENTS: u64 = 400;

/// The length of a window in milliseconds, its share in millionths, its minimum per second, and the longest time
/// between two events in nanoseconds.
const WINDOWS: [(u64, u32, u32, u64); 5] = [
    (10_000, 200_000, 10, 50_000_000),
    (1_000, 333_333, 2, 100_000_000),
    (60_000, 1_000_000, 0, 3_000_000_000),
    (7_500, 500_000, 0, 400_000_000),
    (1_001, 0, 1, 900_000_000),
];

/// Returns what windows grant in random courses of calls and retries: the beginning of one, and a hash of many.
pub(super) fn vectors() -> Result<Value> {
    let rows = WINDOWS.map(|window| {
        let (listed, sha256) = courses(SEEDS, 60, |seed| course(window, seed))?;
        let (ttl, ratio, minimum, gap) = window;
        let settings = json!({ "ttlMs": ttl, "ratio": f64::from(ratio) / 1e6, "minPerSecond": minimum });
        Ok(json!({
            "settings": settings, "gap": gap, "seeds": SEEDS, "events": EVENTS, "listed": listed, "sha256": sha256,
        }))
    });
    let rows: Result<Vec<_>> = rows.into_iter().collect();
    Ok(json!({ "windows": rows? }))
}

/// Returns a line for each event of one course, which the draws of the seed decide. One event in 32 is told a time that
/// is earlier than that of the one before.
fn course((ttl, ratio, minimum, gap): (u64, u32, u32, u64), seed: Seed) -> Result<Vec<String>> {
    let ratio = Ratio::millionths(ratio);
    let window = Window::builder().ttl(Duration::from_millis(ttl)).ratio(ratio).min_per_second(minimum).build()?;
    let mut now = 1_000_000_000;
    let mut permits: Vec<Permit> = Vec::new();
    let mut lines = Vec::new();
    for n in 0..EVENTS {
        let random = seed.draw(n);
        now += (random >> 20) % gap;
        let is_earlier = (random >> 8).is_multiple_of(32);
        let at =
            Instant::from_nanos(if is_earlier { now.saturating_sub((random >> 12) % (ttl * 2_000_000)) } else { now });
        let line = match random % 8 {
            0..=2 => {
                let _ = window.ask(Ask::FIRST, Permit::NONE, &at);
                "call"
            }
            7 if !permits.is_empty() => {
                let permit = permits.remove((random >> 40) as usize % permits.len());
                window.settle(permit, End::NeverMade, &at);
                "returned"
            }
            _ => match window.reserve(FailureKind::Transient, &at) {
                Some(permit) => {
                    permits.push(permit);
                    "granted"
                }
                None => "rejected",
            },
        };
        lines.push(format!("{line} left {}", window.available().unwrap_or_default()));
    }
    Ok(lines)
}
