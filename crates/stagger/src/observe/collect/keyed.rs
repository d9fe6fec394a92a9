//! Guards by key, as sums over the keys: a label with the key would be a time series for each key that anyone makes up.

use core::time::Duration;

use stagger_core::{Breaker, Budget, Instant};

use super::emit::gauge;
use crate::control::keyed::Keyed;
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
        self.least_left = Some(self.least_left.map_or(left, |least| least.min(left)));
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
    let (mut budgets, mut breakers) = (BudgetSums::default(), BreakerSums::default());
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
