//! How the items of a queue wait for a quiet period to end.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use stagger_core::Budget;
use stagger_core::guard::{Limiter, LimiterPermit, Now, Turn};

use crate::retrier::event::{Action, Event};
use crate::retrier::handle::Retrier;
use crate::time::Sleep;

/// The places of a queue among the calls that wait for a quiet period to end. Its items take turns in them, and wait in
/// the queue, where they can be cancelled. There are two, so that one item still waits when the first one starts:
/// otherwise the paced return would end, and all other items would start at once.
pub(super) struct QueueTurn<S: Sleep> {
    quiet: Option<Arc<dyn Limiter>>,
    first: LimiterPermit,
    second: LimiterPermit,
    waiting: Option<S::Sleeping>,
    is_held: bool,
}

/// The shortest wait before the queue asks again after it was rejected.
const LEAST: Duration = Duration::from_millis(1);

impl<S: Sleep> QueueTurn<S> {
    pub(super) fn new(retrier: &Retrier) -> Self {
        let quiet = retrier.shared().quiet.clone();
        Self { quiet, first: LimiterPermit::NONE, second: LimiterPermit::NONE, waiting: None, is_held: false }
    }

    /// Waits until the quiet period lets the next attempt start, and returns its permit. A quiet period that rejects
    /// calls does not end the item: it stays in the queue until it could start.
    pub(super) fn poll(&mut self, retrier: &Retrier, timer: &S, cx: &mut Context<'_>) -> Poll<LimiterPermit> {
        let Some(quiet) = self.quiet.clone() else { return Poll::Ready(LimiterPermit::NONE) };
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(Pin::new(waiting).poll(cx));
                self.waiting = None;
            }
            let after = match self.ask(&*quiet, &timer.now()) {
                Ok(permit) => {
                    if core::mem::take(&mut self.is_held) {
                        emit(retrier, Action::Resumed);
                    }
                    return Poll::Ready(permit);
                }
                Err(after) => after,
            };
            self.waiting = Some(timer.sleep(after));
            if !core::mem::replace(&mut self.is_held, true) {
                emit(retrier, Action::Held { after });
            }
        }
    }

    /// Asks with the first place. Returns the permit to start with, or how long to wait.
    fn ask(&mut self, quiet: &dyn Limiter, now: &dyn Now) -> Result<LimiterPermit, Duration> {
        if self.first != LimiterPermit::NONE && self.second == LimiterPermit::NONE {
            match quiet.admit(LimiterPermit::NONE, None, now) {
                Turn::Now(permit) => return Ok(permit),
                Turn::Wait { permit, .. } => self.second = permit,
                Turn::Rejected { .. } => {}
            }
        }
        match quiet.admit(take(&mut self.first), None, now) {
            Turn::Now(permit) => {
                self.first = take(&mut self.second);
                Ok(permit)
            }
            Turn::Wait { after, permit } => {
                self.first = permit;
                Err(after)
            }
            Turn::Rejected { retry_in } => Err(retry_in.max(LEAST)),
        }
    }

    /// Returns a permit to start now, or `None` if the quiet period holds the attempt.
    pub(super) fn now(&self, timer: &S) -> Option<LimiterPermit> {
        let Some(quiet) = &self.quiet else { return Some(LimiterPermit::NONE) };
        let now = timer.now();
        match quiet.admit(LimiterPermit::NONE, Some(now), &now) {
            Turn::Now(permit) => Some(permit),
            Turn::Wait { permit, .. } => {
                quiet.release(permit);
                None
            }
            Turn::Rejected { .. } => None,
        }
    }

    /// Leaves the places: nothing is due any more.
    pub(super) fn leave(&mut self) {
        self.waiting = None;
        self.is_held = false;
        for permit in [take(&mut self.first), take(&mut self.second)] {
            self.give_back(permit);
        }
    }

    /// Gives back the permit of an attempt that is not made.
    pub(super) fn give_back(&self, permit: LimiterPermit) {
        if let (Some(quiet), true) = (&self.quiet, permit != LimiterPermit::NONE) {
            quiet.release(permit);
        }
    }
}

const fn take(permit: &mut LimiterPermit) -> LimiterPermit {
    core::mem::replace(permit, LimiterPermit::NONE)
}

impl<S: Sleep> Drop for QueueTurn<S> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<S: Sleep> fmt::Debug for QueueTurn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueTurn").field("is_held", &self.is_held).finish_non_exhaustive()
    }
}

/// Emits the event of the queue, whose items wait together.
fn emit(retrier: &Retrier, action: Action) {
    retrier.shared().emit(|| Event {
        target: "",
        attempt: 0,
        max_attempts: retrier.policy().max_attempts(),
        elapsed: Duration::ZERO,
        budget_left: retrier.shared().guards().budget.and_then(Budget::available),
        action,
        retry_in: None,
        error: None,
        unreachable: None,
        rules: None,
    });
}
