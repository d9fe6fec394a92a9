use core::fmt;
use core::time::Duration;

use crate::guards::guard::Permits;

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
    /// The delay of a [hedged](crate::hedge) copy, which runs beside the attempts before it.
    Hedge,
}

impl DelaySource {
    /// Every source, in the order of declaration.
    pub const ALL: &'static [Self] = &[Self::Schedule, Self::Hint, Self::Transparent, Self::Spread, Self::Hedge];

    /// Returns the source as one lower-case word, for metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Hint => "hint",
            Self::Transparent => "transparent",
            Self::Spread => "spread",
            Self::Hedge => "hedge",
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
            DelaySource::Hedge => (4, "hedge"),
        };
        assert_eq!(DelaySource::ALL.len(), source(DelaySource::Hedge).0 + 1);
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
