//! The states of a pacer: as metrics show them, and packed into one word with the rate.

use core::time::Duration;

use super::rate::Rate;
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
}

/// `state: 2 bits, generation: 14, rate: 48`. The generation changes with every cut, so that refusals of calls that
/// began before it do not cut again. A passive pacer is known by its lowest bits alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedState(pub(super) u64);

const STATE_BITS: u32 = 2;
const GENERATION_BITS: u32 = 14;
const RATE_SHIFT: u32 = STATE_BITS + GENERATION_BITS;
const LAST_GENERATION: u64 = (1 << GENERATION_BITS) - 1;

impl PackedState {
    pub(super) const FIRST: Self = Self::new(PacerState::Passive, 1, Rate::LEAST);

    const fn new(state: PacerState, generation: u64, rate: Rate) -> Self {
        Self(state as u64 | generation << STATE_BITS | rate.0 << RATE_SHIFT)
    }

    #[inline]
    pub(super) const fn is_passive(self) -> bool {
        self.0 & ((1 << STATE_BITS) - 1) == PacerState::Passive as u64
    }

    pub(super) const fn state(self) -> PacerState {
        match self.0 & ((1 << STATE_BITS) - 1) {
            0 => PacerState::Passive,
            1 => PacerState::Measuring,
            2 => PacerState::Paced,
            _ => PacerState::Exhausted,
        }
    }

    /// Returns whether calls start at the rate.
    pub(super) const fn is_paced(self) -> bool {
        matches!(self.state(), PacerState::Paced | PacerState::Exhausted)
    }

    /// Returns the generation, from 1. It is never 0, which is that of no permit.
    pub(super) const fn generation(self) -> u64 {
        self.0 >> STATE_BITS & LAST_GENERATION
    }

    pub(super) const fn rate(self) -> Rate {
        Rate(self.0 >> RATE_SHIFT)
    }

    /// Returns the next generation, in this state and with this rate.
    pub(super) const fn next(self, state: PacerState, rate: Rate) -> Self {
        let generation = if self.generation() == LAST_GENERATION { 1 } else { self.generation() + 1 };
        Self::new(state, generation, rate)
    }

    /// Returns the same state with another rate.
    pub(super) const fn with_rate(self, rate: Rate) -> Self {
        Self::new(self.state(), self.generation(), rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_touch_each_other_at_their_largest() {
        let last = PackedState::new(PacerState::Exhausted, LAST_GENERATION, Rate::MOST);
        assert_eq!(
            (last.state(), last.generation(), last.rate()),
            (PacerState::Exhausted, LAST_GENERATION, Rate::MOST)
        );
        let next = last.next(PacerState::Passive, Rate::LEAST);
        assert_eq!((next.is_passive(), next.generation(), next.rate()), (true, 1, Rate::LEAST));
        let grown = next.with_rate(Rate::MOST);
        assert_eq!((grown.is_passive(), grown.generation(), grown.rate()), (true, 1, Rate::MOST));
    }
}
