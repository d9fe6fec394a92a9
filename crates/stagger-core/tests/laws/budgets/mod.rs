//! The budgets: their rows of the conformance table, named by id, what else they promise, and the burst invariant.

mod adaptive;
mod burst;
mod concurrent;
mod controlled;
mod expected;
mod lifetime;
mod play;
mod settings;
mod success_rate;
mod threads;
mod throttle;
mod tokens;
mod window;

use stagger_core::budget::{BudgetError, BudgetProblem};
use stagger_core::{Budget, FailureKind, Instant, Outcome, guard::BudgetPermit};

/// Moments at which nothing is read off the clock.
const NOW: Instant = Instant::from_nanos(5_000_000_000);

/// Asks for retries until one is refused; tells how many were lent. They are made, and their attempts are pending.
fn drain(budget: &dyn Budget, now: Instant) -> Vec<BudgetPermit> {
    let lent: Vec<_> =
        core::iter::from_fn(|| budget.try_acquire(FailureKind::Transient, &now)).take(1_000_000).collect();
    assert!(lent.len() < 1_000_000, "{budget:?} never refuses");
    lent
}

/// A first attempt, from its beginning to its end.
fn attempt(budget: &dyn Budget, outcome: Outcome, now: Instant) {
    let loan = budget.on_first_attempt(&now);
    budget.record(loan, &outcome, &now);
}

fn faults<T: core::fmt::Debug>(built: Result<T, BudgetError>) -> Vec<BudgetProblem> {
    built.map_or_else(|error| error.problems().collect(), |built| panic!("{built:?} makes no sense"))
}
