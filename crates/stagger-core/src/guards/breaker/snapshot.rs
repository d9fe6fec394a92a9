use crate::guards::guard::Enforcement;
use crate::numbers::instant::Instant;
use crate::numbers::message::words;

words! {
    /// The state of a breaker.
    pub enum BreakerState {
        /// Calls are admitted and counted.
        Closed = "closed",
        /// Calls are rejected until the open time is over.
        Open = "open",
        /// A few probes are admitted, and all other calls are rejected.
        HalfOpen = "half_open",
        /// Calls are rejected until another command.
        ForcedOpen = "forced_open",
        /// Calls are admitted and not counted, until another command: the breaker is off.
        ForcedClosed = "forced_closed",
    }
    /// All values.
    pub const ALL;
    /// Returns the state as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// What caused the last change of state.
    pub enum TransitionCause {
        /// A command, or the breaker is new.
        Command = "command",
        /// Failures in a row tripped it.
        Consecutive = "consecutive",
        /// The ratio of failures tripped it.
        FailureRatio = "failure_ratio",
        /// The ratio of slow calls tripped it.
        SlowRatio = "slow_ratio",
        /// The open time was over.
        OpenTime = "open_time",
        /// The probes found the server healthy, or failed.
        Probes = "probes",
        /// A probe did not return within the longest wait.
        ProbeWait = "probe_wait",
        /// Half of what a rule asks for tripped it: see [`Evidence::Half`].
        Advised = "advised",
    }
    const ALL;
    /// Returns the cause as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// How much a breaker must have seen itself before a rule trips it.
    #[derive(Default)]
    pub enum Evidence {
        /// What its rules ask for. The default.
        #[default]
        Full = "full",
        /// Half of that, rounded up: half of the failures in a row, and half of the calls that a window must hold. Ratios stay as they are, so
        /// that a breaker whose own calls succeed does not open.
        Half = "half",
    }
    const ALL;
    /// Returns the value as one lower-case word, for metrics and logs.
    pub const fn name;
}

impl Evidence {
    /// Returns how much of `needed` there must be.
    pub(super) const fn of(self, needed: u32) -> u32 {
        match self {
            Self::Full => needed,
            Self::Half => needed.div_ceil(2),
        }
    }

    pub(super) fn from_code(code: u64) -> Self {
        Self::ALL.iter().copied().find(|&evidence| evidence as u64 == code).unwrap_or_default()
    }
}

impl TransitionCause {
    pub(super) fn of(code: u64) -> Self {
        Self::ALL.iter().copied().find(|&cause| cause as u64 == code).unwrap_or(Self::Command)
    }
}

/// A breaker at one moment, for metrics and events. A number that has no meaning in a state is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// The state. The next call notices that an open time is over: until then the state is `Open`.
    pub state: BreakerState,
    /// What caused the state.
    pub cause: TransitionCause,
    /// Whether rejections are enforced.
    pub enforcement: Enforcement,
    /// How much the breaker must have seen itself before a rule trips it.
    pub evidence: Evidence,
    /// How many changes of state there have been. Polling it misses none.
    pub transitions: u64,
    /// When the last change was; `None` for a new breaker.
    pub since: Option<Instant>,
    /// How many times it has opened since it was last healthy: the number of the open time in its policy's schedule.
    pub openings: u32,
    /// Failures in a row, while it is closed and has that rule; otherwise those that tripped it.
    pub consecutive: u64,
    /// Calls in the window while it is closed, results of probes while it is half-open, and the calls counted when it
    /// opened while it is open. Without a window, calls are not counted.
    pub calls: u64,
    /// How many of these calls failed.
    pub failures: u64,
    /// How many of these calls were slow; a slow probe counts as failed.
    pub slow: u64,
    /// Probes in flight.
    pub probes: u64,
    /// When an open breaker admits the next probe.
    pub next_probe: Option<Instant>,
    /// How many calls it has rejected since it was created.
    pub rejections: u64,
    /// How many calls it would have rejected while its rejections were only observed.
    pub would_have_rejected: u64,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_cause_round_trips_through_its_number_and_has_a_name() {
        let all = TransitionCause::ALL;
        for &cause in all {
            assert_eq!(TransitionCause::of(cause as u64), cause);
        }
        assert_eq!(all.iter().map(|cause| cause.name()).collect::<HashSet<_>>().len(), all.len());
    }

    /// Metrics and logs are searched for these words.
    #[test]
    fn names_are_frozen_words() {
        let names = BreakerState::ALL.iter().map(|state| state.name());
        assert!(names.eq(["closed", "open", "half_open", "forced_open", "forced_closed"]));
    }
}
