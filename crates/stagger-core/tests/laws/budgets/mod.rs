//! Retry budgets: conformance rows, named by id, other documented guarantees, and the burst invariant.

mod adaptive;
mod burst;
mod controlled;
mod expected;
mod rest;
mod settings;
mod shares;
mod steps;
mod threads;
mod throttle;
mod tokens;
mod window;

use stagger_core::budget::{BudgetError, BudgetProblem};
use stagger_core::guard::{End, Permit};
use stagger_core::{FailureKind, Guard, Instant, Outcome};

use crate::laws::support::Start;

/// The instant for tests that do not depend on time.
const NOW: Instant = Instant::from_nanos(5_000_000_000);

/// Acquires permits until one is rejected and returns them. Their attempts stay in flight.
fn drain(budget: &dyn Guard, now: Instant) -> Vec<Permit> {
    let granted: Vec<_> =
        core::iter::from_fn(|| budget.reserve(FailureKind::Transient, &now)).take(1_000_000).collect();
    assert!(granted.len() < 1_000_000, "{budget:?} never rejects");
    granted
}

/// Runs a first attempt and records its outcome.
fn attempt(budget: &dyn Guard, outcome: Outcome, now: Instant) {
    let permit = budget.start(&now);
    budget.settle(permit, End::Made(&outcome), &now);
}

fn problems<T: core::fmt::Debug>(built: Result<T, BudgetError>) -> Vec<BudgetProblem> {
    built.map_or_else(|error| error.problems().collect(), |built| panic!("{built:?} should be invalid"))
}
