//! Guards by key and quiet periods, as sums: a label with the key would be a time series for each key that anyone makes
//! up.

use core::time::Duration;

use stagger_core::quiet::{QuietPeriod, QuietState};
use stagger_core::{Breaker, Budget, Instant};

use super::record::{absolute, gauge};
use crate::control::keyed::Keyed;
use crate::retrier::quiet_keys::QuietKeys;
use crate::retrier::target::TargetGuards;

/// The budgets of all keys.
#[derive(Default)]
struct BudgetSums {
    exhausted: u64,
    /// The fewest retries that one budget has left.
    least_left: Option<u64>,
}

impl BudgetSums {
    fn add(&mut self, budget: &(impl Budget + ?Sized)) {
        let Some(left) = budget.available() else { return };
        self.exhausted += u64::from(left == 0);
        self.least_left = match self.least_left {
            Some(least) => Some(least.min(left)),
            None => Some(left),
        };
    }

    fn record(&self, target: &str, keys: u64) {
        gauge("stagger_keyed_guards", target, Some(("guard", "budget")), keys as f64);
        gauge("stagger_keyed_budgets_exhausted", target, None, self.exhausted as f64);
        gauge("stagger_keyed_budget_left", target, None, self.least_left.map_or(f64::NAN, |left| left as f64));
    }
}

/// The breakers of all keys.
#[derive(Default)]
struct BreakerSums {
    rejecting: u64,
}

impl BreakerSums {
    fn add(&mut self, breaker: &(impl Breaker + ?Sized), now: Instant) {
        self.rejecting += u64::from(breaker.would_reject(Duration::ZERO, &now));
    }

    fn record(&self, target: &str, keys: u64) {
        gauge("stagger_keyed_guards", target, Some(("guard", "breaker")), keys as f64);
        gauge("stagger_keyed_breakers_rejecting", target, None, self.rejecting as f64);
    }
}

/// Calls `show` for the guards of every key, and for those that the other keys share. Returns the number of keys.
fn for_each<K, G>(guards: &Keyed<K, G>, mut show: impl FnMut(&G)) -> u64 {
    let mut keys = 0;
    guards.for_each(|_, guard| {
        keys += 1;
        show(guard);
    });
    show(guards.overflow());
    keys
}

pub(super) fn record_budgets<K, B: Budget>(target: &str, budgets: &Keyed<K, B>) {
    let mut sums = BudgetSums::default();
    let keys = for_each(budgets, |budget| sums.add(budget));
    sums.record(target, keys);
}

pub(super) fn record_breakers<K, B: Breaker>(target: &str, breakers: &Keyed<K, B>, now: Instant) {
    let mut sums = BreakerSums::default();
    let keys = for_each(breakers, |breaker| sums.add(breaker, now));
    sums.record(target, keys);
}

/// Records the guards of a retrier's targets. All have a budget or none, and a breaker or none.
pub(super) fn record_targets(name: &str, targets: &Keyed<String, TargetGuards>, now: Instant) {
    let mut budgets = BudgetSums::default();
    let mut breakers = BreakerSums::default();
    let keys = for_each(targets, |guards| {
        guards.budget.iter().for_each(|budget| budgets.add(&**budget));
        guards.breaker.iter().for_each(|breaker| breakers.add(&**breaker, now));
    });
    if targets.overflow().budget.is_some() {
        budgets.record(name, keys);
    }
    if targets.overflow().breaker.is_some() {
        breakers.record(name, keys);
    }
}

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
