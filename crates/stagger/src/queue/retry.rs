use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use super::job::{ItemState, QueueSettings};
use super::{DelayQueue, GaveUp, GiveUpReason, Job, Key, QueueFull, QueueSnapshot};
use crate::{
    Breaker, Budget, DelaySource, Instant, Outcome, Policy, Seed, StopReason, machine::Decision, machine::RetryMachine,
    time::Entropy, time::Sleep, time::SystemEntropy,
};

/// A queue of pending retries, such as the items of a consumer or the connections of a fleet.
///
/// A task for each retry costs half a kilobyte. Here a pending retry costs 80 bytes beside the item, and all of them
/// share one task and one timer. The queue makes the same decisions as a single call, so the policy, its limits, a
/// budget and a breaker apply to all items together: see [`RetryMachine`].
///
/// 1. [`begin`](Self::begin) an item whose first attempt is due now, or [`push`](Self::push) it for later.
/// 2. Make the attempt with the returned [`Job`].
/// 3. Call [`succeeded`](Job::succeeded), or [`push_retry`](Self::push_retry), which decides what follows.
/// 4. [`next`](Self::next) returns the job when its next attempt is due.
///
/// The permits of a waiting retry are released when it is cancelled, when the queue is dropped, and by
/// [`into_pending`](Self::into_pending). Timing is that of a [`DelayQueue`].
///
/// A consumer that shuts down loses nothing: the items of [`into_pending`](Self::into_pending) can be
/// [restored](Self::restore) in another process. A consumer that may be killed persists its [pending](Self::pending)
/// items as it goes.
///
/// ```
/// use std::time::Duration;
/// use stagger::queue::RetryQueue;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
///
/// # let send = async |message: &str, attempt: u32| if attempt < 3 { Err(()) } else { Ok(message.len()) };
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut queue = RetryQueue::new(POLICY).capacity(100_000);
/// queue.push("a message", Duration::ZERO)?;
///
/// while let Some(due) = queue.next().await {
///     let job = due?;
///     match send(job.item, job.number()).await {
///         Ok(_) => {
///             job.succeeded();
///         }
///         Err(_) => {
///             queue.push_retry(job, Outcome::TRANSIENT)?;
///         }
///     }
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(()) }).unwrap();
/// ```
pub struct RetryQueue<T, S: Sleep> {
    pub(super) queue: DelayQueue<Waiting<T>, S>,
    pub(super) settings: Arc<QueueSettings>,
    seeds: Seeds,
}

pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) state: ItemState,
}

/// A retry that was added to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// Identifies the item for [`cancel`](RetryQueue::cancel) and [`reschedule`](RetryQueue::reschedule).
    pub key: Key,
    /// Delay before the attempt.
    pub after: Duration,
    /// What determined the delay.
    pub source: DelaySource,
}

