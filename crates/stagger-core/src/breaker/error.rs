use core::fmt;

use super::calls::MOST_CALLS;
use super::word::MOST_PROBES;

/// Everything that is wrong with a circuit breaker, with the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreakerError {
    pub(super) problems: u16,
}

/// One thing that is wrong with a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum CircuitBreakerProblem {
    /// Nothing can trip it.
    NoRule,
    /// It would trip before a failure: `consecutive` is 0.
    NoFailure,
    /// A ratio is 0, or above 1.
    Ratio,
    /// `slow_after` is 0, or longer than 24 h.
    SlowAfter,
    /// The window is empty, or larger than can be counted.
    Window,
    /// `min_calls` is 0, or more than the window of calls holds, so that it would never trip.
    MinCalls,
    /// A window or `min_calls` is set, but no ratio.
    NothingToCount,
    /// The policy of the open time can draw 0, or has no delay at all.
    OpenTime,
    /// There is no probe, there are more than 10,000, or fewer than have to be healthy, or none has to be.
    Probes,
    /// The longest wait for a probe is 0.
    ProbeWait,
}

use CircuitBreakerProblem::{
    MinCalls, NoFailure, NoRule, NothingToCount, OpenTime, ProbeWait, Probes, Ratio, SlowAfter, Window,
};

const ALL: [CircuitBreakerProblem; 10] =
    [NoRule, NoFailure, Ratio, SlowAfter, Window, MinCalls, NothingToCount, OpenTime, Probes, ProbeWait];

impl CircuitBreakerError {
    /// The problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = CircuitBreakerProblem> + '_ {
        ALL.into_iter().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }
}

impl fmt::Display for CircuitBreakerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems().enumerate() {
            if n > 0 {
                f.write_str("; ")?;
            }
            match problem {
                NoRule => f.write_str("nothing trips it: set consecutive, failure_ratio or slow_ratio")?,
                NoFailure => f.write_str("consecutive is 0, so it would never close: use at least 1")?,
                Ratio => f.write_str("a ratio is 0 or above 100%: use more than 0 and at most 1")?,
                SlowAfter => f.write_str("slow calls begin at 0 or above 24h: use more than 0 and at most 24h")?,
                Window => write!(
                    f,
                    "the window cannot be counted: use 1 to {MOST_CALLS} calls, or a time between 100ms and 24h"
                )?,
                MinCalls => {
                    f.write_str("min_calls is 0, or more than the window holds: use at least 1 and at most the window")?
                }
                NothingToCount => {
                    f.write_str("window and min_calls are for ratios: drop them, or set failure_ratio or slow_ratio")?
                }
                OpenTime => f.write_str(
                    "the open time can be 0: give its policy a delay, and a floor or another jitter than full",
                )?,
                Probes => write!(
                    f,
                    "the numbers of probes do not fit: use 1 to {MOST_PROBES}, of which 1 to all are to be healthy"
                )?,
                ProbeWait => f.write_str("probe_wait is 0, so that no probe could come back: raise it")?,
            }
        }
        Ok(())
    }
}

impl core::error::Error for CircuitBreakerError {}
