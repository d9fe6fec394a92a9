use core::time::Duration;
use std::sync::Arc;

use super::job::Course;
use super::retry::Waiting;
use super::{GaveUp, GiveUpReason, Key, QueueFull, RetryQueue};
use crate::{machine::Paused, time::Sleep};

/// A retry that waits, apart from its queue: what [`RetryQueue::into_pending`] hands back on shutdown, and
/// [`RetryQueue::restore`] takes.
///
/// It has no clock: it tells how long it would still have waited. So it can be kept anywhere for any time, and be taken up
/// by another process; with the feature `serde` it is written down as it is.
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
/// // Who may be killed at any time writes it down now.
/// assert!(queue.pending(key).is_some());
///
/// // Who is told to stop does so at the end.
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
    /// What was left of its wait; zero if it was due.
    pub left: Duration,
    /// What it remembers of its attempts; [`Paused::attempt`] is how many were made.
    pub paused: Paused,
}

impl<T> Pending<T> {
    /// Put together again, from where its parts were kept.
    pub const fn new(item: T, left: Duration, paused: Paused) -> Self {
        Self { item, left, paused }
    }

    /// The same after so much time: for who knows how long the queue was down, and does not want its items to wait for
    /// that time once more. Limits of time count it, too.
    #[must_use]
    pub fn advanced_by(self, by: Duration) -> Self {
        Self { left: self.left.saturating_sub(by), paused: self.paused.advanced_by(by), ..self }
    }
}

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// What this item would be handed back with, if it is still pending: to be written down now, by whoever must not lose
    /// it even if the process is killed.
    #[must_use]
    pub fn pending(&self, key: Key) -> Option<Pending<&T>> {
        let due = self.queue.due(key)?;
        let Waiting { item, course } = self.queue.get(key)?;
        Some(course.pending(item, due, self.queue.timer().now()))
    }

    /// Everything that is pending, in its order and with what it remembers, on shutdown. What was borrowed for it is
    /// given back. Jobs that are being done are not pending.
    pub fn into_pending(self) -> impl Iterator<Item = Pending<T>> {
        let now = self.queue.timer().now();
        self.queue.into_pending().map(move |(due, Waiting { item, course })| course.pending(item, due, now))
    }

    /// Takes in what was pending before, in this process or in another: it waits for what was left of its delay, and goes
    /// on with its next attempt and its own seed, under the policy of this queue.
    ///
    /// A retry is paid for again, as after a transient failure, since what was borrowed for it was given back.
    ///
    /// # Errors
    /// [`GaveUp`] gives it back as it came, with [`StopReason::Budget`](crate::StopReason::Budget) if the budget refuses to pay, or with [`GiveUpReason::Full`].
    pub fn restore(&mut self, pending: Pending<T>) -> Result<Key, GaveUp<Pending<T>>> {
        let Pending { item, left, paused } = pending;
        let stopped =
            |item, why| GaveUp { item: Pending { item, left, paused }, reason: why, attempts: paused.attempt() };
        let now = self.queue.timer().now();
        let course = match Course::resumed(paused, Arc::clone(&self.terms), now) {
            Ok(course) => course,
            Err(stop) => return Err(stopped(item, GiveUpReason::Stop(stop))),
        };
        self.queue
            .push(Waiting { item, course }, left)
            .map_err(|QueueFull(waiting)| stopped(waiting.item, GiveUpReason::Full))
    }
}
