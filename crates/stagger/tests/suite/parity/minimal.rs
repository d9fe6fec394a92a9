//! Calls that bring nothing along but a rule and a seed.

use core::cell::Cell;
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Instant, time::Clock as _};

use super::Case;
use super::drivers::World as _;
use super::trace::{End, Trace};
use crate::suite::support::Fail;

/// What can be told of such a call: its value, if it gave one, its calls, and when it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    value: Option<u32>,
    calls: usize,
    ended: Duration,
}

impl Outcome {
    pub(crate) fn of(trace: &Trace) -> Self {
        let value = match trace.end {
            Some(End::Value(value)) => Some(value),
            _ => None,
        };
        let ended = trace.decisions.last().map_or(Duration::ZERO, |decided| decided.elapsed);
        Self { value, calls: trace.calls, ended }
    }

    fn new(value: Option<u32>, calls: usize, clock: &VirtualClock) -> Self {
        Self { value, calls, ended: clock.now().saturating_since(Instant::ZERO) }
    }
}

pub(crate) fn blocking(case: &Case<'_>) -> Outcome {
    let (clock, mut calls) = (VirtualClock::new(), 0);
    let result = stagger::blocking::retry(case.policy, || {
        let play = case.script.play(calls);
        calls += 1;
        clock.advance(play.takes);
        play.plain()
    })
    .timer(&clock)
    .seed(case.seed)
    .classify(Fail::outcome)
    .run();
    Outcome::new(result.ok(), calls, &clock)
}

pub(crate) async fn retrying(case: &Case<'_>) -> Outcome {
    let (clock, calls) = (VirtualClock::new(), Cell::new(0));
    let result = stagger::retry_with_timer(case.policy, &clock, async || {
        let play = case.script.play(calls.replace(calls.get() + 1));
        clock.pass(play.takes).await;
        play.plain()
    })
    .seed(case.seed)
    .classify(Fail::outcome)
    .await;
    Outcome::new(result.ok(), calls.get(), &clock)
}
