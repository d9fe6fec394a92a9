use core::time::Duration;

/// How a queue stands, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSnapshot {
    /// How many items are pending.
    pub pending: usize,
    /// For how long the first of them has been due and not been asked for; zero if none is due.
    pub overdue: Duration,
    /// How many items were refused, ever, because as many were pending as may be.
    pub refused: u64,
}
