use core::fmt;
use core::time::Duration;

use crate::guard::Permits;
use crate::hint::ServerHint;

/// The outcome of an attempt, as far as retrying is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The attempt succeeded.
    Success,
    /// The attempt failed, and another one may succeed.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
        /// The server's hint, if it sent one.
        hint: Option<ServerHint>,
    },
    /// The attempt failed, and a retry would fail again: the server answered and rejected the request.
    Permanent,
    /// The attempt failed in a way that may be temporary, but it must not be retried: it may have been carried out, and
    /// must not be carried out twice (a payment whose response was lost), or it cannot be made again (a request whose
    /// body was a stream). The guards count it as the failure that it is.
    UnsafeToRetry(FailureKind),
    /// The request was certainly not processed: a refused stream, a connection that the server closed before reading
    /// the request, a dead pooled connection. The attempt is repeated at once, once per call, and the repeat is not
    /// counted.
    ///
    /// A refused *connection* is different: it is transient and waits for its delay. Otherwise the first thing that a
    /// dead server meets is a second wave.
    NotProcessed,
    /// The caller cancelled the attempt. Guards count it neither as success nor as failure.
    Cancelled,
}

impl Outcome {
    /// A transient failure without a hint.
    pub const TRANSIENT: Self = Self::Failed { kind: FailureKind::Transient, hint: None };

    /// Creates a failure of an overloaded server, with its hint.
    #[must_use]
    pub const fn throttled(hint: Option<ServerHint>) -> Self {
        Self::Failed { kind: FailureKind::Throttled, hint }
    }

    /// Returns what the outcome says about the health of the server.
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

/// What an outcome says about the health of the server. Guards count by it.
///
/// Complete: there is no fourth conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerHealth {
    /// The server answered.
    Healthy,
    /// The server did not answer, or reported that it is overloaded.
    Ailing,
    /// Nothing can be concluded.
    Unknown,
}

/// The kind of a failure that may be temporary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The next attempt may succeed: connection reset, timeout, 503.
    #[default]
    Transient,
    /// The server is overloaded or limits the client's rate: 429, `ThrottlingException`. The delay starts at
    /// `throttled_base`.
    Throttled,
    /// The client has exhausted a resource of its own: file descriptors, ports, buffers, the connection pool. It is
    /// never counted against the server. The delay starts at `local_base`.
    LocalExhaustion,
}

/// What to do after an attempt.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Decision {
    /// The attempt succeeded.
    Done,
    /// Wait, then make another attempt.
    Retry {
        /// The delay before the next attempt.
        after: Duration,
        /// What determined the delay.
        source: DelaySource,
        /// The permit for the next attempt. Pass it to [`RetryMachine::begin`](crate::machine::RetryMachine::begin), or
        /// release it.
        permit: Permits,
    },
    /// Make no further attempt.
    Stop(StopReason),
}

/// What determined a delay.
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
    /// Every source, in the order of declaration.
    pub const ALL: &'static [Self] = &[Self::Schedule, Self::Hint, Self::Transparent, Self::Spread];

    /// Returns the source as one lower-case word, for metrics and logs.
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
    /// The attempt may have been carried out and must not be carried out twice, or cannot be made again.
    UnsafeToRetry,
    /// All `max_attempts` attempts were made.
    Attempts,
    /// The next attempt would have started after `max_elapsed` or the deadline.
    Elapsed,
    /// The server's hint was not to retry, or was longer than `max_hint`.
    Hint,
    /// The client's own retry budget rejected the retry.
    Budget,
    /// The client's own circuit breaker is open.
    Breaker,
    /// An outer layer is already retrying.
    Nested,
    /// The caller cancelled.
    Cancelled,
    /// The schedule has no further delay.
    Exhausted,
}

impl StopReason {
    /// Every reason, in the order of declaration.
    pub const ALL: &'static [Self] = &[
        Self::Permanent,
        Self::UnsafeToRetry,
        Self::Attempts,
        Self::Elapsed,
        Self::Hint,
        Self::Budget,
        Self::Breaker,
        Self::Nested,
        Self::Cancelled,
        Self::Exhausted,
    ];

    /// Returns the reason as one lower-case word, for metrics and logs.
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

/// Writes a lower-case fragment: "the time limit left no room for another attempt".
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

    /// Metrics and logs are searched for these words. The matches are exhaustive: a variant that is added to an enum
    /// must be given a place in `ALL` here, or this does not compile.
    #[test]
    fn all_lists_every_variant_in_order_and_names_are_frozen() {
        let source = |source| match source {
            DelaySource::Schedule => (0, "schedule"),
            DelaySource::Hint => (1, "hint"),
            DelaySource::Transparent => (2, "transparent"),
            DelaySource::Spread => (3, "spread"),
        };
        assert_eq!(DelaySource::ALL.len(), source(DelaySource::Spread).0 + 1);
        for (at, &one) in DelaySource::ALL.iter().enumerate() {
            assert_eq!((at, one.name()), source(one));
        }
        let reason = |reason| match reason {
            StopReason::Permanent => (0, "permanent"),
            StopReason::UnsafeToRetry => (1, "unsafe_to_retry"),
            StopReason::Attempts => (2, "attempts"),
            StopReason::Elapsed => (3, "elapsed"),
            StopReason::Hint => (4, "hint"),
            StopReason::Budget => (5, "budget"),
            StopReason::Breaker => (6, "breaker"),
            StopReason::Nested => (7, "nested"),
            StopReason::Cancelled => (8, "cancelled"),
            StopReason::Exhausted => (9, "exhausted"),
        };
        assert_eq!(StopReason::ALL.len(), reason(StopReason::Exhausted).0 + 1);
        for (at, &one) in StopReason::ALL.iter().enumerate() {
            assert_eq!((at, one.name()), reason(one));
        }
    }

    #[test]
    fn every_stop_reason_has_a_sentence_of_its_own() {
        let sentences: HashSet<_> = StopReason::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), StopReason::ALL.len());
    }
}
