use core::error::Error;
use core::fmt;

use stagger_core::{Outcome, StopReason};

use super::PartialResponse;

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
}

impl<T, E> Entry<T, E> {
    pub(super) fn failed(self, stop: StopReason) -> Failed<T, E> {
        let Self { id, item, attempts, error, outcome: _ } = self;
        Failed { id, item, attempts, error, stop }
    }
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchResult<T, E> {
    /// Number of items that succeeded.
    pub succeeded: usize,
    /// Number of items passed to the dead-letter function.
    pub dead_lettered: usize,
    /// The items that did not succeed, in the order in which they were given up.
    pub failed: Vec<Failed<T, E>>,
}

impl<T, E> BatchResult<T, E> {
    /// Returns the response for a service that redelivers the failed items: see [`PartialResponse`].
    #[must_use]
    pub fn response(&self) -> PartialResponse<'_, T, E> {
        PartialResponse(&self.failed)
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
