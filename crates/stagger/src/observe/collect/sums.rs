//! What every guard shows, as sums over guards of one name: a label with the key would be a time series for each key
//! that anyone makes up.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::Instant;
use stagger_core::guard::Guard;
use stagger_core::quiet::QuietPeriod;

use super::record::{absolute, gauge};
use crate::control::keyed::Keyed;
use crate::retrier::target::TargetGuards;

/// The guards of one name.
struct GuardSums {
    name: &'static str,
    holding: u64,
    exhausted: u64,
    /// The fewest retries that one of them has left.
    least_left: Option<u64>,
}

impl GuardSums {
    const fn new(name: &'static str) -> Self {
        Self { name, holding: 0, exhausted: 0, least_left: None }
    }

    fn add(&mut self, guard: &dyn Guard, now: Instant) {
        self.holding += u64::from(guard.retry_in(&now) > Duration::ZERO);
        let Some(left) = guard.available() else { return };
        self.exhausted += u64::from(left == 0);
        self.least_left = match self.least_left {
            Some(least) => Some(least.min(left)),
            None => Some(left),
        };
    }

    fn record(&self, target: &str) {
        let label = Some(("guard", self.name));
        gauge("stagger_guards_holding", target, label, self.holding as f64);
        gauge("stagger_guards_exhausted", target, label, self.exhausted as f64);
        gauge("stagger_guard_left", target, label, self.least_left.map_or(f64::NAN, |left| left as f64));
    }

    fn record_keys(&self, target: &str, keys: u64) {
        gauge("stagger_keyed_guards", target, Some(("guard", self.name)), keys as f64);
        self.record(target);
    }
}

pub(super) fn record_guard(target: &str, guard: &dyn Guard, now: Instant) {
    let mut sums = GuardSums::new(guard.name());
    sums.add(guard, now);
    sums.record(target);
}

/// Records the guards of every key, and the one that the other keys share.
pub(super) fn record_keyed<K, G: Guard>(target: &str, guards: &Keyed<K, G>, now: Instant) {
    let mut sums = GuardSums::new(guards.overflow().name());
    let mut keys = 0;
    guards.for_each(|_, guard| {
        keys += 1;
        sums.add(guard, now);
    });
    sums.add(guards.overflow(), now);
    sums.record_keys(target, keys);
}

/// Records the guards of a retrier's targets, which all have the same list. Those at the places in `shared` serve all
/// targets, and are not the targets' own.
pub(super) fn record_targets(name: &str, targets: &Keyed<String, TargetGuards>, is_own: &[bool], now: Instant) {
    let mut sums: Vec<_> = targets.overflow().guards.iter().map(|guard| GuardSums::new(guard.name())).collect();
    let mut add = |list: &[Arc<dyn Guard>]| {
        for (sums, guard) in sums.iter_mut().zip(list) {
            sums.add(&**guard, now);
        }
    };
    let mut keys = 0;
    targets.for_each(|_, target| {
        keys += 1;
        add(&target.guards);
    });
    add(&targets.overflow().guards);
    for (sums, is_own) in sums.iter().zip(is_own) {
        if *is_own {
            sums.record_keys(name, keys);
        }
    }
}

/// Records what a quiet period shows beside other guards.
pub(super) fn record_quiet(target: &str, quiet: &QuietPeriod, now: Instant) {
    let seen = quiet.snapshot(&now);
    gauge("stagger_quiet_waiting", target, None, f64::from(seen.waiting));
    absolute("stagger_quiet_pauses_total", target, None, seen.pauses);
    for (result, calls) in [("waited", seen.waited), ("rejected", seen.rejected)] {
        absolute("stagger_quiet_calls_total", target, Some(("result", result)), calls);
    }
    record_guard(target, quiet, now);
}
