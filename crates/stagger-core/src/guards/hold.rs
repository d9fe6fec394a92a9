//! How a limiter holds calls: the order in which they wait, and the bounds of their waiting. The quiet period and the
//! pacer share it.

use core::time::Duration;

use super::guard;
use super::guard::Answer;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};

/// A place in the order of waiting calls is a number of 32 bits, of which half must stay unused.
const MAX_WAITING: u32 = 1_000_000;
/// The shortest wait before a call asks again.
const MIN_WAIT: u64 = 100_000;

/// How long calls wait at most, in nanoseconds, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HoldSettings {
    max_wait: Option<u64>,
    max_waiting: u32,
}

impl HoldSettings {
    pub(super) const DEFAULT: Self = Self { max_wait: None, max_waiting: 1_024 };

    pub(super) const fn max_wait(self, longest: Duration) -> Self {
        Self { max_wait: Some(nanos(longest)), ..self }
    }

    pub(super) const fn max_waiting(self, calls: u32) -> Self {
        Self { max_waiting: if calls < MAX_WAITING { calls } else { MAX_WAITING }, ..self }
    }

    /// Returns whether a call that waits from `start` to `turn` waits too long for these settings, or for its own
    /// limit. One that waits already has waited for `waited`.
    pub(super) fn is_too_long(self, start: u64, turn: u64, waited: u64, latest: Option<Instant>) -> bool {
        latest.is_some_and(|latest| turn > latest.as_nanos())
            || self.max_wait.is_some_and(|most| turn.saturating_sub(start) > most.saturating_sub(waited))
            || self.max_waiting == 0
    }
}

/// The calls that a limiter holds.
#[derive(Debug)]
pub(super) struct HeldCalls {
    settings: HoldSettings,
    places: Places,
    waited: AtomicU64,
    rejected: AtomicU64,
}

/// How many calls wait now, and how many were held since the limiter was created.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldCounts {
    pub(super) waiting: u32,
    pub(super) waited: u64,
    pub(super) rejected: u64,
}

impl HeldCalls {
    const_unless_loom! {
        pub(super) const fn new(settings: HoldSettings) -> Self {
            Self {
                settings,
                places: Places::new(),
                waited: AtomicU64::new(0),
                rejected: AtomicU64::new(0),
            }
        }
    }

    /// Returns how many calls wait.
    pub(super) fn waiting(&self) -> u32 {
        self.places.waiting()
    }

    /// Returns how many calls are before this one.
    pub(super) fn before(&self, permit: Permit) -> u32 {
        match permit {
            Permit::Waiting { place, .. } => self.places.before(place),
            _ => self.places.waiting(),
        }
    }

    /// Lets a call wait that will start at `turn` as far as is known, or rejects it.
    /// A waiting call asks again after `recheck` at the latest.
    pub(super) fn hold(
        &self,
        permit: Permit,
        latest: Option<Instant>,
        at: u64,
        turn: u64,
        recheck: Option<u64>,
    ) -> Answer {
        let waited = match permit {
            Permit::Waiting { since, .. } => Permit::waited(since, at),
            _ => 0,
        };
        let turn = turn.max(at.saturating_add(MIN_WAIT));
        let place = match permit {
            _ if self.settings.is_too_long(at, turn, waited, latest) => None,
            Permit::Waiting { .. } => Some(permit),
            _ => self.places.take(self.settings.max_waiting).map(|place| {
                self.waited.fetch_add(1, Ordering::Relaxed);
                Permit::Waiting { place, since: at / 1_000_000 }
            }),
        };
        let length = turn.saturating_sub(at);
        match place {
            Some(place) => {
                let after = recheck.map_or(length, |longest| length.min(longest));
                Answer::Wait { after: Duration::from_nanos(after), permit: place.pack() }
            }
            None => {
                self.leave(permit);
                self.rejected.fetch_add(1, Ordering::Relaxed);
                Answer::No { retry_in: Duration::from_nanos(length) }
            }
        }
    }

    /// Frees the place of a call that waited.
    pub(super) fn leave(&self, permit: Permit) {
        if matches!(permit, Permit::Waiting { .. }) {
            self.places.leave();
        }
    }

    pub(super) fn counts(&self) -> HeldCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HeldCounts { waiting: self.places.waiting(), waited: count(&self.waited), rejected: count(&self.rejected) }
    }
}

/// What a permit stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Nothing: the call was not asked for.
    None,
    /// The call was admitted in this generation.
    Admitted { generation: u64 },
    /// The call is the probe of this generation.
    Probe { generation: u64 },
    /// The call waits in this place, since this time in milliseconds.
    Waiting { place: u32, since: u64 },
}

