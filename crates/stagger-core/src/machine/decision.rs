use core::fmt;
use core::time::Duration;

use crate::guards::guard::{MAX_GUARDS, Permits};
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

/// Why there was no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The failure was permanent.
    Permanent,
    /// The attempt may have been carried out and must not be carried out twice, or cannot be made again.
    UnsafeToRetry,
    /// All `max_attempts` attempts were made, of which the loss of a connection may count as the first.
    Attempts,
    /// The next attempt would have started after the policy's `max_elapsed`.
    Elapsed,
    /// The next attempt would have started at or after the caller's deadline.
    Deadline,
    /// The server's hint was not to retry, or was longer than `max_hint`.
    Hint,
    /// The client's own [guard](crate::guard::Guard) of this name did not let the attempt start.
    Guard(&'static str),
    /// An outer layer is already retrying.
    Nested,
    /// The caller cancelled.
    Cancelled,
    /// The schedule has no further delay.
    Exhausted,
    /// A blocking call would have had to wait, and as many threads as its retrier allows were asleep.
    Threads,
}

impl StopReason {
    /// The client's own retry budget rejected the retry.
    pub const BUDGET: Self = Self::Guard("budget");
    /// The client's own circuit breaker is open.
    pub const BREAKER: Self = Self::Guard("breaker");
    /// The server asked all calls to wait, and the client's own quiet period did not let this one wait so long.
    pub const QUIET: Self = Self::Guard("quiet");
    /// The server refuses part of the calls, and the client's own pacer did not let this one wait for its turn.
    pub const PACER: Self = Self::Guard("pacer");
    /// The client's own operator control limited or stopped its retries.
    pub const CONTROL: Self = Self::Guard("control");
    /// The call has more guards than [`MAX_GUARDS`](crate::guard::MAX_GUARDS), and makes no attempt.
    pub const TOO_MANY_GUARDS: Self = Self::Guard("guards");
    /// Every reason, of guards those of this library.
    pub const ALL: &'static [Self] = &[
        Self::Permanent,
        Self::UnsafeToRetry,
        Self::Attempts,
        Self::Elapsed,
        Self::Deadline,
        Self::Hint,
        Self::BUDGET,
        Self::BREAKER,
        Self::Nested,
        Self::Cancelled,
        Self::Exhausted,
        Self::Threads,
        Self::QUIET,
        Self::PACER,
        Self::CONTROL,
    ];

    /// Returns the reason as one lower-case word, for metrics and logs; of a guard its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::UnsafeToRetry => "unsafe_to_retry",
            Self::Attempts => "attempts",
            Self::Elapsed => "elapsed",
            Self::Deadline => "deadline",
            Self::Hint => "hint",
            Self::Guard(name) => name,
            Self::Nested => "nested",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "exhausted",
            Self::Threads => "threads",
        }
    }
}

/// Writes a lower-case fragment: "the deadline left no room for another attempt".
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::Permanent => "the failure is permanent",
            Self::UnsafeToRetry => "it may have been carried out, or cannot be made again",
            Self::Attempts => "every attempt was used",
            Self::Elapsed => "max_elapsed left no room for another attempt",
            Self::Deadline => "the deadline left no room for another attempt",
            Self::Hint => "the server asked not to come back, or not soon enough",
            Self::BUDGET => "this client's own retry budget is used up",
            Self::BREAKER => "this client's own circuit breaker is open",
            Self::QUIET => "the server asked all of this client's calls to wait longer than this one may",
            Self::PACER => "this client's own pacer has no turn for it in time",
            Self::CONTROL => "this client's own operator control granted no retry",
            Self::TOO_MANY_GUARDS => return write!(f, "it has more than {MAX_GUARDS} guards: give it fewer"),
            Self::Guard(name) => return write!(f, "this client's own guard `{name}` did not let it start"),
            Self::Nested => "an outer layer is already retrying",
            Self::Cancelled => "cancelled",
            Self::Exhausted => "the schedule has no further delay",
            Self::Threads => "as many threads as allowed are asleep",
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
            "control",
        ];
        assert_eq!(reasons, frozen);
    }

    #[test]
    fn every_stop_reason_has_a_sentence_of_its_own() {
        let sentences: HashSet<_> = StopReason::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), StopReason::ALL.len());
    }
}
