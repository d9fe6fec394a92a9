//! The items of a batch.

use core::error::Error;
use core::fmt;

use stagger_core::machine::RetryState;
use stagger_core::{Instant, Outcome, Seed, StopReason};

/// An item that has not succeeded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<T, E> {
    /// Id of the item, as the service knows it. Unique within the batch.
    pub id: String,
    /// The item.
    pub item: T,
    /// Number of attempts, including deliveries before this batch.
    pub attempts: u32,
    /// The error of its latest failed attempt, if there was one.
    pub error: Option<E>,
    /// Outcome in the current attempt; success unless a failure is reported.
    pub(super) outcome: Outcome,
    /// Its place among the items that were passed.
    pub(super) position: usize,
    pub(super) origin: Origin,
    /// Start of its first attempt, here or before this batch, if it is known.
    pub(super) start: Option<Instant>,
    /// Zero unless it had one before this batch.
    pub(super) seed: Seed,
    /// Whether it was part of an attempt of this batch.
    pub(super) was_attempted: bool,
}

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is new to this process.
    New,
    /// It is a retry of a queue.
    Retry,
}

/// What a queue needs to continue with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// Outcome of its last attempt in the batch, if there was one.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) start: Option<Instant>,
    /// Zero if it had none.
    pub(crate) seed: Seed,
}

impl History {
    /// Returns the state of an item after this number of attempts.
    pub(crate) const fn state(&self, attempts: u32) -> RetryState {
        let state = match self.start {
            Some(start) => RetryState::started(start),
            None => RetryState::new(),
        };
        state.with_attempts(attempts)
    }
}

/// An item that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed<T, E> {
    /// Id of the item, as the service knows it.
    pub id: String,
    /// The item.
    pub item: T,
    /// Number of attempts, including deliveries before this batch.
    pub attempts: u32,
    /// The error of its latest failed attempt; `None` if it was never attempted, or no attempt completed.
    pub error: Option<E>,
    /// The reason why it was not attempted again.
    pub stop: StopReason,
    pub(crate) history: History,
}

impl<T, E> Entry<T, E> {
    /// Returns what a queue needs to continue with this item. The outcome of an attempt that was not completed counts
    /// as transient.
    pub(super) fn history(&self) -> History {
        let outcome = if self.outcome == Outcome::Success { Outcome::TRANSIENT } else { self.outcome };
        History { outcome: self.was_attempted.then_some(outcome), start: self.start, seed: self.seed }
    }

    pub(super) fn failed(self, stop: StopReason) -> Failed<T, E> {
        let history = self.history();
        let Self { id, item, attempts, error, .. } = self;
        Failed { id, item, attempts, error, stop, history }
    }
}

/// The error of an id that is not in the current attempt. A service that reports items it was not sent has
/// misunderstood the batch; treating the other items as succeeded would lose them.
///
/// Complete: the unknown id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownItem(pub String);

impl fmt::Display for UnknownItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown item id {:?}; report only ids of `entries()`, and only during an attempt", self.0)
    }
}

impl Error for UnknownItem {}
