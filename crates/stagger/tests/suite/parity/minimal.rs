//! Calls without a listener, limits or guards: only a rule and a seed are configured.

use core::cell::Cell;
use core::time::Duration;

use stagger::Instant;
use stagger::testing::VirtualClock;
use stagger::time::Clock as _;

use super::Case;
use super::drivers::Environment as _;
use super::script::{Completion, Trace};
use crate::suite::support::Fail;

/// The observable result of such a call: its value on success, the number of operation calls, and the time at its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    value: Option<u32>,
    calls: usize,
    ended_at: Duration,
}

impl Summary {
    pub(crate) fn from_trace(trace: &Trace) -> Self {
        let value = match trace.completion {
            Some(Completion::Value(value)) => Some(value),
            _ => None,
        };
        let ended_at = trace.decisions.last().map_or(Duration::ZERO, |event| event.elapsed);
        Self { value, calls: trace.calls, ended_at }
    }

    fn new(value: Option<u32>, calls: usize, clock: &VirtualClock) -> Self {
        Self { value, calls, ended_at: clock.now().saturating_since(Instant::ZERO) }
    }
}

pub(crate) fn blocking(case: &Case<'_>) -> Summary {
    let (clock, mut calls) = (VirtualClock::new(), 0);
    let result = stagger::blocking::retry(case.policy, || {
        let attempt = case.script.attempt(calls);
        calls += 1;
        clock.advance(attempt.duration);
        attempt.plain_result()
    })
    .timer(&clock)
    .seed(case.seed)
    .classify(Fail::outcome)
    .run();
    Summary::new(result.ok(), calls, &clock)
}

pub(crate) async fn retry(case: &Case<'_>) -> Summary {
    let (clock, calls) = (VirtualClock::new(), Cell::new(0));
    let result = stagger::retry_with_timer(case.policy, &clock, async || {
        let attempt = case.script.attempt(calls.replace(calls.get() + 1));
        clock.elapse(attempt.duration).await;
        attempt.plain_result()
    })
    .seed(case.seed)
    .classify(Fail::outcome)
    .await;
    Summary::new(result.ok(), calls.get(), &clock)
}
