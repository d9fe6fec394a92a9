use core::fmt;
use core::time::Duration;

use crate::guard::Permits;
use crate::hint::ServerHint;

/// What came of an attempt, as far as retrying is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It worked.
    Success,
    /// It failed, and another attempt may work.
    Failed {
        /// What kind of failure it was.
        kind: FailureKind,
        /// What the server asked for, if it did.
        hint: Option<ServerHint>,
    },
    /// It failed, and it would fail again: the server answered, and the answer is no.
    Permanent,
    /// It failed in a way that may pass, but something of it may have been carried out, and it must not be done twice: a
    /// payment whose answer was lost. Or it cannot be made again: a request whose body was a stream. The guards count it
    /// like the failure that it is.
    UnsafeToRetry(FailureKind),
    /// It was certainly not processed: a refused stream, a connection that the server closed before reading the
    /// request, a pooled connection found dead. It is repeated at once, once per call, without counting.
    ///
    /// A refused *connection* is not this case: it is transient and waits its turn, or the first thing that a dead
    /// server meets is a second wave.
    NotProcessed,
    /// It was cancelled by the caller. Nobody is blamed.
    Cancelled,
}

impl Outcome {
    /// A transient failure without a hint.
    pub const TRANSIENT: Self = Self::Failed { kind: FailureKind::Transient, hint: None };

    /// A failure because the server had too much to do, and what it asked for.
    #[must_use]
    pub const fn throttled(hint: Option<ServerHint>) -> Self {
        Self::Failed { kind: FailureKind::Throttled, hint }
    }

    /// What it says about the health of the server.
    ///
    /// | outcome | verdict |
    /// |---|---|
    /// | `Success`, `Permanent` (the server answered) | `Healthy` |
    /// | `Failed` and `UnsafeToRetry` with `Transient` or `Throttled` | `Ailing` |
    /// | `Failed` and `UnsafeToRetry` with `LocalExhaustion`, `NotProcessed`, `Cancelled` | `Unknown` |
    #[inline]
    #[must_use]
    pub const fn verdict(&self) -> ServerHealth {
        match self {
            Self::Success | Self::Permanent => ServerHealth::Healthy,
            Self::Failed { kind, .. } | Self::UnsafeToRetry(kind) => match kind {
                FailureKind::Transient | FailureKind::Throttled => ServerHealth::Ailing,
                FailureKind::LocalExhaustion => ServerHealth::Unknown,
            },
            Self::NotProcessed | Self::Cancelled => ServerHealth::Unknown,
        }
    }
}

/// What an outcome says about the health of the server; guards count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerHealth {
    /// The server answered.
    Healthy,
    /// The server did not answer, or said that it is overloaded.
    Ailing,
    /// Nothing can be concluded.
    Unknown,
}

/// What kind of failure may pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// It may work next time: connection reset, time-out, 503.
    #[default]
    Transient,
    /// The server has too much to do: 429, `ThrottlingException`. Waits from `throttled_base` on.
    Throttled,
    /// Our own exhaustion: file descriptors, ports, buffers, the connection pool. Never held against the server.
    /// Waits from `local_base` on.
    LocalExhaustion,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Decision {
    /// It worked; nothing is left to do.
    Done,
    /// Wait, then make another attempt.
    Retry {
        /// How long to wait.
        after: Duration,
        /// Where the delay comes from.
        source: DelaySource,
        /// What the budget lent for it; hand it to [`RetryMachine::begin`](crate::machine::RetryMachine::begin), or give it back.
        permit: Permits,
    },
    /// No further attempt.
    Stop(StopReason),
}

/// Where a delay comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DelaySource {
    /// The policy's schedule.
    Schedule,
    /// The server's hint, with what the policy's [`HintMode`](crate::HintMode) adds.
    Hint,
    /// The immediate repeat of an attempt that was certainly not processed.
    Transparent,
    /// The policy's spread: the wait before the first action of an episode.
    Spread,
}

impl DelaySource {
    /// It as one lower-case word, for metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Hint => "hint",
            Self::Transparent => "transparent",
            Self::Spread => "spread",
        }
    }
}

/// Why there was no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The failure was permanent.
    Permanent,
    /// What failed may have been carried out and must not be done twice, or cannot be made again.
    UnsafeToRetry,
    /// `max_attempts` were made.
    Attempts,
    /// The next attempt would have started after `max_elapsed` or the deadline.
    Elapsed,
    /// The server said never, or longer than `max_hint`.
    Hint,
    /// Our own retry budget refused to pay.
    Budget,
    /// Our own circuit breaker is open.
    Breaker,
    /// An outer layer is already retrying.
    Nested,
    /// The caller cancelled.
    Cancelled,
    /// The schedule has no further delay.
    Exhausted,
}

impl StopReason {
    /// The reason as one lower-case word, for metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::UnsafeToRetry => "unsafe_to_retry",
            Self::Attempts => "attempts",
            Self::Elapsed => "elapsed",
            Self::Hint => "hint",
            Self::Budget => "budget",
            Self::Breaker => "breaker",
            Self::Nested => "nested",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
        }
    }
}

/// A lower-case fragment: "the time limit left no room for another attempt".
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permanent => "the failure is permanent",
            Self::UnsafeToRetry => "it may have been carried out, or cannot be made again",
            Self::Attempts => "every attempt was used",
            Self::Elapsed => "the time limit left no room for another attempt",
            Self::Hint => "the server asked not to come back, or not soon enough",
            Self::Budget => "this client's own retry budget is used up",
            Self::Breaker => "this client's own circuit breaker is open",
            Self::Nested => "an outer layer is already retrying",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "the schedule has no further delay",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::string::ToString;

    use super::*;

    /// Metrics and logs are searched for these words.
    #[test]
    fn names_are_frozen_words() {
        let sources = [DelaySource::Schedule, DelaySource::Hint, DelaySource::Transparent, DelaySource::Spread]
            .map(DelaySource::name);
        assert_eq!(sources, ["schedule", "hint", "transparent", "spread"]);
        let stops = [
            (StopReason::Permanent, "permanent"),
            (StopReason::UnsafeToRetry, "unsafe_to_retry"),
            (StopReason::Attempts, "attempts"),
            (StopReason::Elapsed, "elapsed"),
            (StopReason::Hint, "hint"),
            (StopReason::Budget, "budget"),
            (StopReason::Breaker, "breaker"),
            (StopReason::Nested, "nested"),
            (StopReason::Cancelled, "cancelled"),
            (StopReason::Exhausted, "exhausted"),
        ];
        for (stop, name) in stops {
            assert_eq!(stop.name(), name);
        }
        assert_eq!(stops.iter().map(|(stop, _)| stop.to_string()).collect::<HashSet<_>>().len(), stops.len());
    }
}
