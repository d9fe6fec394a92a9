use stagger_core::machine::{Paused, RetryMachine};
use stagger_core::{Instant, StopReason};

use super::full::QueueFull;
use super::gave_up::{GaveUp, GiveUpReason};
use super::job::{ItemState, resume};
use super::pending::Pending;
use super::retry::{RetryQueue, Waiting};
use super::slab::Key;
use crate::call::permits::WaitingPermits;
use crate::retrier::event::Silent;
use crate::time::Sleep;

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// Returns a snapshot of this item, if it is still pending, for a process that must not lose it even if it is
    /// killed.
    #[must_use]
    pub fn pending(&self, key: Key) -> Option<Pending<&T>> {
        let due = self.queue.due(key)?;
        let Waiting { item, state } = self.queue.get(key)?;
        Some(at_rest(state, item, due, self.queue.timer.now()))
    }

    /// Returns all pending items in order, with their state, for shutdown. Their permits are released. Jobs in progress
    /// are not pending.
    pub fn into_pending(self) -> impl Iterator<Item = Pending<T>> {
        let now = self.queue.timer.now();
        self.queue.into_pending().map(move |(due, Waiting { item, state })| at_rest(&state, item, due, now))
    }

    /// Adds an item that was pending before, in this process or another one: it waits for the rest of its delay, and
    /// continues with its next attempt and its own seed, under the policy of this queue.
    ///
    /// A new permit is acquired from the budget, as after a transient failure, because the previous one was released.
    ///
    /// # Errors
    /// Returns [`GaveUp`], with the item unchanged: with [`StopReason::Attempts`] if the policy allows no further
    /// attempt, with [`StopReason::Budget`] if the budget grants no permit, or with [`GiveUpReason::Full`] if the queue
    /// is at capacity. Listeners of the retrier receive the first two as the end of the item's call.
    pub fn restore(&mut self, pending: Pending<T>) -> Result<Key, GaveUp<Pending<T>>> {
        let Pending { item, left, paused } = pending;
        let gave_up =
            |item, reason| GaveUp { item: Pending { item, left, paused }, reason, attempts: paused.attempt() };
        match self.resumed(paused) {
            Ok(state) => self
                .queue
                .push(Waiting { item, state }, left)
                .map_err(|QueueFull(waiting)| gave_up(waiting.item, GiveUpReason::Full)),
            Err(stop) => {
                let state = self.state_of(paused);
                resume(&self.retrier, state, self.queue.timer.clone()).emit_stop(&Silent, stop);
                Err(gave_up(item, GiveUpReason::Stop(stop)))
            }
        }
    }

    /// Restores the state of a paused item, without permits.
    fn state_of(&self, paused: Paused) -> ItemState {
        ItemState { state: paused.resume(self.queue.timer.now()), seed: paused.seed(), ..ItemState::FRESH }
    }

    /// Restores the state of a paused item, and acquires new permits in place of the released ones.
    fn resumed(&self, paused: Paused) -> Result<ItemState, StopReason> {
        let timer = &self.queue.timer;
        let mut state = self.state_of(paused);
        let retry = RetryMachine::new(self.retrier.policy(), &mut state.state, state.seed);
        if retry.is_last_attempt() {
            return Err(StopReason::Attempts);
        }
        let guards = self.retrier.shared().guards();
        let permits = retry.reacquire(|| timer.now(), &guards)?;
        state.permits = WaitingPermits::new(permits, (!guards.is_unguarded()).then(|| self.retrier.clone()));
        Ok(state)
    }
}

/// Returns an item at rest, with its state.
const fn at_rest<T>(state: &ItemState, item: T, due: Instant, now: Instant) -> Pending<T> {
    Pending::new(item, due.saturating_since(now), state.state.pause(state.seed, now))
}