#[cfg(feature = "tokio")]
impl<T> RetryQueue<T, crate::time::Tokio> {
    /// Creates an empty queue that retries according to `policy`, on tokio's timer.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::with_timer(crate::time::Tokio, policy)
    }
}

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// Creates an empty queue that retries according to `policy`, on this timer.
    #[must_use]
    pub fn with_timer(timer: S, policy: Policy) -> Self {
        let settings = Arc::new(QueueSettings { policy, budget: None, breaker: None });
        Self { queue: DelayQueue::with_timer(timer), settings, seeds: Seeds::System }
    }

    /// Sets the budget that every retry must acquire a permit from when it is added to the queue. Default: none.
    #[must_use]
    pub fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        Arc::make_mut(&mut self.settings).budget = Some(budget);
        self
    }

    /// Sets the breaker that must admit every attempt when it is due. Default: none.
    #[must_use]
    pub fn breaker(mut self, breaker: Arc<dyn Breaker>) -> Self {
        Arc::make_mut(&mut self.settings).breaker = Some(breaker);
        self
    }

    /// Sets how many items may be pending; a push beyond that is rejected. Default and maximum: 2³² − 1.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.queue.set_capacity(capacity);
        self
    }

    /// Sets the seed that the seeds of all items are derived from, for reproducible delays in tests. Default: the
    /// system's entropy.
    #[must_use]
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seeds = Seeds::DerivedFrom(seed, 0);
        self
    }

    /// Reserves memory for at least `additional` more items, so that pushing them does not allocate.
    pub fn reserve(&mut self, additional: usize) {
        self.queue.reserve(additional);
    }

    /// Returns the number of pending items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if no item is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds an item whose first attempt is due after this time, plus the policy's initial spread.
    ///
    /// # Errors
    /// Returns [`QueueFull`], with the item, if the queue is at capacity.
    pub fn push(&mut self, item: T, after: Duration) -> Result<Key, QueueFull<T>> {
        let mut state = ItemState::new(Arc::clone(&self.settings));
        let mut wait = after;
        if !self.settings.policy.spread().is_zero() {
            state.seed = self.seeds.draw();
            let (mut retry, ..) = state.parts();
            let spread = retry.spread(|| self.queue.timer().now());
            wait = wait.saturating_add(retry.on_ticks(spread, DelaySource::Spread, self.queue.timer().resolution()));
        }
        self.queue.push(Waiting { item, state }, wait).map_err(|QueueFull(waiting)| QueueFull(waiting.item))
    }

    /// Begins the first attempt of an item now, bypassing the queue.
    ///
    /// # Errors
    /// Returns [`GaveUp`] with [`StopReason::Breaker`] if the breaker rejects the attempt.
    pub fn begin(&mut self, item: T) -> Result<Job<T, S>, GaveUp<T>> {
        self.begin_attempt(Waiting { item, state: ItemState::new(Arc::clone(&self.settings)) })
    }

    /// Records that the attempt failed with this outcome, and queues the item for another one if the policy and the
    /// guards allow it. An [`Outcome::Success`] is treated as permanent; a real success is reported with
    /// [`Job::succeeded`].
    ///
    /// # Errors
    /// Returns [`GaveUp`], with the item, if there is no further attempt or the queue is at capacity.
    pub fn push_retry(&mut self, job: Job<T, S>, outcome: Outcome) -> Result<Queued, GaveUp<T>> {
        let Job { item, mut attempt } = job;
        let outcome = if outcome == Outcome::Success { Outcome::Permanent } else { outcome };
        let (decision, mut state) = attempt.decide(outcome, || self.seeds.draw());
        let attempts = state.retry.attempt();
        let (after, source) = match decision {
            Decision::Retry { after, source, .. } => (after, source),
            Decision::Stop(stop) => return Err(GaveUp { item, reason: GiveUpReason::Stop(stop), attempts }),
            // Not reachable for a failure; there is nothing to retry.
            _ => return Err(GaveUp { item, reason: GiveUpReason::Stop(StopReason::Permanent), attempts }),
        };
        let resolution = self.queue.timer().resolution();
        let delay =
            RetryMachine::new(&self.settings.policy, &mut state.retry, state.seed).on_ticks(after, source, resolution);
        match self.queue.push(Waiting { item, state }, delay) {
            Ok(key) => Ok(Queued { key, after, source }),
            // The permits are released when `state` is dropped.
            Err(QueueFull(waiting)) => Err(GaveUp { item: waiting.item, reason: GiveUpReason::Full, attempts }),
        }
    }

    /// Removes an item before it is due, and releases its permits. Returns `None` if it is no longer pending.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.queue.cancel(key).map(|waiting| waiting.item)
    }

    /// Changes when the next attempt of an item is due, to this time from now. Returns `false` if it is no longer
    /// pending. Its permits are kept, and no limit is checked again.
    pub fn reschedule(&mut self, key: Key, after: Duration) -> bool {
        self.queue.reschedule(key, after)
    }

    /// Returns the item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.queue.get(key).map(|waiting| &waiting.item)
    }

    /// Returns when the next attempt is due, on the timer's clock. See [`Wheel::next_due`](super::Wheel::next_due) for
    /// its cost.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.next_due()
    }

    /// Returns a snapshot for metrics. Reads the clock; see [`Wheel::next_due`](super::Wheel::next_due) for its cost.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot {
        self.queue.snapshot()
    }

    /// Waits for the next attempt to be due, and begins it. Returns `None` if nothing is pending; items pushed later
    /// are returned by later calls.
    ///
    /// Cancel-safe: a job that was not returned is still pending. In a `select!`, the pattern `Some(due) =
    /// queue.next()` disables the branch while the queue is empty.
    ///
    /// # Errors
    /// Returns [`GaveUp`] with [`StopReason::Breaker`] if the breaker rejects the attempt.
    pub async fn next(&mut self) -> Option<Result<Job<T, S>, GaveUp<T>>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next job; see [`next`](Self::next). With the feature `stream` the queue is a `Stream`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Job<T, S>, GaveUp<T>>>> {
        let due = ready!(self.queue.poll_next(cx));
        Poll::Ready(due.map(|waiting| self.begin_attempt(waiting)))
    }

    fn begin_attempt(&self, Waiting { item, mut state }: Waiting<T>) -> Result<Job<T, S>, GaveUp<T>> {
        let timer = self.queue.timer();
        let (mut retry, permit, guards) = state.parts();
        match retry.begin(permit, || timer.now(), &guards) {
            Ok(permit) => {
                state.permits.permit = permit;
                Ok(Job::new(item, state, timer.clone()))
            }
            Err(stop) => Err(GaveUp { item, reason: GiveUpReason::Stop(stop), attempts: state.retry.attempt() }),
        }
    }
}

/// The source of the items' seeds.
#[derive(Debug)]
enum Seeds {
    System,
    DerivedFrom(Seed, u64),
}

impl Seeds {
    fn draw(&mut self) -> Seed {
        match self {
            Self::System => SystemEntropy.seed(),
            Self::DerivedFrom(seed, count) => {
                *count = count.wrapping_add(1);
                seed.for_call(*count)
            }
        }
    }
}

/// Ends whenever nothing is pending, and continues when more is pushed: not a fused stream.
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T, S: Sleep + Clone> futures_core::Stream for RetryQueue<T, S> {
    type Item = Result<Job<T, S>, GaveUp<T>>;

    fn poll_next(self: core::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_next(cx)
    }
}

impl<T, S: Sleep> fmt::Debug for RetryQueue<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryQueue")
            .field("queue", &self.queue)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
