//! The decisions of a ticker, async or blocking: the two only wait.

use core::time::Duration;

use super::{Tick, Times};
use crate::{testing, time::Clock};

/// What a ticker remembers.
#[derive(Debug)]
pub(crate) struct Beat<S> {
    pub(crate) times: S,
    stage: Stage,
    given: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has asked yet.
    Fresh,
    /// A timer runs.
    Waiting,
    /// The tick is to be given now.
    Due,
    /// A tick was given, and nobody has asked for the next one.
    Given,
    Ended,
}

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Ask this of the timer, then say [`woken`](Beat::woken); never zero.
    Wait(Duration),
    /// The timer runs: wait for it.
    Waiting,
    /// The next tick comes without a wait: look whether somebody wants an end, and ask again.
    AtOnce,
    Tick(Tick),
    End,
}

impl<S: Times> Beat<S> {
    pub(crate) const fn new(times: S) -> Self {
        Self { times, stage: Stage::Fresh, given: 0 }
    }

    /// Somebody asks for a tick.
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

    /// The timer has woken up.
    pub(crate) const fn woken(&mut self) {
        self.stage = Stage::Due;
    }

    /// Nothing more will come; twice is as good as once.
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

    /// How many ticks were given.
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
