use crate::Instant;

/// One tick of a ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Its number, from 1.
    pub number: u64,
    /// When it was given, on the clock of the ticker's timer.
    pub at: Instant,
    /// How many ticks of an [`interval`](crate::reconnect::interval) were left out before it, because nobody asked for them in
    /// time. Always 0 for a ticker that follows a schedule, which waits for whoever asks.
    pub missed: u64,
}
