//! The state of a breaker packed into one word, so that every change of it is one compare-and-swap.

use crate::guards::guard::BreakerPermit;

/// The mode of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Closed,
    Open,
    HalfOpen,
    ForcedOpen,
    ForcedClosed,
    /// One thread is changing the state and writes the data of the new one. No thread waits for it: in the meantime
    /// calls are rejected, and results belong to no state.
    Changing,
}

/// `mode: 4 bits, generation: 16, payload: 44`.
///
/// The payload of `Closed` is the number of failures in a row, that of `HalfOpen` three counts of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedState(pub(super) u64);

const MODE_BITS: u32 = 4;
const GENERATION_BITS: u32 = 16;
const PAYLOAD: u32 = MODE_BITS + GENERATION_BITS;
const LAST_GENERATION: u64 = (1 << GENERATION_BITS) - 1;

/// Each count of probes has 14 bits.
const COUNT_BITS: u32 = 14;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const IN_FLIGHT: u32 = PAYLOAD;
const HEALTHY: u32 = IN_FLIGHT + COUNT_BITS;
const AILING: u32 = HEALTHY + COUNT_BITS;

/// The largest number of probes that fits.
pub(super) const MAX_PROBES: u32 = 10_000;

impl PackedState {
    pub(super) const FIRST: Self = Self::new(Mode::Closed, 1);

    pub(super) const fn new(mode: Mode, generation: u64) -> Self {
        Self(mode as u64 | generation << MODE_BITS)
    }

    /// Returns the half-open state, with one probe in flight.
    pub(super) const fn half_open(generation: u64) -> Self {
        Self(Self::new(Mode::HalfOpen, generation).0 + (1 << IN_FLIGHT))
    }

    #[inline]
    pub(super) const fn mode(self) -> Mode {
        match self.0 & ((1 << MODE_BITS) - 1) {
            0 => Mode::Closed,
            1 => Mode::Open,
            2 => Mode::HalfOpen,
            3 => Mode::ForcedOpen,
            4 => Mode::ForcedClosed,
            _ => Mode::Changing,
        }
    }

    /// Returns the generation, from 1. It is never 0, which is the generation of [`BreakerPermit::NONE`].
    #[inline]
    pub(super) const fn generation(self) -> u64 {
        self.0 >> MODE_BITS & LAST_GENERATION
    }

    pub(super) const fn next_generation(self) -> u64 {
        if self.generation() == LAST_GENERATION { 1 } else { self.generation() + 1 }
    }

    pub(super) const fn changing(self) -> Self {
        Self::new(Mode::Changing, self.generation())
    }

    /// Returns the number of failures in a row.
    #[inline]
    pub(super) const fn streak(self) -> u64 {
        self.0 >> PAYLOAD
    }

    pub(super) const fn with_streak(self, streak: u64) -> Self {
        Self(Self::new(Mode::Closed, self.generation()).0 | streak << PAYLOAD)
    }

    /// Returns the number of probes in flight.
    pub(super) const fn in_flight(self) -> u64 {
        self.0 >> IN_FLIGHT & COUNT
    }

    /// Returns the number of probes that found the server healthy.
    pub(super) const fn healthy(self) -> u64 {
        self.0 >> HEALTHY & COUNT
    }

    /// Returns the number of probes that failed.
    pub(super) const fn ailing(self) -> u64 {
        self.0 >> AILING & COUNT
    }

    /// Returns the number of places that are taken, by a probe or by its result.
    pub(super) const fn taken(self) -> u64 {
        self.in_flight() + self.healthy() + self.ailing()
    }

    pub(super) const fn with_probe(self) -> Self {
        Self(self.0 + (1 << IN_FLIGHT))
    }

    /// Returns the state after a probe returned. `None` if none is in flight, which a permit that was recorded twice
    /// can cause.
    pub(super) const fn with_result(self, result: Probe) -> Option<Self> {
        if self.in_flight() == 0 {
            return None;
        }
        let back = self.0 - (1 << IN_FLIGHT);
        Some(Self(match result {
            Probe::Healthy => back + (1 << HEALTHY),
            Probe::Ailing => back + (1 << AILING),
            Probe::Nothing => back,
        }))
    }
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    Healthy,
    Ailing,
    /// The probe was cancelled, or never reached the server: its place is free again.
    Nothing,
}

/// A permit is `generation: 16 bits, start: 48`: the state that issued it, and, for a rule about slow calls, when.
const START_BITS: u32 = 48;
const START: u64 = (1 << START_BITS) - 1;

#[inline]
pub(super) const fn permit(generation: u64, start: u64) -> BreakerPermit {
    BreakerPermit(generation << START_BITS | start & START)
}

/// Returns the generation of the state that issued this permit; 0 for none.
#[inline]
pub(super) const fn generation_of(permit: &BreakerPermit) -> u64 {
    permit.0 >> START_BITS
}

/// Returns how long ago the permit was issued, in nanoseconds: exact up to 39 hours, half of what the start can hold. A
/// clock that stepped backwards yields zero.
pub(super) const fn age_of(permit: &BreakerPermit, now: u64) -> u64 {
    let age = now.wrapping_sub(permit.0) & START;
    if age > START / 2 { 0 } else { age }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_touch_each_other_at_their_largest() {
        let mut state = PackedState::half_open(LAST_GENERATION);
        for _ in 1..MAX_PROBES {
            state = state.with_probe();
        }
        assert_eq!(state.in_flight(), u64::from(MAX_PROBES));
        for n in 0..MAX_PROBES {
            state = state.with_result(if n % 2 == 0 { Probe::Healthy } else { Probe::Ailing }).unwrap();
        }
        assert_eq!((state.in_flight(), state.healthy(), state.ailing()), (0, 5_000, 5_000));
        assert_eq!((state.mode(), state.generation()), (Mode::HalfOpen, LAST_GENERATION));
        assert_eq!(state.with_result(Probe::Nothing), None);
        let streak = PackedState::new(Mode::Closed, LAST_GENERATION).with_streak(u64::from(u32::MAX));
        assert_eq!((streak.streak(), streak.generation()), (u64::from(u32::MAX), LAST_GENERATION));
    }

    #[test]
    fn generations_skip_the_one_of_no_permit() {
        assert_eq!(PackedState::new(Mode::Open, LAST_GENERATION).next_generation(), 1);
        assert_eq!(generation_of(&BreakerPermit::NONE), 0);
        assert_eq!(generation_of(&permit(LAST_GENERATION, u64::MAX)), LAST_GENERATION);
    }

    #[test]
    fn ages_are_exact_across_wraparound_and_never_negative() {
        for start in [0, 7, START, START + 5, u64::MAX] {
            for age in [0_u64, 1, 3_600_000_000_000, START / 2] {
                assert_eq!(age_of(&permit(3, start), start.wrapping_add(age)), age);
            }
            assert_eq!(age_of(&permit(3, start), start.wrapping_sub(1)), 0, "a clock that steps back");
        }
    }
}
