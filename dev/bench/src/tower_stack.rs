//! tower's retry as in its documentation: a custom policy with its backoff and budget.

use core::time::Duration;
use std::sync::Arc;

use tower::retry::Policy;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::util::rng::HasherRng;

/// Retries every error up to three times while the budget allows it.
#[derive(Debug, Clone)]
pub(crate) struct BackoffAndBudget {
    backoff: ExponentialBackoff,
    budget: Arc<TpsBudget>,
    retries: u32,
}

impl BackoffAndBudget {
    pub(crate) fn new(min: Duration, max: Duration, jitter: f64) -> Self {
        let mut maker = ExponentialBackoffMaker::new(min, max, jitter, HasherRng::new())
            // It rejects a minimum above the maximum, a maximum of zero and a jitter outside 0 to 100.
            .expect("valid constants");
        Self {
            backoff: maker.make_backoff(),
            // A reserve that no measurement exhausts: a rejection would be cheaper than a retry.
            budget: Arc::new(TpsBudget::new(Duration::from_secs(10), 1 << 30, 0.2)),
            retries: 3,
        }
    }

    /// Records the result of an attempt; returns the sleep before the next one, if there is one.
    pub(crate) fn record(&mut self, is_success: bool) -> Option<tokio::time::Sleep> {
        if is_success {
            self.budget.deposit();
            return None;
        }
        self.retries = self.retries.checked_sub(1)?;
        self.budget.withdraw().then(|| self.backoff.next_backoff())
    }
}

impl<T, E> Policy<(), T, E> for BackoffAndBudget {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _request: &mut (), result: &mut Result<T, E>) -> Option<Self::Future> {
        self.record(result.is_ok())
    }

    fn clone_request(&mut self, _request: &()) -> Option<()> {
        Some(())
    }
}