/// A permit is `generation: 14 bits, kind: 2` for calls that were admitted, and `place: 32, since: 30, kind: 2` for
/// those that wait.
const KIND_BITS: u32 = 2;
const ADMITTED: u64 = 1;
const PROBE: u64 = 2;
const WAITING: u64 = 3;
const SINCE_BITS: u32 = 30;
const SINCE: u64 = (1 << SINCE_BITS) - 1;

impl Permit {
    #[inline]
    pub(super) const fn pack(self) -> guard::Permit {
        guard::Permit(match self {
            Self::None => 0,
            Self::Admitted { generation } => generation << KIND_BITS | ADMITTED,
            Self::Probe { generation } => generation << KIND_BITS | PROBE,
            Self::Waiting { place, since } => {
                (place as u64) << (SINCE_BITS + KIND_BITS) | (since & SINCE) << KIND_BITS | WAITING
            }
        })
    }

    #[inline]
    pub(super) const fn unpack(permit: &guard::Permit) -> Self {
        let guard::Permit(bits) = *permit;
        let generation = bits >> KIND_BITS;
        match bits & ((1 << KIND_BITS) - 1) {
            ADMITTED => Self::Admitted { generation },
            PROBE => Self::Probe { generation },
            WAITING => {
                Self::Waiting { place: (bits >> (SINCE_BITS + KIND_BITS)) as u32, since: bits >> KIND_BITS & SINCE }
            }
            _ => Self::None,
        }
    }

    /// Returns for how many nanoseconds a call that waits since `since` has waited: exact up to six days, half of what
    /// the time can hold.
    pub(super) const fn waited(since: u64, at: u64) -> u64 {
        let waited = (at / 1_000_000).wrapping_sub(since) & SINCE;
        if waited > SINCE / 2 { 0 } else { waited * 1_000_000 }
    }
}

/// The places of the calls that wait: `issued: 32 bits, left: 32`. A call's place minus the places that were left is
/// the number of calls before it; it is a little too small if a call behind it has left, and then that call asks early.
#[derive(Debug)]
struct Places(AtomicU64);

const LEFT: u64 = u32::MAX as u64;

impl Places {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// Returns how many calls wait.
    pub(super) fn waiting(&self) -> u32 {
        let seen = self.0.load(Ordering::Acquire);
        issued(seen).wrapping_sub(seen as u32)
    }

    /// Returns how many calls are before this place.
    pub(super) fn before(&self, place: u32) -> u32 {
        let before = place.wrapping_sub(self.0.load(Ordering::Acquire) as u32);
        if before > u32::MAX / 2 { 0 } else { before }
    }

    /// Takes the last place; `None` if as many calls wait as may.
    pub(super) fn take(&self, most: u32) -> Option<u32> {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            let waiting = issued(seen).wrapping_sub(seen as u32);
            if waiting < most { Some(seen.wrapping_add(1 << 32)) } else { None }
        });
        taken.ok().map(issued)
    }

    /// Leaves a place, whichever it was.
    pub(super) fn leave(&self) {
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |seen| {
            // A permit that was released twice must not make the number of waiting calls negative.
            if issued(seen) == seen as u32 {
                return None;
            }
            Some(seen & !LEFT | u64::from((seen as u32).wrapping_add(1)))
        });
    }
}

const fn issued(seen: u64) -> u32 {
    (seen >> 32) as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_what_was_packed() {
        for permit in [
            Permit::None,
            Permit::Admitted { generation: 1 },
            Permit::Admitted { generation: 0x3fff },
            Permit::Probe { generation: 0x3fff },
            Permit::Waiting { place: 0, since: 0 },
            Permit::Waiting { place: u32::MAX, since: SINCE },
        ] {
            assert_eq!(Permit::unpack(&permit.pack()), permit);
        }
        assert_eq!(Permit::None.pack(), guard::Permit::NONE);
    }

    #[test]
    fn waits_are_measured_across_the_wraparound() {
        for since in [0, 5, SINCE] {
            for waited in [0_u64, 1, 300_000, SINCE / 2] {
                assert_eq!(Permit::waited(since, (since + waited) * 1_000_000), waited * 1_000_000);
            }
        }
        assert_eq!(Permit::waited(5, 4_000_000), 0, "a clock that steps back");
    }

    #[test]
    fn places_are_bounded_and_counted_across_the_wraparound() {
        let last = u64::from(u32::MAX);
        let places = Places(AtomicU64::new(last << 32 | last));
        let taken = [(); 4].map(|()| places.take(3));
        assert_eq!(taken, [Some(u32::MAX), Some(0), Some(1), None]);
        assert_eq!((places.waiting(), places.before(u32::MAX), places.before(1)), (3, 0, 2));
        places.leave();
        assert_eq!((places.waiting(), places.before(u32::MAX), places.before(1)), (2, 0, 1));
        (0..5).for_each(|_| places.leave());
        assert_eq!((places.waiting(), places.take(1)), (0, Some(2)));
    }
}
