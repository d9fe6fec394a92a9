//! The one machine that waits for a call in async code.
//!
//! The future, the loop form, batches and integrations share its timer, its waits and its admission of an attempt, so
//! they cannot differ in them. Blocking code waits in `drive::blocking`.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use stagger_core::{Outcome, StopReason};

use super::coop;
use super::machine::{Attempt, Call, Next, Phase};
use super::options::{Observed, Options};
use crate::error::rejected::Rejected;
use crate::retrier::event::Listen;
use crate::time::Sleep;

/// A call and its single timer, for a sleep or for the time limit of an attempt.
pub(crate) struct PollCall<X: Options, T: Sleep + Clone> {
    pub(crate) call: Call<X, T>,
    sleeping: Option<T::Sleeping>,
}

impl<X: Options, T: Sleep + Clone> PollCall<X, T> {
    #[inline]
    pub(crate) const fn new(call: Call<X, T>) -> Self {
        Self { call, sleeping: None }
    }

    /// Starts the call, unless it has started already: the timer of its initial spread runs.
    #[inline]
    pub(crate) fn start(&mut self) {
        if self.call.phase == Phase::Fresh {
            self.start_fresh();
        }
    }

    #[cold]
    fn start_fresh(&mut self) {
        let delay = self.call.start(self.call.clock.resolution());
        self.wait(delay);
    }

    /// Waits until the next attempt is due, and asks the guards to admit it. Starts the timer of its time limit.
    /// Pending forever after the end of the call.
    #[inline(always)]
    pub(crate) fn poll_begin<L: Listen>(
        &mut self,
        listener: &L,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, (StopReason, Rejected)>> {
        self.start();
        loop {
            ready!(self.poll_due(cx));
            let wait = self.call.turn(listener)?;
            if wait.is_zero() {
                break;
            }
            self.arm(wait);
            self.call.phase = Phase::Sleeping;
        }
        let attempt = self.call.attempt();
        if let Some(limit) = attempt.time_limit {
            self.arm(limit);
            self.call.phase = Phase::Timed;
        }
        Poll::Ready(Ok(attempt))
    }

    /// Waits until the next attempt is due. Pending forever after the end of the call.
    #[inline(always)]
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let call = &mut self.call;
        if call.phase == Phase::Sleeping {
            let Some(sleeping) = &mut self.sleeping else { return Poll::Pending };
            loop {
                ready!(Pin::new(&mut *sleeping).poll(cx));
                match call.remaining_wait() {
                    Some(left) => call.clock.rearm(sleeping, left),
                    None => break,
                }
            }
        } else if call.phase == Phase::Yielding {
            call.phase = Phase::Due;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        } else if call.phase != Phase::Due {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Skips the rest of a wait: the next attempt is due now.
    pub(crate) fn skip_wait(&mut self) {
        if self.call.phase == Phase::Sleeping {
            self.call.forget_wait();
            self.call.phase = Phase::Due;
        }
    }

    /// Completes when the time limit of the attempt elapses. Pending forever if it has none.
    #[inline]
    pub(crate) fn poll_limit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleeping {
            Some(limit) if !X::PLAIN && self.call.phase == Phase::Timed => Pin::new(limit).poll(cx),
            _ => Poll::Pending,
        }
    }

    /// Records that the attempt failed. Returns the reason to stop, or `None` if another attempt follows, which
    /// [`poll_begin`](Self::poll_begin) waits for.
    #[inline(always)]
    pub(crate) fn failed<E, L: Listen>(
        &mut self,
        listener: &L,
        outcome: Outcome,
        error: Option<&E>,
    ) -> Option<StopReason>
    where
        X: Observed<E>,
    {
        match self.call.failed(listener, outcome, error, self.call.clock.resolution()) {
            Next::Stop(stop) => Some(stop),
            Next::Wait { delay, .. } => {
                self.wait(delay);
                None
            }
        }
    }

    /// Records that the time limit of the attempt elapsed; returns what [`failed`](Self::failed) does.
    #[cold]
    pub(crate) fn timed_out<E, L: Listen>(&mut self, listener: &L) -> Option<StopReason>
    where
        X: Observed<E>,
    {
        self.failed(listener, Outcome::TRANSIENT, None)
    }

    #[inline]
    fn wait(&mut self, delay: Duration) {
        if !delay.is_zero() {
            self.arm(delay);
            self.call.watch_wait(delay);
            self.call.phase = Phase::Sleeping;
        } else if coop::should_yield(self.call.attempts()) {
            self.call.phase = Phase::Yielding;
        }
    }

    fn arm(&mut self, length: Duration) {
        match &mut self.sleeping {
            Some(sleeping) => self.call.clock.rearm(sleeping, length),
            None => self.sleeping = Some(self.call.clock.sleep(length)),
        }
    }
}
