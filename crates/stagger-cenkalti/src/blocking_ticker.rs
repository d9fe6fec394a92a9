use core::iter::FusedIterator;

use stagger::time::{BlockingSleep, ThreadSleep};
use stagger::{Cancel, Instant};

use crate::backoff::BackOff;
use crate::ticker_state::{Phase, TickerState};
use crate::wait::sleep;

/// Ticks on the delays of a backoff, in blocking code: an iterator whose `next` sleeps until the tick, and returns its
/// instant on the clock of the timer.
///
/// It works like the async [`Ticker`](crate::Ticker). No thread is started.
#[derive(Debug)]
pub struct Ticker<B, T = ThreadSleep> {
    state: TickerState<B>,
    timer: T,
    cancel: Option<Cancel>,
}

impl<B: BackOff, T: BlockingSleep> Ticker<B, T> {
    pub(crate) fn new(backoff: B, timer: T) -> Self {
        Self { state: TickerState::new(backoff), timer, cancel: None }
    }

    /// Ends the ticker when this handle is cancelled: during a wait, or when the next tick is requested.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Stops the ticker: no further tick comes. Idempotent.
    pub const fn stop(&mut self) {
        self.state.phase = Phase::Ended;
    }

    /// Resets the backoff, as if the latest tick had been the first. A ticker that has ended stays ended.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// Returns the number of ticks yielded.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.state.ticks
    }

    /// Returns the backoff, to read its elapsed time.
    #[must_use]
    pub const fn backoff(&self) -> &B {
        &self.state.backoff
    }
}

impl<B: BackOff, T: BlockingSleep> Iterator for Ticker<B, T> {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        if self.state.phase == Phase::Yielded {
            let delay = self.state.backoff.next_backoff();
            // Set before the sleep: the timer may panic, and the caller may catch it.
            self.state.phase = if delay.is_some() { Phase::Due } else { Phase::Ended };
            sleep(&self.timer, delay.unwrap_or_default(), self.cancel.as_ref());
            if self.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                self.stop();
            }
        }
        (self.state.phase == Phase::Due).then(|| self.state.emit(&self.timer))
    }
}

impl<B: BackOff, T: BlockingSleep> FusedIterator for Ticker<B, T> {}
