use core::fmt;
use core::time::Duration;

use super::calls::MAX_CALLS;
use super::packed_state::MAX_PROBES;
use crate::text::Compact;

/// Every problem in the settings of a circuit breaker, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreakerError {
    pub(super) problems: u16,
    /// The first ratio that is out of range.
    pub(super) ratio: crate::numbers::ratio::Ratio,
    pub(super) slow_after: Duration,
    pub(super) window: super::Window,
    pub(super) min_calls: u32,
    pub(super) probes: u32,
    pub(super) healthy_probes: u32,
}

/// One problem in the settings of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CircuitBreakerProblem {
    /// No rule is set, so nothing trips the breaker.
    NoRule,
    /// `consecutive` is 0, so the breaker would be open before any failure.
    NoFailure,
    /// A ratio is 0, or above 1.
    Ratio,
    /// The length from which a call is slow is 0, or longer than 24 h.
    SlowAfter,
    /// The window is empty, or larger than the breaker can count.
    Window,
    /// `min_calls` is 0, or larger than the window of calls, so the ratio would never trip the breaker.
    MinCalls,
    /// A window or `min_calls` is set, but no ratio.
    NothingToCount,
    /// The policy of the open time can draw 0, or has no delay at all.
    OpenTime,
    /// `probes` is outside `1..=10_000`, or `healthy_probes` is outside `1..=probes`.
    Probes,
    /// `probe_wait` is 0.
    ProbeWait,
}

use CircuitBreakerProblem::{
    MinCalls, NoFailure, NoRule, NothingToCount, OpenTime, ProbeWait, Probes, Ratio, SlowAfter, Window,
};

const ALL: [CircuitBreakerProblem; 10] =
    [NoRule, NoFailure, Ratio, SlowAfter, Window, MinCalls, NothingToCount, OpenTime, Probes, ProbeWait];

impl CircuitBreakerError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = CircuitBreakerProblem> + '_ {
        ALL.into_iter().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    fn sentence(&self, problem: CircuitBreakerProblem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match problem {
            NoRule => f.write_str("no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio"),
            NoFailure => f.write_str("consecutive is 0, so it would never close: use at least 1"),
            Ratio => write!(f, "ratio {} is 0 or above 100%: use more than 0 and at most 1", self.ratio),
            SlowAfter => write!(
                f,
                "slow calls after {} is outside the range: use more than 0s and at most 24h",
                Compact(self.slow_after)
            ),
            Window => {
                match self.window {
                    super::Window::Calls(calls) => write!(f, "the window of {calls} calls")?,
                    super::Window::Time(length) => write!(f, "the window of {}", Compact(length))?,
                }
                write!(f, " cannot be counted: use 1 to {MAX_CALLS} calls, or a time between 100ms and 24h")
            }
            MinCalls => write!(
                f,
                "min_calls {} is 0, or more than the window holds: use at least 1 and at most the window",
                self.min_calls
            ),
            NothingToCount => {
                f.write_str("window and min_calls are for ratios: drop them, or set failure_ratio or slow_ratio")
            }
            OpenTime => {
                f.write_str("the open time can be 0s: give its policy a delay, and a floor or another jitter than full")
            }
            Probes => write!(
                f,
                "probes {} with healthy_probes {} is outside the range: use 1 to {MAX_PROBES} probes, and 1 to all \
                 of them healthy",
                self.probes, self.healthy_probes
            ),
            ProbeWait => f.write_str("probe_wait is 0s, so no probe could return in time: raise it"),
        }
    }
}

impl fmt::Display for CircuitBreakerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems().enumerate() {
            if n > 0 {
                f.write_str("; ")?;
            }
            self.sentence(problem, f)?;
        }
        Ok(())
    }
}

impl core::error::Error for CircuitBreakerError {}
