//! The decisions of a ticker; the async and the blocking ticker only wait.

use core::time::Duration;

use super::{Tick, Times};
use crate::{testing, time::Clock};

/// The state of a ticker.
#[derive(Debug)]
pub(crate) struct Beat<S> {
    pub(crate) times: S,
    stage: Stage,
    given: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No tick has been requested yet.
    Fresh,
    /// A timer is running.
    Waiting,
    /// The tick is yielded now.
    Due,
    /// A tick was yielded, and the next one has not been requested.
    Given,
    Ended,
}

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Arm the timer for this long, then call [`woken`](Beat::woken); never zero.
    Wait(Duration),
    /// The timer is running: wait for it.
    Waiting,
    /// The next tick comes without a wait: check for cancellation, and call `next` again.
    AtOnce,
    Tick(Tick),
    End,
}

impl<S: Times> Beat<S> {
    pub(crate) const fn new(times: S) -> Self {
        Self { times, stage: Stage::Fresh, given: 0 }
    }

    /// Requests the next tick.
    pub(crate) fn next(&mut self, clock: &impl Clock, resolution: Duration) -> Next {
        match self.stage {
            Stage::Fresh => {
                let wait = self.times.first(clock, resolution);
                if self.waits(wait) { Next::Wait(wait) } else { self.give(clock) }
            }
            Stage::Given => match self.times.next(clock, resolution) {
                None => self.end(),
                Some(wait) if self.waits(wait) => Next::Wait(wait),
                Some(_) => Next::AtOnce,
            },
            Stage::Waiting => Next::Waiting,
            Stage::Due => self.give(clock),
            Stage::Ended => Next::End,
        }
    }

    /// Records that the timer has fired.
    pub(crate) const fn woken(&mut self) {
        self.stage = Stage::Due;
    }

    /// Ends the ticker. Idempotent.
    pub(crate) const fn end(&mut self) -> Next {
        self.stage = Stage::Ended;
        Next::End
    }

    pub(crate) fn restart(&mut self, clock: &impl Clock) {
        if matches!(self.stage, Stage::Fresh | Stage::Ended) {
            return;
        }
        self.times.restart(clock);
        self.stage = Stage::Given;
    }

    /// Returns the number of ticks yielded.
    pub(crate) const fn given(&self) -> u64 {
        self.given
    }

    fn waits(&mut self, wait: Duration) -> bool {
        let waits = !wait.is_zero() && !testing::sleeps_are_skipped();
        self.stage = if waits { Stage::Waiting } else { Stage::Due };
        waits
    }

    fn give(&mut self, clock: &impl Clock) -> Next {
        self.stage = Stage::Given;
        self.given = self.given.saturating_add(1);
        let missed = self.times.ticked(clock);
        Next::Tick(Tick { number: self.given, at: clock.now(), missed })
    }
}
