use core::time::Duration;

use crate::numbers::message::words;

words! {
    /// The state of a pacer.
    pub enum PacerState {
        /// Every call starts, and nothing is counted.
        Passive = "passive",
        /// Every call starts, and what the server admits is counted for a second.
        Measuring = "measuring",
        /// Calls start at the rate.
        Paced = "paced",
        /// The server admitted nothing for a second: calls start at a rate of one per second, until one is admitted.
        Exhausted = "exhausted",
    }
    /// All values.
    pub const ALL;
    /// Returns the state as one lower-case word, for metrics and logs.
    pub const fn name;
}

/// A pacer at one moment, for metrics and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacerSnapshot {
    /// The state. The next call notices that the time of a state is over.
    pub state: PacerState,
    /// The time between two calls; zero if calls are not paced.
    pub interval: Duration,
    /// How many calls wait now.
    pub waiting: u32,
    /// How often the pacer has left the passive state.
    pub activations: u64,
    /// How often a refusal has cut the rate.
    pub cuts: u64,
    /// How many calls have waited.
    pub waited: u64,
    /// How many calls were rejected.
    pub rejected: u64,
    /// How many calls would have waited or been rejected, with [`LimiterMode::Observe`](crate::guard::LimiterMode::Observe).
    pub would_have_held: u64,
}
