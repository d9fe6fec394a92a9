//! The window over which a breaker computes its ratios.

use core::time::Duration;

use super::calls::CallWindow;
use super::time::TimeWindow;

/// The window over which a ratio is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// The last `n` calls. Range: `1..=1000`.
    ///
    /// Exact: the ratio is that of the last `n` results, in the order in which they were recorded, whatever the number
    /// of threads. It reads no clock; a result is one compare-and-swap on a word that all threads share. A client with
    /// few calls can trip over failures of yesterday; use a window of time there.
    Calls(u32),
    /// The last stretch of time, of this length, in ten buckets. The oldest tenth is dropped at once, so the window
    /// covers between nine tenths of the length and the whole. Range: 100 ms to 24 h.
    ///
    /// The clock is read for every result; a result is one compare-and-swap on a word that all threads share. A bucket
    /// counts up to 16,777,215 calls, and no more.
    Time(Duration),
}

/// The window of a breaker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is no heap to put it on, and one breaker serves many calls")]
pub(super) enum Record {
    /// No window: there is no ratio.
    Nothing,
    Calls(CallWindow),
    Time(TimeWindow),
}

impl Record {
    /// Returns an empty record of the same size.
    pub(super) fn fresh(&self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Calls(calls) => Self::Calls(calls.fresh()),
            Self::Time(time) => Self::Time(time.fresh()),
        }
    }

    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Counts a result of the closed state with this generation. Returns the sums, if they can trip a breaker.
    pub(super) fn count(&self, generation: u64, mark: Mark, now: impl FnOnce() -> u64) -> Option<Tally> {
        match self {
            Self::Nothing => None,
            Self::Calls(calls) => calls.count(generation, mark),
            Self::Time(time) => time.count(generation, mark, now()),
        }
    }

    /// Empties the window for a new closed state. Must be called by one thread at a time, before that state is visible.
    pub(super) fn begin(&self, generation: u64) {
        match self {
            Self::Nothing => {}
            Self::Calls(calls) => calls.begin(generation),
            Self::Time(time) => time.begin(),
        }
    }

    pub(super) fn tally(&self, generation: u64, now: impl FnOnce() -> u64) -> Tally {
        match self {
            Self::Nothing => Tally::default(),
            Self::Calls(calls) => calls.tally(generation),
            Self::Time(time) => time.tally(generation, now()),
        }
    }
}

/// The sums of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
}

/// How a window counts a call. A call can be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) failed: bool,
    pub(super) slow: bool,
}
