//! Quiet periods: of one target, or as sums over keys.

use stagger_core::Instant;
use stagger_core::quiet::{QuietPeriod, QuietState};

use super::emit::{absolute, gauge};
use crate::control::keyed::Keyed;
use crate::retrier::quiet_keys::QuietKeys;

/// Quiet periods at one moment.
#[derive(Default)]
struct QuietSums {
    armed: u64,
    waiting: u64,
    pauses: u64,
    waited: u64,
    rejected: u64,
    would_have_held: u64,
}

impl QuietSums {
    fn add(&mut self, quiet: &QuietPeriod, now: Instant) {
        let seen = quiet.snapshot(&now);
        let is_armed = match seen.state {
            QuietState::Open => false,
            // The next call notices that the pause is over.
            QuietState::Quiet => !seen.remaining.is_zero(),
            _ => true,
        };
        self.armed += u64::from(is_armed);
        self.waiting += u64::from(seen.waiting);
        self.pauses += seen.pauses;
        self.waited += seen.waited;
        self.rejected += seen.rejected;
        self.would_have_held += seen.would_have_held;
    }

    fn record_state(&self, target: &str) {
        gauge("stagger_quiet_armed", target, None, self.armed as f64);
        gauge("stagger_quiet_waiting", target, None, self.waiting as f64);
    }

    fn record_totals(&self, target: &str) {
        absolute("stagger_quiet_pauses_total", target, None, self.pauses);
        for (result, calls) in
            [("waited", self.waited), ("rejected", self.rejected), ("would_have_held", self.would_have_held)]
        {
            absolute("stagger_quiet_calls_total", target, Some(("result", result)), calls);
        }
    }
}

fn record_keys(target: &str, keys: usize) {
    gauge("stagger_keyed_guards", target, Some(("guard", "quiet")), keys as f64);
}

pub(super) fn record_quiet(target: &str, quiet: &QuietPeriod, now: Instant) {
    let mut sums = QuietSums::default();
    sums.add(quiet, now);
    sums.record_state(target);
    sums.record_totals(target);
}

/// Records the state of quiet periods by key, but no totals: those of keys that were replaced are unknown.
pub(super) fn record_keyed_quiet<K>(target: &str, periods: &Keyed<K, QuietPeriod>, now: Instant) {
    let mut sums = QuietSums::default();
    periods.for_each(|_, quiet| sums.add(quiet, now));
    sums.add(periods.overflow(), now);
    record_keys(target, periods.len());
    sums.record_state(target);
}

/// Records the quiet periods of a retrier's keys, if it has keys.
pub(super) fn record_quiet_keys(name: &str, keys: &QuietKeys, now: Instant) {
    let mut sums = QuietSums::default();
    let Some([pauses, waited, rejected, would_have_held]) = keys.for_each(|quiet| sums.add(quiet, now)) else { return };
    sums.pauses += pauses;
    sums.waited += waited;
    sums.rejected += rejected;
    sums.would_have_held += would_have_held;
    record_keys(name, keys.len());
    sums.record_state(name);
    sums.record_totals(name);
}
