//! Limiters of the reference figures that this library does not provide, implemented as custom guards.

use core::time::Duration;
use std::sync::Mutex;

use stagger_core::guard::{Answer, Ask, End, Guard, Now, Permit};
use stagger_core::{FailureKind, Outcome, Seed};

/// A bucket of a hundred retries to which every request adds a tenth, regardless of its outcome.
///
/// [`Lifetime`](stagger_core::budget::Lifetime) counts the same way, without an upper limit.
#[derive(Debug)]
pub(super) struct PerRequest {
    tenths: Mutex<u32>,
}

impl PerRequest {
    pub(super) fn new() -> Self {
        Self { tenths: Mutex::new(1_000) }
    }
}

impl Guard for PerRequest {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn ask(&self, ask: Ask, held: Permit, _: &dyn Now) -> Answer {
        if ask.is_first {
            let mut tenths = self.tenths.lock().unwrap();
            *tenths = 1_000.min(*tenths + 1);
        }
        Answer::Go(held)
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let mut tenths = self.tenths.lock().unwrap();
        *tenths = tenths.checked_sub(10)?;
        Some(Permit::NONE)
    }

    fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}
}

/// Client throttling as in the SRE book: the share `(requests − 2 · accepts) / (requests + 1)` of all attempts,
/// including first attempts, is rejected, over twelve time slots.
///
/// [`Adaptive`](stagger_core::budget::Adaptive) is a budget and rejects only retries; only a breaker can reject first
/// attempts.
#[derive(Debug)]
pub(super) struct Throttling {
    seed: Seed,
    slot: Duration,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Slot number, requests, and accepted requests.
    slots: Vec<(u64, u32, u32)>,
    draws: u64,
}

const SLOTS: u64 = 12;

impl Throttling {
    pub(super) fn new(seed: Seed, slot: Duration) -> Self {
        Self { seed, slot, counts: Mutex::default() }
    }

    /// Calls `what` with the counts of the last twelve slots, including the current one.
    fn with<T>(&self, now: &dyn Now, what: impl FnOnce(&mut Counts) -> T) -> T {
        let slot = now.now().as_nanos() / self.slot.as_nanos() as u64;
        let mut counts = self.counts.lock().unwrap();
        counts.slots.retain(|&(old, ..)| old + SLOTS > slot);
        if counts.slots.last().is_none_or(|last| last.0 != slot) {
            counts.slots.push((slot, 0, 0));
        }
        what(&mut counts)
    }
}

impl Guard for Throttling {
    fn name(&self) -> &'static str {
        "breaker"
    }

    fn ask(&self, _: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.with(now, |counts| {
            let requests: u32 = counts.slots.iter().map(|slot| slot.1).sum();
            let accepts: u32 = counts.slots.iter().map(|slot| slot.2).sum();
            counts.slots.last_mut().unwrap().1 += 1;
            counts.draws += 1;
            let share = self.seed.draw(counts.draws) as f64 / 2_f64.powi(64);
            let rejected = (f64::from(requests) - 2.0 * f64::from(accepts)) / f64::from(requests + 1);
            if share < rejected { Answer::No { retry_in: Duration::ZERO } } else { Answer::Go(held) }
        })
    }

    fn settle(&self, _: Permit, end: End<'_>, now: &dyn Now) {
        if end == End::Made(&Outcome::Success) {
            self.with(now, |counts| counts.slots.last_mut().unwrap().2 += 1);
        }
    }
}
