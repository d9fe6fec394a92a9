use core::time::Duration;

use super::mode::LimiterMode;
use super::permit::Permit;
use super::places::Places;
use crate::guards::guard::Turn;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::Instant;

/// A place in the order of waiting calls is a number of 32 bits, of which half must stay unused.
pub(in crate::guards) const MAX_WAITING: u32 = 1_000_000;
/// The shortest wait before a call asks again.
const MIN_WAIT: u64 = 100_000;

/// The checked settings, lengths in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::guards) struct HoldSettings {
    pub(in crate::guards) mode: LimiterMode,
    pub(in crate::guards) max_wait: Option<u64>,
    pub(in crate::guards) max_waiting: u32,
}

/// The calls that a limiter holds.
#[derive(Debug)]
pub(in crate::guards) struct HeldCalls {
    settings: HoldSettings,
    places: Places,
    waited: AtomicU64,
    rejected: AtomicU64,
    would_have_held: AtomicU64,
}

/// How many calls wait now, and how many were held since the limiter was created.
#[derive(Clone, Copy, Debug)]
pub(in crate::guards) struct HeldCounts {
    pub(in crate::guards) waiting: u32,
    pub(in crate::guards) waited: u64,
    pub(in crate::guards) rejected: u64,
    pub(in crate::guards) would_have_held: u64,
}

impl HeldCalls {
    const_unless_loom! {
        pub(in crate::guards) const fn new(settings: HoldSettings) -> Self {
            Self {
                settings,
                places: Places::new(),
                waited: AtomicU64::new(0),
                rejected: AtomicU64::new(0),
                would_have_held: AtomicU64::new(0),
            }
        }
    }

    /// Returns how many calls wait.
    pub(in crate::guards) fn waiting(&self) -> u32 {
        self.places.waiting()
    }

    /// Returns how many calls are before this one.
    pub(in crate::guards) fn before(&self, permit: Permit) -> u32 {
        match permit {
            Permit::Waiting { place, .. } => self.places.before(place),
            _ => self.places.waiting(),
        }
    }

    /// Lets a call wait that will start at `turn` as far as is known, or rejects it; `None` if calls are only observed.
    /// A waiting call asks again after `recheck` at the latest.
    pub(in crate::guards) fn hold(
        &self,
        permit: Permit,
        latest: Option<Instant>,
        at: u64,
        turn: u64,
        recheck: Option<u64>,
    ) -> Option<Turn> {
        if self.settings.mode == LimiterMode::Observe {
            self.would_have_held.fetch_add(1, Ordering::Relaxed);
            self.leave(permit);
            return None;
        }
        let waited = match permit {
            Permit::Waiting { since, .. } => Permit::waited(since, at),
            _ => 0,
        };
        let turn = turn.max(at.saturating_add(MIN_WAIT));
        let is_too_late = latest.is_some_and(|latest| turn > latest.as_nanos())
            || self.settings.max_wait.is_some_and(|most| turn - at > most.saturating_sub(waited));
        let place = match permit {
            _ if self.settings.mode == LimiterMode::FailFast || is_too_late => None,
            Permit::Waiting { .. } => Some(permit),
            _ => self.places.take(self.settings.max_waiting).map(|place| {
                self.waited.fetch_add(1, Ordering::Relaxed);
                Permit::Waiting { place, since: at / 1_000_000 }
            }),
        };
        let length = turn.saturating_sub(at);
        Some(match place {
            Some(place) => {
                let after = recheck.map_or(length, |longest| length.min(longest));
                Turn::Wait { after: Duration::from_nanos(after), permit: place.pack() }
            }
            None => {
                self.leave(permit);
                self.rejected.fetch_add(1, Ordering::Relaxed);
                Turn::Rejected { retry_in: Duration::from_nanos(length) }
            }
        })
    }

    /// Frees the place of a call that waited.
    pub(in crate::guards) fn leave(&self, permit: Permit) {
        if matches!(permit, Permit::Waiting { .. }) {
            self.places.leave();
        }
    }

    pub(in crate::guards) fn counts(&self) -> HeldCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HeldCounts {
            waiting: self.places.waiting(),
            waited: count(&self.waited),
            rejected: count(&self.rejected),
            would_have_held: count(&self.would_have_held),
        }
    }
}
