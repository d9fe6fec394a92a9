use core::time::Duration;

use crate::numbers::message::words;

words! {
    /// What begins a pause.
    #[derive(Default)]
    pub enum QuietTrigger {
        /// A hint of the server, or too many refusals without one. The default.
        #[default]
        HintsAndRefusals = "hints_and_refusals",
        /// A hint alone. Refusals without one still lengthen a pause that has begun, and slow down its return.
        Hints = "hints",
    }
    /// All values.
    pub const ALL;
    /// Returns the value as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// The state of a quiet period.
    pub enum QuietState {
        /// Every call starts.
        Open = "open",
        /// No call starts before the end of the pause.
        Quiet = "quiet",
        /// One call was sent as a probe, and no other starts before its outcome.
        Probing = "probing",
        /// Calls start one by one, at a rate that grows.
        Returning = "returning",
    }
    /// All values.
    pub const ALL;
    /// Returns the state as one lower-case word, for metrics and logs.
    pub const fn name;
}

/// A quiet period at one moment, for metrics and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuietSnapshot {
    /// The state. The next call notices that a pause is over: until then the state is `Quiet`.
    pub state: QuietState,
    /// How long the pause still lasts; zero unless it is quiet.
    pub remaining: Duration,
    /// The time between two calls of the paced return, as it was when the rate was learned or last cut.
    pub interval: Duration,
    /// How many calls wait now.
    pub waiting: u32,
    /// How many pauses have begun, one that was lengthened counted once.
    pub pauses: u64,
    /// How many calls have waited.
    pub waited: u64,
    /// How many calls were rejected.
    pub rejected: u64,
    /// How many calls would have waited or been rejected, with [`LimiterMode::Observe`](crate::guard::LimiterMode::Observe).
    pub would_have_held: u64,
}
