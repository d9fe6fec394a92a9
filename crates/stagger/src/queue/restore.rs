//! Items that leave a queue with their state, and come back.

use core::error::Error;
use core::future::poll_fn;
use core::time::Duration;
use core::{fmt, iter};

use stagger_core::machine::{Paused, RetryMachine};
use stagger_core::{Instant, Outcome, StopReason};

use super::batch::Failed;
use super::batch::entry::History;
use super::job::{GaveUp, GiveUpReason, ItemState, resume};
use super::retry::{RetryQueue, Waiting};
use super::slab::{Key, QueueFull};
use crate::call::permits::WaitingPermits;
use crate::retrier::event::{EventError, Silent};
use crate::time::{Clock, Sleep};

/// A pending retry, detached from its queue: returned by
/// [`RetryQueue::into_pending`](super::RetryQueue::into_pending) on shutdown, and accepted by
/// [`RetryQueue::restore`](super::RetryQueue::restore).
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
    /// Remaining wait; zero if the item was due. At most 2⁵³ − 1 s are written by `serde`.
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize_safely"))]
    pub left: Duration,
    /// State of the retries; [`Paused::attempt`] is the number of attempts made, and [`Paused::is_in_flight`] says
    /// whether the last of them was in progress.
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

/// The error of an attempt that was in progress when its process ended, for listeners: it may have killed the process.
///
/// Complete: nothing else is known about the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process ended during the attempt")
    }
}

