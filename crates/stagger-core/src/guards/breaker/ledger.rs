use super::snapshot::TransitionCause;
use super::tally::Tally;
use crate::numbers::atomic::{AtomicU64, Ordering};
use crate::numbers::instant::nanos;
use crate::numbers::random::{Purpose, Seed};
use crate::outcome::ServerHint;
use crate::policy::Policy;

/// The data of a state besides its packed word.
///
/// Only the thread that is changing the state writes here (except for the counts of rejections, and the time of the
/// last probe, which only grows), and it stores the packed state last. So a thread that has loaded the packed state
/// sees its data.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// When the state was entered.
    pub(super) since: Cell,
    pub(super) cause: Cell,
    pub(super) transitions: Cell,
    /// When the open time ends.
    pub(super) until: Cell,
    /// How long the last open time was.
    pub(super) open_for: Cell,
    opening: Cell,
    /// When the last probe was admitted.
    pub(super) probed: Cell,
    calls: Cell,
    failures: Cell,
    slow: Cell,
    pub(super) consecutive: Cell,
    pub(super) rejections: Cell,
    pub(super) would_have_rejected: Cell,
    /// An [`Enforcement`](crate::guard::Enforcement), as a number.
    pub(super) enforcement: Cell,
    /// An [`Evidence`](super::Evidence), as a number.
    pub(super) evidence: Cell,
}

/// The position of an open time: its number in the policy's schedule, and how many times the schedule was restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) number: u32,
    episode: u32,
}

/// From here on the open times no longer grow, and are drawn with other seeds: the delay of a decorrelated policy takes
/// time proportional to its number.
const MOST_OPENINGS: u32 = 4_096;

impl Opening {
    pub(super) const fn next(self) -> Self {
        if self.number < MOST_OPENINGS {
            Self { number: self.number + 1, episode: self.episode }
        } else {
            Self { number: self.number, episode: self.episode.wrapping_add(1) }
        }
    }

    /// Restarts with another series of draws: a client whose first draw is short must not be first every time.
    pub(super) const fn restart(self) -> Self {
        Self { number: 0, episode: self.episode.wrapping_add(1) }
    }

    /// Returns the length of the open time, in nanoseconds, with the server's hint if there is one.
    pub(super) fn length(self, hint: Option<ServerHint>, policy: &Policy, seed: Seed) -> u64 {
        let seed = seed.for_call(u64::from(self.episode));
        // The builder accepts only policies with delays.
        let drawn = policy.delay(self.number, seed).map_or(0, nanos);
        let Some(hint) = hint else { return drawn };
        let most = policy.max_hint();
        let hint = match hint {
            ServerHint::AtLeast(asked) => ServerHint::AtLeast(most.map_or(asked, |most| asked.min(most))),
            ServerHint::Reserved(asked) => ServerHint::Reserved(most.map_or(asked, |most| asked.min(most))),
            ServerHint::DoNotRetry => ServerHint::DoNotRetry,
        };
        let ceiling = policy.bounds(self.number).map_or(0, |(_, ceiling)| nanos(ceiling));
        policy.hinted(hint, policy.capped_last(ceiling), drawn, seed.bits(0, self.number, Purpose::Hint))
    }
}

impl Ledger {
    pub(super) fn opening(&self) -> Opening {
        let opening = self.opening.get();
        Opening { number: opening as u32, episode: (opening >> 32) as u32 }
    }

    pub(super) fn set_opening(&self, opening: Opening) {
        self.opening.set(u64::from(opening.number) | u64::from(opening.episode) << 32);
    }

    pub(super) fn tripped_by(&self) -> Tally {
        Tally { calls: self.calls.get(), failures: self.failures.get(), slow: self.slow.get() }
    }

    pub(super) fn set_tripped_by(&self, tally: Tally, consecutive: u64) {
        self.calls.set(tally.calls);
        self.failures.set(tally.failures);
        self.slow.set(tally.slow);
        self.consecutive.set(consecutive);
    }

    /// Records a change of state.
    pub(super) fn enter(&self, at: u64, cause: TransitionCause) {
        self.since.set(at);
        self.cause.set(cause as u64);
        self.transitions.set(self.transitions.get().wrapping_add(1));
    }
}

/// A number whose ordering the packed state provides.
#[derive(Debug)]
pub(super) struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn raise(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}
