//! The states of a quiet period: as metrics show them, and packed into one word.

use core::time::Duration;

use crate::numbers::message::words;

words! {
    /// What begins a pause.
    #[derive(Default)]
    pub enum QuietTrigger {
        /// A hint alone. The default. Refusals without one still lengthen a pause that has begun, and slow down its
        /// return.
        #[default]
        Hints = "hints",
        /// A hint, or too many refusals without one. Near the limit of a server, refusals are normal: a pause for them
        /// adds the work of all calls that waited, and may be followed by the next.
        HintsAndRefusals = "hints_and_refusals",
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
}

/// `mode: 2 bits, generation: 14, time: 48`. The time is in microseconds of the driver's clock, modulo 8.9 years,
/// because a clock may count from any epoch; it is read as the one nearest to the present. It is the end of the pause
/// while it is quiet, when the probe began while it probes, and since when the pace holds during the return.
///
/// Everything that decides whether a call may start is in this word, so it changes in one compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedState(pub(super) u64);

const MODE_BITS: u32 = 2;
const GENERATION_BITS: u32 = 14;
const TIME_SHIFT: u32 = MODE_BITS + GENERATION_BITS;
const LAST_GENERATION: u64 = (1 << GENERATION_BITS) - 1;
const LAST_TIME: u64 = u64::MAX >> TIME_SHIFT;

impl PackedState {
    pub(super) const FIRST: Self = Self::new(QuietState::Open, 1, 0);

    const fn new(mode: QuietState, generation: u64, micros: u64) -> Self {
        Self(mode as u64 | generation << MODE_BITS | micros << TIME_SHIFT)
    }

    #[inline]
    pub(super) const fn is_open(self) -> bool {
        self.0 & ((1 << MODE_BITS) - 1) == QuietState::Open as u64
    }

    pub(super) const fn mode(self) -> QuietState {
        match self.0 & ((1 << MODE_BITS) - 1) {
            0 => QuietState::Open,
            1 => QuietState::Quiet,
            2 => QuietState::Probing,
            _ => QuietState::Returning,
        }
    }

    /// Returns the generation, from 1. It is never 0, which is that of no permit.
    #[inline]
    pub(super) const fn generation(self) -> u64 {
        self.0 >> MODE_BITS & LAST_GENERATION
    }

    /// Returns the time of the state, in nanoseconds, if it is `at` now.
    pub(super) const fn time(self, at: u64) -> u64 {
        let here = at / 1_000;
        let ahead = (self.0 >> TIME_SHIFT).wrapping_sub(here) & LAST_TIME;
        let micros = if ahead <= LAST_TIME / 2 {
            here.saturating_add(ahead)
        } else {
            here.saturating_sub(LAST_TIME - ahead + 1)
        };
        micros.saturating_mul(1_000)
    }

    const fn next_generation(self) -> u64 {
        if self.generation() == LAST_GENERATION { 1 } else { self.generation() + 1 }
    }

    /// Returns the quiet state that ends at `until` nanoseconds, rounded up: no call starts before it.
    pub(super) const fn quiet(self, until: u64) -> Self {
        Self::new(QuietState::Quiet, self.next_generation(), until.div_ceil(1_000))
    }

    /// Returns the quiet state after a probe that showed nothing: its end is past, as the beginning of the probe is.
    pub(super) const fn unprobed(self) -> Self {
        Self::new(QuietState::Quiet, self.next_generation(), self.0 >> TIME_SHIFT)
    }

    /// Returns the state with a probe that begins at this time.
    pub(super) const fn probing(self, at: u64) -> Self {
        Self::new(QuietState::Probing, self.next_generation(), at / 1_000)
    }

    /// Returns the state of a paced return whose pace holds from this time on.
    pub(super) const fn returning(self, at: u64) -> Self {
        Self::new(QuietState::Returning, self.next_generation(), at / 1_000)
    }

    /// Returns the open state. Calls that the return released still belong to it.
    pub(super) const fn open(self) -> Self {
        Self::new(QuietState::Open, self.generation(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_touch_each_other_at_their_largest() {
        let last = PackedState::new(QuietState::Returning, LAST_GENERATION, LAST_TIME);
        assert_eq!(
            (last.mode(), last.generation(), last.time(u64::MAX)),
            (QuietState::Returning, LAST_GENERATION, last.time(u64::MAX))
        );
        assert_eq!(last.0, u64::MAX);
        let quiet = last.quiet(u64::MAX);
        assert_eq!((quiet.mode(), quiet.generation(), quiet.time(u64::MAX)), (QuietState::Quiet, 1, u64::MAX));
        assert_eq!((quiet.open().generation(), quiet.open().is_open(), quiet.is_open()), (1, true, false));
    }

    #[test]
    fn a_pause_ends_no_earlier_than_asked() {
        // Tokio's clock, for one, counts from the middle of the range.
        for epoch in [0, LAST_TIME * 1_000 - 7, i64::MAX as u64] {
            for until in [0, 1, 999, 1_000, 1_001, 10_000_000_001].map(|length| epoch + length) {
                for at in [epoch, until, until + 1_000_000_000_000] {
                    let time = PackedState::FIRST.quiet(until).time(at);
                    assert!((until..until + 1_000).contains(&time), "{until}: {time}");
                }
            }
        }
    }
}
