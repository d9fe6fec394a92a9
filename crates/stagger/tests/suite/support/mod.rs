//! Guards, timers and errors shared by the tests.

mod counting_clock;
mod early_timer;
mod fail;
mod panicking_timer;
mod pending_timer;
mod recording_breaker;
mod recording_budget;
mod uniform;

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

pub(crate) use counting_clock::CountingClock;
pub(crate) use early_timer::EarlyTimer;
pub(crate) use fail::Fail;
pub(crate) use panicking_timer::PanickingTimer;
pub(crate) use pending_timer::PendingTimer;
pub(crate) use recording_breaker::RecordingBreaker;
pub(crate) use recording_budget::RecordingBudget;
use stagger::{Policy, Retrier};
pub(crate) use uniform::assert_uniform;

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

/// Polls a future up to `times` times and returns the last result.
pub(crate) fn poll_times<F: Future + ?Sized>(future: Pin<&mut F>, times: u32) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = future;
    for _ in 1..times {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(&mut cx) {
            return ready;
        }
    }
    future.poll(&mut cx)
}
