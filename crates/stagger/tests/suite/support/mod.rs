//! Guards, timers and errors shared by the tests.

mod clocks;
mod fail;
mod guards;

use core::time::Duration;
use std::sync::Arc;

pub(crate) use clocks::{CountingClock, EarlyTimer};
pub(crate) use fail::Fail;
pub(crate) use guards::{RecordingBreaker, RecordingBudget};
use stagger::{Policy, Retrier};
pub(crate) use stagger_kit::{PanickingTimer, PendingTimer, assert_uniform, poll_times};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Creates a retrier with these guards.
pub(crate) fn guarded(policy: Policy, budget: &Arc<RecordingBudget>, breaker: &Arc<RecordingBreaker>) -> Retrier {
    Retrier::new(policy).shared_budget(budget.clone()).shared_breaker(breaker.clone())
}
