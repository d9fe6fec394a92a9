use core::fmt;
use core::time::Duration;

use crate::guards::guard::Permits;
use crate::numbers::message::words;

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

words! {
    /// What determined a delay.
    pub enum DelaySource {
        /// The policy's schedule.
        Schedule = "schedule",
        /// The server's hint, with what the policy's [`HintMode`](crate::HintMode) adds; or the policy's delay, if too
        /// many [exact hints](crate::ServerHint#exact-hints) in a row were shorter.
        Hint = "hint",
        /// The immediate repeat of an attempt that was certainly not processed.
        Transparent = "transparent",
        /// The policy's spread: the wait before the first action of an episode, or after the loss of an open
        /// connection, if it is longer than the schedule's delay.
        Spread = "spread",
        /// The delay of a [hedged](crate::hedge) copy, which runs beside the attempts before it.
        Hedge = "hedge",
    }
    /// Every source, in the order of declaration.
    pub const ALL;
    /// Returns the source as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// Why there was no further attempt.
    pub enum StopReason {
        /// The failure was permanent.
        Permanent = "permanent",
        /// The attempt may have been carried out and must not be carried out twice, or cannot be made again.
        UnsafeToRetry = "unsafe_to_retry",
        /// All `max_attempts` attempts were made, of which the loss of a connection may count as the first.
        Attempts = "attempts",
        /// The next attempt would have started after the policy's `max_elapsed`.
        Elapsed = "elapsed",
        /// The next attempt would have started at or after the caller's deadline.
        Deadline = "deadline",
        /// The server's hint was not to retry, or was longer than `max_hint`.
        Hint = "hint",
        /// The client's own retry budget rejected the retry.
        Budget = "budget",
        /// The client's own circuit breaker is open.
        Breaker = "breaker",
        /// An outer layer is already retrying.
        Nested = "nested",
        /// The caller cancelled.
        Cancelled = "cancelled",
        /// The schedule has no further delay.
        Exhausted = "exhausted",
        /// A blocking call would have had to wait, and as many threads as its retrier allows were asleep.
        Threads = "threads",
        /// The server asked all calls to wait, and the client's own quiet period did not let this one wait so long.
        Quiet = "quiet",
        /// The server refuses part of the calls, and the client's own pacer did not let this one wait for its turn.
        Pacer = "pacer",
    }
    /// Every reason, in the order of declaration.
    pub const ALL;
    /// Returns the reason as one lower-case word, for metrics and logs.
    pub const fn name;
}

/// Writes a lower-case fragment: "the deadline left no room for another attempt".
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permanent => "the failure is permanent",
            Self::UnsafeToRetry => "it may have been carried out, or cannot be made again",
            Self::Attempts => "every attempt was used",
            Self::Elapsed => "max_elapsed left no room for another attempt",
            Self::Deadline => "the deadline left no room for another attempt",
            Self::Hint => "the server asked not to come back, or not soon enough",
            Self::Budget => "this client's own retry budget is used up",
            Self::Breaker => "this client's own circuit breaker is open",
            Self::Nested => "an outer layer is already retrying",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "the schedule has no further delay",
            Self::Threads => "as many threads as allowed are asleep",
            Self::Quiet => "the server asked all of this client's calls to wait longer than this one may",
            Self::Pacer => "this client's own pacer has no turn for it in time",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    /// Metrics and logs are searched for these words.
    #[test]
    fn all_lists_every_variant_in_order_and_names_are_frozen() {
        let sources: Vec<_> = DelaySource::ALL.iter().map(|source| source.name()).collect();
        assert_eq!(sources, ["schedule", "hint", "transparent", "spread", "hedge"]);
        let reasons: Vec<_> = StopReason::ALL.iter().map(|reason| reason.name()).collect();
        let frozen = [
            "permanent",
            "unsafe_to_retry",
            "attempts",
            "elapsed",
            "deadline",
            "hint",
            "budget",
            "breaker",
            "nested",
            "cancelled",
            "exhausted",
            "threads",
            "quiet",
            "pacer",
        ];
        assert_eq!(reasons, frozen);
    }

    #[test]
    fn every_stop_reason_has_a_sentence_of_its_own() {
        let sentences: HashSet<_> = StopReason::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), StopReason::ALL.len());
    }
}
