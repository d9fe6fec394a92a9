//! The states of a breaker: as metrics show them, and packed into one word, so that every change is one
//! compare-and-swap.

use crate::guards::guard::Permit;
use crate::numbers::instant::Instant;
use crate::numbers::message::words;

words! {
    /// The state of a breaker.
    pub enum BreakerState {
        /// Calls are admitted and counted.
        Closed = "closed",
        /// Calls are rejected until the open time is over.
        Open = "open",
        /// A few probes are admitted, and all other calls are rejected.
        HalfOpen = "half_open",
        /// Calls are rejected until another command.
        ForcedOpen = "forced_open",
        /// Calls are admitted and not counted, until another command: the breaker is off.
        ForcedClosed = "forced_closed",
    }
    /// All values.
    pub const ALL;
    /// Returns the state as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// What caused the last change of state.
    pub enum TransitionCause {
        /// A command, or the breaker is new.
        Command = "command",
        /// Failures in a row tripped it.
        Consecutive = "consecutive",
        /// The ratio of failures tripped it.
        FailureRatio = "failure_ratio",
        /// The ratio of slow calls tripped it.
        SlowRatio = "slow_ratio",
        /// The open time was over.
        OpenTime = "open_time",
        /// The probes found the server healthy, or failed.
        Probes = "probes",
        /// A probe did not return within the longest wait.
        ProbeWait = "probe_wait",
        /// Half of what a rule asks for tripped it: see [`Evidence::Half`].
        Advised = "advised",
    }
    const ALL;
    /// Returns the cause as one lower-case word, for metrics and logs.
    pub const fn name;
}

words! {
    /// How much a breaker must have seen itself before a rule trips it.
    #[derive(Default)]
    pub enum Evidence {
        /// What its rules ask for. The default.
        #[default]
        Full = "full",
        /// Half of that, rounded up: half of the failures in a row, and half of the calls that a window must hold.
        /// Ratios stay as they are, so that a breaker whose own calls succeed does not open.
        Half = "half",
    }
    const ALL;
    /// Returns the value as one lower-case word, for metrics and logs.
    pub const fn name;
}

impl Evidence {
    /// Returns how much of `needed` there must be.
    pub(super) const fn of(self, needed: u32) -> u32 {
        match self {
            Self::Full => needed,
            Self::Half => needed.div_ceil(2),
        }
    }

    pub(super) fn from_code(code: u64) -> Self {
        Self::ALL.iter().copied().find(|&evidence| evidence as u64 == code).unwrap_or_default()
    }
}

impl TransitionCause {
    pub(super) fn of(code: u64) -> Self {
        Self::ALL.iter().copied().find(|&cause| cause as u64 == code).unwrap_or(Self::Command)
    }
}

/// A breaker at one moment, for metrics and events. A number that has no meaning in a state is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerSnapshot {
    /// The state. The next call notices that an open time is over: until then the state is `Open`.
    pub state: BreakerState,
    /// What caused the state.
    pub cause: TransitionCause,
    /// How much the breaker must have seen itself before a rule trips it.
    pub evidence: Evidence,
    /// How many changes of state there have been. Polling it misses none.
    pub transitions: u64,
    /// When the last change was; `None` for a new breaker.
    pub since: Option<Instant>,
    /// How many times it has opened since it was last healthy: the number of the open time in its policy's schedule.
    pub openings: u32,
    /// Failures in a row, while it is closed and has that rule; otherwise those that tripped it.
    pub consecutive: u64,
    /// Calls in the window while it is closed, results of probes while it is half-open, and the calls counted when it
    /// opened while it is open. Without a window, calls are not counted.
    pub calls: u64,
    /// How many of these calls failed.
    pub failures: u64,
    /// How many of these calls were slow; a slow probe counts as failed.
    pub slow: u64,
    /// Probes in flight.
    pub probes: u64,
    /// When an open breaker admits the next probe.
    pub next_probe: Option<Instant>,
    /// How many calls it has rejected since it was created.
    pub rejections: u64,
}

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

    /// Returns the generation, from 1. It is never 0, which is the generation of [`Permit::NONE`].
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
pub(super) const fn permit(generation: u64, start: u64) -> Permit {
    Permit(generation << START_BITS | start & START)
}

/// Returns the generation of the state that issued this permit; 0 for none.
#[inline]
pub(super) const fn generation_of(permit: &Permit) -> u64 {
    permit.0 >> START_BITS
}

/// Returns how long ago the permit was issued, in nanoseconds: exact up to 39 hours, half of what the start can hold. A
/// clock that stepped backwards yields zero.
pub(super) const fn age_of(permit: &Permit, now: u64) -> u64 {
    let age = now.wrapping_sub(permit.0) & START;
    if age > START / 2 { 0 } else { age }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_cause_round_trips_through_its_number_and_has_a_name() {
        let all = TransitionCause::ALL;
        for &cause in all {
            assert_eq!(TransitionCause::of(cause as u64), cause);
        }
        assert_eq!(all.iter().map(|cause| cause.name()).collect::<HashSet<_>>().len(), all.len());
    }

    /// Metrics and logs are searched for these words.
    #[test]
    fn names_are_frozen_words() {
        let names = BreakerState::ALL.iter().map(|state| state.name());
        assert!(names.eq(["closed", "open", "half_open", "forced_open", "forced_closed"]));
    }

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
        assert_eq!(generation_of(&Permit::NONE), 0);
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
