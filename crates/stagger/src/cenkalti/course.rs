//! The decisions of one call, async or blocking: the two only call and wait. The package's loop, in its order.

use core::time::Duration;

use super::BackOff;
use crate::call::Next;
use crate::setup::{End, Ending};
use crate::{Instant, StopReason, scope, testing, time::Clock};

/// What one call remembers.
#[derive(Debug)]
pub(super) struct Course<B> {
    backoff: B,
    attempts: u32,
    /// If somebody wants to be told how long it took.
    start: Option<Instant>,
    is_inside: bool,
}

impl<B: BackOff> Course<B> {
    pub(super) const fn new(backoff: B) -> Self {
        Self { backoff, attempts: 0, start: None, is_inside: false }
    }

    /// Before the first attempt.
    pub(super) fn start(&mut self, timed: Option<&impl Clock>) {
        self.is_inside = scope::depth() > 0;
        self.start = timed.map(Clock::now);
        self.backoff.reset();
    }

    /// Before every attempt.
    pub(super) const fn begin(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// The attempt failed. `notify` is told the wait that follows.
    pub(super) fn failed(
        &mut self,
        is_permanent: bool,
        is_cancelled: impl FnOnce() -> bool,
        notify: impl FnOnce(Duration),
    ) -> Next {
        if is_permanent {
            return Next::Stop(StopReason::Permanent);
        }
        if self.is_inside {
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
