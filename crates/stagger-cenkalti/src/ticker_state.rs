//! What the async and the blocking ticker share.

use stagger::Instant;
use stagger::time::Clock;

use crate::backoff::BackOff;

/// The state of a ticker.
#[derive(Clone, Debug)]
pub(crate) struct TickerState<B> {
    pub(crate) backoff: B,
    pub(crate) phase: Phase,
    /// Number of ticks yielded.
    pub(crate) ticks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The tick is yielded at the next request.
    Due,
    /// A tick was yielded, and the next one has not been requested.
    Yielded,
    /// A timer is running.
    Waiting,
    Ended,
}

impl<B: BackOff> TickerState<B> {
    /// Creates the state of a ticker whose first tick is due.
    pub(crate) fn new(mut backoff: B) -> Self {
        backoff.reset();
        Self { backoff, phase: Phase::Due, ticks: 0 }
    }

    /// Yields a tick, and returns its instant.
    pub(crate) fn emit(&mut self, clock: &impl Clock) -> Instant {
        self.phase = Phase::Yielded;
        self.ticks = self.ticks.saturating_add(1);
        clock.now()
    }

    pub(crate) fn reset(&mut self) {
        // Before the first tick the backoff has its initial state.
        if self.ticks > 0 && self.phase != Phase::Ended {
            self.backoff.reset();
            self.phase = Phase::Yielded;
        }
    }
}
