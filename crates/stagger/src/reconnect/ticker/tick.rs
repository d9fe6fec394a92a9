use stagger_core::Instant;

/// One tick of a ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Number of the tick, from 1.
    pub number: u64,
    /// Instant at which the tick was yielded, on the clock of the ticker's timer.
    pub at: Instant,
    /// Ticks of an [`interval`](crate::reconnect::interval) that were skipped before this one, because they were not
    /// requested in time. Always 0 for a ticker that follows a policy, because its delays run from the request.
    pub missed: u64,
}
