//! All budgets, each with its actual and its expected snapshot.

use core::fmt::Debug;
use std::sync::Arc;

use stagger::budget::{
    Adaptive, Concurrent, Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window,
};
use stagger::{Guard, Instant, Ratio, Seed};

/// Attempts as counted by the operation. No call succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AttemptCounts {
    /// First attempts.
    pub(super) firsts: u64,
    /// All started attempts.
    pub(super) total: u64,
    /// Failures attributed to the server.
    pub(super) server_failures: u64,
}

impl AttemptCounts {
    /// Returns the number of started retries, which stay charged whatever their outcome.
    const fn retries(self) -> u64 {
        self.total - self.firsts
    }
}

/// A budget with its checks. The limits are generous: no budget rejects a retry here.
pub(super) struct BudgetCase {
    pub(super) name: &'static str,
    pub(super) budget: Arc<dyn Guard>,
    actual: Box<dyn Fn() -> Vec<u64> + Send + Sync>,
    expected: fn(AttemptCounts) -> Vec<u64>,
}

impl BudgetCase {
    fn new<B: Guard + 'static>(
        name: &'static str,
        budget: B,
        actual: fn(&B) -> Vec<u64>,
        expected: fn(AttemptCounts) -> Vec<u64>,
    ) -> Self {
        let budget = Arc::new(budget);
        let shared = Arc::clone(&budget);
        Self { name, budget: shared, actual: Box::new(move || actual(&budget)), expected }
    }

    /// Asserts that the budget is charged for the counted attempts only.
    pub(super) fn expect(&self, counts: AttemptCounts, what: impl Debug) {
        assert_eq!((self.actual)(), (self.expected)(counts), "{}, {what:?}, after {counts:?}", self.name);
    }
}

/// No bucket of a window has expired at the epoch.
const START: Instant = Instant::ZERO;

fn in_flight(concurrent: &Concurrent) -> Vec<u64> {
    let seen = concurrent.snapshot();
    vec![seen.firsts, seen.retries]
}

fn nothing_in_flight(_: AttemptCounts) -> Vec<u64> {
    vec![0, 0]
}

/// Constructors of all budgets.
pub(super) const ALL: [fn() -> BudgetCase; 8] = [
    || {
        BudgetCase::new(
            "tokens",
            Tokens::new(),
            |b| vec![b.snapshot().tokens],
            |counts| vec![500 - 5 * counts.retries()],
        )
    },
    || BudgetCase::new("window", Window::new(), |b| vec![b.snapshot(START).retries], |counts| vec![counts.retries()]),
    || {
        let actual = |b: &Lifetime| vec![b.snapshot().calls, b.snapshot().retries];
        BudgetCase::new("lifetime", Lifetime::new(), actual, |counts| vec![counts.firsts, counts.retries()])
    },
    || {
        let throttle = Throttle::new(100, Ratio::ONE).unwrap();
        let actual = |b: &Throttle| vec![b.snapshot().milli_tokens.into()];
        BudgetCase::new("throttle", throttle, actual, |counts| vec![100_000 - 1_000 * counts.server_failures])
    },
    || {
        let rate = SuccessRate::with(Ratio::percent(50), 64).unwrap();
        let actual = |b: &SuccessRate| vec![b.snapshot().succeeded.into()];
        BudgetCase::new("success rate", rate, actual, |counts| vec![64 - counts.server_failures])
    },
    || BudgetCase::new("concurrent", Concurrent::new(), in_flight, nothing_in_flight),
    || {
        let actual = |b: &Adaptive| vec![b.snapshot(START).requests, b.snapshot(START).accepts];
        BudgetCase::new("adaptive", Adaptive::new(Seed::new(1)), actual, |counts| vec![counts.server_failures, 0])
    },
    || {
        type Case = Controlled<Arc<Concurrent>, RetryControl>;
        let controlled = Controlled::new(Arc::new(Concurrent::new()), RetryControl::new());
        BudgetCase::new("under a control", controlled, |b: &Case| in_flight(b.guard()), nothing_in_flight)
    },
];
