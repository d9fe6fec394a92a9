use core::time::Duration;

/// The state of a queue, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSnapshot {
    /// Number of pending items.
    pub pending: usize,
    /// How long the first item has been due without being taken; zero if none is due.
    pub overdue: Duration,
    /// Number of items rejected since the queue was created, because it was at capacity.
    pub rejected: u64,
}
