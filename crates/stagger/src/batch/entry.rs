use core::error::Error;
use core::fmt;

use super::PartialResponse;
use crate::{Outcome, StopReason};

/// An item that is still to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<T, E> {
    /// What the service calls it. No two items of a batch share one.
    pub id: String,
    /// The item.
    pub item: T,
    /// How often it was tried, deliveries before this batch included.
    pub attempts: u32,
    /// The error that it failed with last, if it did.
    pub error: Option<E>,
    /// What it was said to have come to in this round; success, unless something is said.
    pub(super) outcome: Outcome,
}

/// An item that never worked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failed<T, E> {
    /// What the service calls it.
    pub id: String,
    /// The item.
    pub item: T,
    /// How often it was tried, deliveries before this batch included.
    pub attempts: u32,
    /// The error that it failed with last; `None` if it was never tried, or not to its end.
    pub error: Option<E>,
    /// Why it was not tried again.
    pub stop: StopReason,
}

impl<T, E> Entry<T, E> {
    pub(super) fn failed(self, stop: StopReason) -> Failed<T, E> {
        let Self { id, item, attempts, error, outcome: _ } = self;
        Failed { id, item, attempts, error, stop }
    }
}

/// What came of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchResult<T, E> {
    /// How many items worked.
    pub succeeded: usize,
    /// How many were put aside as dead letters.
    pub dead_lettered: usize,
    /// The items that never worked, in the order in which they were given up.
    pub failed: Vec<Failed<T, E>>,
}

impl<T, E> BatchResult<T, E> {
    /// The answer to a service that delivers the failed items again: see [`PartialResponse`].
    #[must_use]
    pub fn response(&self) -> PartialResponse<'_, T, E> {
        PartialResponse(&self.failed)
    }
}

/// No item of this round has this id. A service that speaks of items that it was not sent has misunderstood the batch;
/// to take the others for done would lose them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownItem(pub String);

impl fmt::Display for UnknownItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no item of this round has the id {:?}", self.0)
    }
}

impl Error for UnknownItem {}
