//! Guards, timers and errors shared by the tests.

mod clocks;
mod fail;
mod guards;

use core::time::Duration;
use std::sync::Arc;

pub(crate) use clocks::{CountingClock, EarlyTimer};
pub(crate) use fail::Fail;
pub(crate) use guards::{Bulkhead, HoldsOnce, RecordingBreaker, RecordingBudget, Traced};
use stagger::{Policy, Retrier};
pub(crate) use stagger_kit::{PanickingTimer, PendingTimer, assert_uniform, poll_times};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Creates a retrier with these guards: the breaker is asked first.
pub(crate) fn guarded(policy: Policy, budget: &Arc<RecordingBudget>, breaker: &Arc<RecordingBreaker>) -> Retrier {
    Retrier::new(policy).shared_guard(breaker.clone()).shared_guard(budget.clone())
}
