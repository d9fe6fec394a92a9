//! The decisions of one call, async or blocking; the drivers only call and wait. Follows the package's loop, in its
//! order.

use core::time::Duration;

use stagger::time::Clock;
use stagger::{Instant, StopReason, scope};

use crate::backoff::BackOff;
use crate::error::Error;
use crate::output::OutputMode;

/// The state of one call.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    attempts: u32,
    /// Set if the output includes the elapsed time.
    start: Option<Instant>,
    is_nested: bool,
}

/// What follows a failed attempt.
pub(crate) enum Next {
    /// Another attempt, after this wait.
    Wait(Duration),
    Stop(StopReason),
}

impl CallState {
    /// Starts the call, before the first attempt. Without `timed`, the clock is not read.
    pub(crate) fn start(&mut self, backoff: &mut impl BackOff, timed: Option<&impl Clock>) {
        self.is_nested = scope::depth() > 0;
        self.start = timed.map(Clock::now);
        backoff.reset();
    }

    /// Counts an attempt; called before each one.
    pub(crate) const fn begin(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Decides what follows a failed attempt. `notify` receives the wait before the retry.
    pub(crate) fn failed(
        &mut self,
        is_permanent: bool,
        backoff: &mut impl BackOff,
        is_cancelled: impl FnOnce() -> bool,
        notify: impl FnOnce(Duration),
    ) -> Next {
        if is_permanent {
            return Next::Stop(StopReason::Permanent);
        }
        if self.is_nested {
            return Next::Stop(StopReason::Nested);
        }
        match backoff.next_backoff() {
            None => Next::Stop(if is_cancelled() { StopReason::Cancelled } else { StopReason::Exhausted }),
            Some(delay) => {
                notify(delay);
                Next::Wait(delay)
            }
        }
    }

    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the error of the call, which ends.
    pub(crate) fn end<N: OutputMode, E>(&self, stop: StopReason, last: E, clock: &impl Clock) -> N::Error<E> {
        let elapsed = self.start.map_or(Duration::ZERO, |start| clock.now().saturating_since(start));
        N::error(Error { stop, attempts: self.attempts, elapsed, last })
    }
}
