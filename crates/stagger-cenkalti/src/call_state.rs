//! The decisions of one call, async or blocking; the drivers only call and wait. Follows the package's loop, in its
//! order.

use core::time::Duration;

use super::BackOff;
use crate::call::Next;
use crate::setup::{End, Ending};
use crate::{Instant, StopReason, scope, testing, time::Clock};

/// The state of one call.
#[derive(Debug)]
pub(super) struct CallState<B> {
    backoff: B,
    attempts: u32,
    /// Set if the output includes the elapsed time.
    start: Option<Instant>,
    is_nested: bool,
}

impl<B: BackOff> CallState<B> {
    pub(super) const fn new(backoff: B) -> Self {
        Self { backoff, attempts: 0, start: None, is_nested: false }
    }

    /// Starts the call, before the first attempt.
    pub(super) fn start(&mut self, timed: Option<&impl Clock>) {
        self.is_nested = scope::depth() > 0;
        self.start = timed.map(Clock::now);
        self.backoff.reset();
    }

    /// Counts an attempt; called before each one.
    pub(super) const fn begin(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Decides what follows a failed attempt. `notify` receives the wait before the retry.
    pub(super) fn failed(
        &mut self,
        is_permanent: bool,
        is_cancelled: impl FnOnce() -> bool,
        notify: impl FnOnce(Duration),
    ) -> Next {
        if is_permanent {
            return Next::Stop(StopReason::Permanent);
        }
        if self.is_nested {
            return Next::Stop(StopReason::Nested);
        }
        match self.backoff.next_backoff() {
            None => Next::Stop(if is_cancelled() { StopReason::Cancelled } else { StopReason::Exhausted }),
            Some(delay) => {
                notify(delay);
                Next::Wait(if testing::sleeps_are_skipped() { Duration::ZERO } else { delay })
            }
        }
    }

    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn end<V, E, R>(&self, result: Result<V, (StopReason, E)>, clock: &impl Clock) -> End<V, E, R> {
        End {
            result: result.map_err(|(stop, error)| (stop, Ending::Failed(error))),
            attempts: self.attempts,
            elapsed: self.start.map_or(Duration::ZERO, |start| clock.now().saturating_since(start)),
        }
    }
}
