//! The decisions of a ticker; the async and the blocking ticker only wait.

use core::time::Duration;

use stagger_core::Instant;

use super::ticker::Tick;
use super::times::Times;
use crate::time::Clock;

/// The state of a ticker.
#[derive(Debug)]
pub(crate) struct TickerState<S> {
    pub(crate) times: S,
    phase: Phase,
    yielded: u64,
    /// The end of the current wait; `None` if it was spread again already.
    wait_end: Option<Instant>,
    /// Whether the current request for a tick has found the timer running.
    is_awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No tick has been requested yet.
    Fresh,
    /// A timer is running.
    Waiting,
    /// The tick is yielded now.
    Due,
    /// A tick was yielded, and the next one has not been requested.
    Yielded,
    Ended,
}

/// The next action of the driver.
#[derive(Debug)]
pub(crate) enum TickerStep {
    /// Arm the timer for this long, then call [`timer_fired`](TickerState::timer_fired); never zero.
    Wait(Duration),
    /// The timer is running: wait for it.
    Waiting,
    /// The next tick comes without a wait: check for cancellation, and call `next` again.
    Immediate,
    Tick(Tick),
    End,
}

impl<S: Times> TickerState<S> {
    pub(crate) const fn new(times: S) -> Self {
        Self { times, phase: Phase::Fresh, yielded: 0, wait_end: None, is_awaited: false }
    }

    /// Advances to the next step when a tick is requested.
    pub(crate) fn next(&mut self, clock: &impl Clock, resolution: Duration) -> TickerStep {
        match self.phase {
            Phase::Fresh => {
                let wait = self.times.first(clock, resolution);
                if self.start_wait(wait, clock) { TickerStep::Wait(wait) } else { self.emit(clock) }
            }
            Phase::Yielded => match self.times.next(clock, resolution) {
                None => self.end(),
                Some(wait) if self.start_wait(wait, clock) => TickerStep::Wait(wait),
                Some(_) => TickerStep::Immediate,
            },
            Phase::Waiting => TickerStep::Waiting,
            Phase::Due => self.emit(clock),
            Phase::Ended => TickerStep::End,
        }
    }

    /// Records a new request for a tick.
    pub(crate) const fn requested(&mut self) {
        self.is_awaited = false;
    }

    /// Records that a request has found the timer running, and waits for it.
    pub(crate) const fn awaited(&mut self) {
        self.is_awaited = true;
    }

    /// Records that the timer has fired. Returns for how long it is to be armed again, if the wait was overslept. If
    /// nobody waited for it, it is the program that comes late, and the tick is yielded.
    pub(crate) fn timer_fired(&mut self, clock: &impl Clock) -> Option<Duration> {
        if let (Some(end), true) = (self.wait_end.take(), self.is_awaited) {
            if let Some(again) = self.times.overslept(end, clock.now()) {
                return Some(again);
            }
        }
        self.phase = Phase::Due;
        None
    }

    /// Ends the ticker. Idempotent.
    pub(crate) const fn end(&mut self) -> TickerStep {
        self.phase = Phase::Ended;
        TickerStep::End
    }

    pub(crate) fn restart(&mut self, clock: &impl Clock) {
        if matches!(self.phase, Phase::Fresh | Phase::Ended) {
            return;
        }
        self.times.restart(clock);
        self.phase = Phase::Yielded;
    }

    /// Returns the number of ticks yielded.
    pub(crate) const fn yielded(&self) -> u64 {
        self.yielded
    }

    fn start_wait(&mut self, wait: Duration, clock: &impl Clock) -> bool {
        if wait.is_zero() {
            self.phase = Phase::Due;
            self.wait_end = None;
            return false;
        }
        self.phase = Phase::Waiting;
        self.wait_end = Some(clock.now().saturating_add(wait));
        true
    }

    fn emit(&mut self, clock: &impl Clock) -> TickerStep {
        self.phase = Phase::Yielded;
        self.yielded = self.yielded.saturating_add(1);
        let missed = self.times.ticked(clock);
        TickerStep::Tick(Tick { number: self.yielded, at: clock.now(), missed })
    }
}
