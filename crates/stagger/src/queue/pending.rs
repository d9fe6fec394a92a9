use core::time::Duration;

use stagger_core::machine::{Paused, RetryMachine};
use stagger_core::{Instant, NestedRetries, StopReason};

use super::full::QueueFull;
use super::gave_up::{GaveUp, GiveUpReason};
use super::job::ItemState;
use super::retry::{RetryQueue, Waiting};
use super::slab::Key;
use crate::call::permits::WaitingPermits;
use crate::time::Sleep;

/// A pending retry, detached from its queue: returned by [`RetryQueue::into_pending`] on shutdown, and accepted by
/// [`RetryQueue::restore`].
///
/// It stores the remaining wait instead of an instant, so it does not depend on a clock: it can be stored for any time,
/// and restored in another process. With the feature `serde` it can be serialized.
///
/// ```
/// use std::time::Duration;
/// use stagger::queue::RetryQueue;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(secs(1), secs(60)).max_attempts(5));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut queue = RetryQueue::new(POLICY);
/// let job = queue.begin("a message")?;
/// let key = queue.push_retry(job, Outcome::TRANSIENT)?.key;
/// // A process that can be killed at any time persists it now.
/// assert!(queue.pending(key).is_some());
///
/// // A process that shuts down in an orderly way persists everything at the end.
/// let pending: Vec<_> = queue.into_pending().collect();
///
/// let mut queue = RetryQueue::new(POLICY);
/// for pending in pending {
///     queue.restore(pending.advanced_by(Duration::from_millis(20)))?;
/// }
/// assert_eq!(queue.next().await.unwrap()?.number(), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pending<T> {
    /// The item.
    pub item: T,
    /// Remaining wait; zero if the item was due.
    pub left: Duration,
    /// State of the retries; [`Paused::attempt`] is the number of attempts made.
    pub paused: Paused,
}

impl<T> Pending<T> {
    /// Creates a pending retry from its stored parts.
    pub const fn new(item: T, left: Duration, paused: Paused) -> Self {
        Self { item, left, paused }
    }

    /// Advances the item's clock by `by`, to account for downtime: the remaining wait shrinks, and time limits count
    /// the downtime, too.
    #[must_use]
    pub fn advanced_by(self, by: Duration) -> Self {
        Self { left: self.left.saturating_sub(by), paused: self.paused.advanced_by(by), ..self }
    }
}

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// Returns a snapshot of this item, if it is still pending, for a process that must not lose it even if it is
    /// killed.
    #[must_use]
    pub fn pending(&self, key: Key) -> Option<Pending<&T>> {
        let due = self.queue.due(key)?;
        let Waiting { item, state } = self.queue.get(key)?;
        Some(at_rest(state, item, due, self.queue.timer().now()))
    }

    /// Returns all pending items in order, with their state, for shutdown. Their permits are released. Jobs in progress
    /// are not pending.
    pub fn into_pending(self) -> impl Iterator<Item = Pending<T>> {
        let now = self.queue.timer().now();
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
    /// is at capacity.
    pub fn restore(&mut self, pending: Pending<T>) -> Result<Key, GaveUp<Pending<T>>> {
        let Pending { item, left, paused } = pending;
        let stopped =
            |item, why| GaveUp { item: Pending { item, left, paused }, reason: why, attempts: paused.attempt() };
        let state = match self.resumed(paused) {
            Ok(state) => state,
            Err(stop) => return Err(stopped(item, GiveUpReason::Stop(stop))),
        };
        self.queue
            .push(Waiting { item, state }, left)
            .map_err(|QueueFull(waiting)| stopped(waiting.item, GiveUpReason::Full))
    }

    /// Restores the state of a paused item, and acquires new permits in place of the released ones.
    fn resumed(&self, paused: Paused) -> Result<ItemState, StopReason> {
        let timer = self.queue.timer();
        let mut state = ItemState { state: paused.resume(timer.now()), seed: paused.seed(), ..ItemState::FRESH };
        let retry = RetryMachine::new(self.retrier.policy(), &mut state.state, state.seed);
        if retry.is_last_attempt() {
            return Err(StopReason::Attempts);
        }
        let guards = self.retrier.shared().guards().nested(NestedRetries::Allow);
        let permits = retry.reacquire(|| timer.now(), &guards)?;
        state.permits = WaitingPermits::new(permits, self.lender());
        Ok(state)
    }
}

/// Returns an item at rest, with its state.
const fn at_rest<T>(state: &ItemState, item: T, due: Instant, now: Instant) -> Pending<T> {
    Pending::new(item, due.saturating_since(now), state.state.pause(state.seed, now))
}