impl Error for Interrupted {}

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
    /// If its attempt was [in progress](super::Job::pending) when the other process ended, that attempt has failed with
    /// [`Interrupted`], a transient failure: the policy decides whether another one follows and after which delay,
    /// counted from now, and the listeners are told.
    ///
    /// A retry is reserved with the guards again, as after a transient failure, because the earlier permits were
    /// released.
    ///
    /// # Errors
    /// Returns [`GaveUp`], with the item unchanged: with [`StopReason::Attempts`] if the policy allows no further
    /// attempt, with [`StopReason::Guard`] if a guard reserves none, or with [`GiveUpReason::Full`] if the queue
    /// is at capacity; after an interrupted attempt, with any reason for which a failed one is not repeated. Listeners
    /// of the retrier receive all but `Full` as the end of the item's call.
    pub fn restore(&mut self, pending: Pending<T>) -> Result<Key, GaveUp<Pending<T>>> {
        let Pending { item, left, paused } = pending;
        let gave_up =
            |item, reason| GaveUp { item: Pending { item, left, paused }, reason, attempts: paused.attempt() };
        if paused.is_in_flight() {
            let state = self.state_of(paused);
            return match self.push_after(item, state, Outcome::TRANSIENT, Some(&Interrupted)) {
                Ok(queued) => Ok(queued.key),
                Err(GaveUp { item, reason, .. }) => Err(gave_up(item, reason)),
            };
        }
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

    /// Waits until an item is due, and removes it and the others that are due, at most `max` and at least one, without
    /// beginning an attempt: for a [`Batch`](crate::batch::Batch), which makes it. Their permits are released. Returns
    /// `None` if nothing is pending.
    ///
    /// Cancel-safe: an item that was not returned is still pending.
    pub async fn next_batch(&mut self, max: usize) -> Option<Vec<Pending<T>>> {
        let first = poll_fn(|cx| self.queue.poll_next(cx)).await?;
        let rest = iter::from_fn(|| self.queue.pop()).take(max.saturating_sub(1));
        let due: Vec<_> = iter::once(first).chain(rest).collect();
        let now = self.queue.timer.now();
        Some(due.into_iter().map(|Waiting { item, state }| at_rest(&state, item, now, now)).collect())
    }

    /// Adds an item that a [`Batch`](crate::batch::Batch) gave up: it continues with its number of attempts, its own
    /// start and its own seed, under the policy of this queue, which decides by the outcome of its last attempt in the
    /// batch. An item that the batch did not attempt waits for a delay, too, and no attempt is counted.
    ///
    /// The guards of this queue receive no report of the attempt: the batch has reported it to its own. The
    /// coming attempt is reserved with them if it is a retry. The id is dropped; if you need it, put it into the
    /// item.
    ///
    /// # Errors
    /// Returns [`GaveUp`], with all that the batch returned, if there is no further attempt, for example after a
    /// permanent failure, or the queue is at capacity.
    #[expect(
        clippy::result_large_err,
        reason = "the error is all that the batch returned, and it is not on a fast path"
    )]
    pub fn push_from_batch<E: EventError>(&mut self, failed: Failed<T, E>) -> Result<Key, GaveUp<Failed<T, E>>> {
        let Failed { id, item, attempts, error, stop, history } = failed;
        let pushed = match history.outcome {
            Some(outcome) => {
                let state = ItemState { state: history.state(attempts), seed: history.seed, ..ItemState::FRESH };
                self.push_after(item, state, outcome, error.as_ref())
                    .map(|queued| queued.key)
                    .map_err(|gave_up| (gave_up.item, gave_up.reason))
            }
            None => self.push_unattempted(item, attempts, &history, stop),
        };
        pushed.map_err(|(item, reason)| GaveUp {
            item: Failed { id, item, attempts, error, stop, history },
            reason,
            attempts,
        })
    }

    /// Adds an item that was not attempted: immediately, it would meet the same open breaker or short lease again.
    fn push_unattempted(
        &mut self,
        item: T,
        attempts: u32,
        history: &History,
        stop: StopReason,
    ) -> Result<Key, (T, GiveUpReason)> {
        let seed = if history.seed == ItemState::<S>::FRESH.seed { self.draw_seed() } else { history.seed };
        let policy = self.retrier.policy();
        let delay = if policy.allows_retries() { policy.delay(attempts.clamp(1, 65_536), seed) } else { None };
        let Some(left) = delay else {
            return Err((item, GiveUpReason::Stop(stop)));
        };
        if attempts == 0 {
            return self.push(item, left).map_err(|QueueFull(item)| (item, GiveUpReason::Full));
        }
        let mut state = history.state(attempts).as_retry();
        RetryMachine::new(policy, &mut state, seed).seek(attempts.saturating_add(1));
        let paused = state.pause(seed, self.queue.timer.now());
        self.restore(Pending { item, left, paused }).map_err(|gave_up| (gave_up.item.item, gave_up.reason))
    }

    /// Restores the state of a paused item, without permits.
    fn state_of(&self, paused: Paused) -> ItemState<S> {
        ItemState { state: paused.resume(self.queue.timer.now()), seed: paused.seed(), ..ItemState::FRESH }
    }

    /// Restores the state of a paused item, and acquires new permits in place of the released ones.
    fn resumed(&self, paused: Paused) -> Result<ItemState<S>, StopReason> {
        let timer = &self.queue.timer;
        let mut state = self.state_of(paused);
        let retry = RetryMachine::new(self.retrier.policy(), &mut state.state, state.seed);
        if retry.is_last_attempt() {
            return Err(StopReason::Attempts);
        }
        let guards = self.retrier.shared().guards();
        let permits = retry.reacquire(|| timer.now(), &guards)?;
        let guard_source = if guards.is_unguarded() { None } else { Some((self.retrier.clone(), timer.clone())) };
        state.permits = WaitingPermits::new(permits, guard_source);
        Ok(state)
    }
}

/// Returns an item at rest, with its state.
const fn at_rest<T, S: Clock>(state: &ItemState<S>, item: T, due: Instant, now: Instant) -> Pending<T> {
    Pending::new(item, due.saturating_since(now), state.state.pause(state.seed, now))
}

/// Writes a wait whose seconds survive programs whose numbers are all `f64`, such as JavaScript.
#[cfg(feature = "serde")]
fn serialize_safely<S: serde::Serializer>(left: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    const LONGEST: Duration = Duration::from_secs((1 << f64::MANTISSA_DIGITS) - 1);
    serde::Serialize::serialize(&(*left).min(LONGEST), serializer)
}
