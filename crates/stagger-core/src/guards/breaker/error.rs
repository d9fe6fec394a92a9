use core::fmt;
use core::time::Duration;

use super::calls::MAX_CALLS;
use super::packed_state::MAX_PROBES;
use super::window::Window;
use crate::numbers::instant::nanos;
use crate::numbers::message::words;
use crate::numbers::message::{Message, Value, write_all};
use crate::numbers::ratio::Ratio;

/// Every problem in the settings of a circuit breaker, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreakerError {
    pub(super) problems: u16,
    /// The first ratio that is out of range.
    pub(super) ratio: Ratio,
    pub(super) slow_after: Duration,
    pub(super) window: Window,
    pub(super) min_calls: u32,
    pub(super) probes: u32,
    pub(super) healthy_probes: u32,
}

words! {
    /// One problem in the settings of a circuit breaker.
    #[repr(u8)]
    pub enum CircuitBreakerProblem {
        /// No rule is set, so nothing trips the breaker.
        NoRule = "no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio",
        /// `consecutive` is 0, so the breaker would be open before any failure.
        NoFailure = "consecutive is 0, so it would never close: use at least 1",
        /// A ratio is 0, or above 1.
        Ratio = "ratio {} is 0 or above 100%: use more than 0 and at most 1",
        /// The length from which a call is slow is 0, or longer than 24 h.
        SlowAfter = "slow calls after {} is outside the range: use more than 0s and at most 24h",
        /// The window is empty, or larger than the breaker can count.
        Window = "the window of {}{} cannot be counted: use 1 to {} calls, or a time between 100ms and 24h",
        /// `min_calls` is 0, or larger than the window of calls, so the ratio would never trip the breaker.
        MinCalls = "min_calls {} is 0, or more than the window holds: use at least 1 and at most the window",
        /// A window or `min_calls` is set, but no ratio.
        NothingToCount = "window and min_calls are for ratios: drop them, or set failure_ratio or slow_ratio",
        /// The policy of the open time can draw 0, or has no delay at all.
        OpenTime = "the open time can be 0s: give its policy a delay, and a floor or another jitter than full",
        /// `probes` is outside `1..=10_000`, or `healthy_probes` is outside `1..=probes`.
        Probes =
            "probes {} with healthy_probes {} is outside the range: use 1 to {} probes, and 1 to all of them healthy",
        /// `probe_wait` is 0.
        ProbeWait = "probe_wait is 0s, so no probe could return in time: raise it",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

impl CircuitBreakerError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = CircuitBreakerProblem> + '_ {
        CircuitBreakerProblem::ALL.iter().copied().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    fn message(&self, problem: CircuitBreakerProblem) -> Message<192> {
        let count = |n: u32| Value::Count(u64::from(n));
        let text = Message::new();
        let sentence = problem.sentence();
        match problem {
            CircuitBreakerProblem::Ratio => text.sentence(sentence, &[Value::Share(self.ratio)]),
            CircuitBreakerProblem::SlowAfter => text.sentence(sentence, &[Value::Length(nanos(self.slow_after))]),
            CircuitBreakerProblem::MinCalls => text.sentence(sentence, &[count(self.min_calls)]),
            CircuitBreakerProblem::Probes => {
                text.sentence(sentence, &[self.probes, self.healthy_probes, MAX_PROBES].map(count))
            }
            _ => {
                let (window, unit) = match self.window {
                    Window::Calls(calls) => (count(calls), " calls"),
                    Window::Time(length) => (Value::Length(nanos(length)), ""),
                };
                text.sentence(sentence, &[window, Value::Text(unit), count(MAX_CALLS)])
            }
        }
    }
}

impl fmt::Display for CircuitBreakerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.problems().map(|problem| self.message(problem)))
    }
}

impl core::error::Error for CircuitBreakerError {}
