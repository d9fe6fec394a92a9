use core::time::Duration;

use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::words::words;

words! {
    /// What a quiet period does with calls.
    #[derive(Default)]
    pub enum QuietMode {
        /// A call waits for its turn, if that is within its own limits; otherwise it is rejected at once. The default.
        #[default]
        Wait = "wait",
        /// A call is rejected at once.
        FailFast = "fail_fast",
        /// No call is held; those that would have been are counted.
        Observe = "observe",
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
    /// How many calls would have waited or been rejected, with [`QuietMode::Observe`].
    pub would_have_held: u64,
}

/// What has happened since the quiet period was created.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) pauses: AtomicU64,
    pub(super) waited: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) would_have_held: AtomicU64,
}

impl Counters {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self {
                pauses: AtomicU64::new(0),
                waited: AtomicU64::new(0),
                rejected: AtomicU64::new(0),
                would_have_held: AtomicU64::new(0),
            }
        }
    }

    pub(super) fn snapshot(&self, state: QuietState, remaining: u64, interval: u64, waiting: u32) -> QuietSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QuietSnapshot {
            state,
            remaining: Duration::from_nanos(remaining),
            interval: Duration::from_nanos(interval),
            waiting,
            pauses: count(&self.pauses),
            waited: count(&self.waited),
            rejected: count(&self.rejected),
            would_have_held: count(&self.would_have_held),
        }
    }
}
