use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::sync::Arc;

use super::job::{Course, Terms};
use super::{DelayQueue, GaveUp, GiveUpReason, Job, Key, QueueFull, QueueSnapshot};
use crate::{
    Breaker, Budget, DelaySource, Instant, Outcome, Policy, Seed, StopReason, machine::Decision, machine::RetryMachine,
    time::Entropy, time::Sleep, time::SystemEntropy,
};

/// Retries in bulk: the items of a consumer, or the connections of a fleet, that wait for their next attempt.
///
/// A task for each retry costs half a kilobyte; here a pending one costs 80 bytes beside the item, and all of them are
/// one task with one timer. Every decision is the core's, so the policy, its limits, a budget and a breaker hold for all
/// of them together: see [`RetryMachine`].
///
/// 1. [`begin`](Self::begin) an item whose first attempt is to be made now, or [`push`](Self::push) it for later.
/// 2. Make the attempt with the [`Job`] that comes of it.
/// 3. [`succeeded`](Job::succeeded), or [`push_retry`](Self::push_retry), which decides.
/// 4. [`next`](Self::next) gives the job back when its time has come.
///
/// What is borrowed from the guards for a retry that waits is given back when it is cancelled, when the queue is
/// dropped, and by [`into_pending`](Self::into_pending). Waits are held like those of a [`DelayQueue`].
///
/// A consumer that is shut down loses nothing: what [`into_pending`](Self::into_pending) hands back can be
/// [restored](Self::restore) in another process. One that may be killed writes down what is
/// [pending](Self::pending) as it goes.
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
    pub(super) terms: Arc<Terms>,
    seeds: Seeds,
}

pub(super) struct Waiting<T> {
    pub(super) item: T,
    pub(super) course: Course,
}

/// An item that was taken into the queue for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// For [`cancel`](RetryQueue::cancel) and [`reschedule`](RetryQueue::reschedule).
    pub key: Key,
    /// How long it waits.
    pub after: Duration,
    /// Where the delay comes from.
    pub source: DelaySource,
}

#[cfg(feature = "tokio")]
impl<T> RetryQueue<T, crate::time::Tokio> {
    /// Items are retried as this policy says; on tokio's timer.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::with_timer(crate::time::Tokio, policy)
    }
}

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// Items are retried as this policy says; on this timer.
    #[must_use]
    pub fn with_timer(timer: S, policy: Policy) -> Self {
        let terms = Arc::new(Terms { policy, budget: None, breaker: None });
        Self { queue: DelayQueue::with_timer(timer), terms, seeds: Seeds::System }
    }

    /// Every retry is paid for by this budget, when it is taken into the queue.
    #[must_use]
    pub fn budget(mut self, budget: Arc<dyn Budget>) -> Self {
        Arc::make_mut(&mut self.terms).budget = Some(budget);
        self
    }

    /// Every attempt asks this breaker, when its time has come.
    #[must_use]
    pub fn breaker(mut self, breaker: Arc<dyn Breaker>) -> Self {
        Arc::make_mut(&mut self.terms).breaker = Some(breaker);
        self
    }

    /// At most so many may be pending. Default, and most: 2³² − 1.
    #[must_use]
    pub fn capacity(mut self, most: usize) -> Self {
        self.queue.bound(most);
        self
    }

    /// Draws the delays from seeds that are made of this one, so that they can be repeated: for tests.
    #[must_use]
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seeds = Seeds::Of(seed, 0);
        self
    }

    /// Makes room for so many more, so that taking them in allocates nothing.
    pub fn reserve(&mut self, additional: usize) {
        self.queue.reserve(additional);
    }

    /// How many are pending.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Puts an item in whose first attempt is due after this length of time, and the policy's spread.
    ///
    /// # Errors
    /// [`QueueFull`] gives the item back if as many are pending as may be.
    pub fn push(&mut self, item: T, after: Duration) -> Result<Key, QueueFull<T>> {
        let mut course = Course::new(Arc::clone(&self.terms));
        let mut wait = after;
        if !self.terms.policy.spread().is_zero() {
            course.seed = self.seeds.draw();
            let (mut retry, ..) = course.parts();
            let spread = retry.spread(|| self.queue.timer().now());
            wait = wait.saturating_add(retry.on_ticks(spread, DelaySource::Spread, self.queue.timer().resolution()));
        }
        self.queue.push(Waiting { item, course }, wait).map_err(|QueueFull(waiting)| QueueFull(waiting.item))
    }

    /// Begins the first attempt of an item now, without the queue.
    ///
    /// # Errors
    /// [`GaveUp`] with [`StopReason::Breaker`] if the breaker refuses.
    pub fn begin(&mut self, item: T) -> Result<Job<T, S>, GaveUp<T>> {
        self.begun(Waiting { item, course: Course::new(Arc::clone(&self.terms)) })
    }

    /// The attempt failed with this outcome: puts the item in for another one, when and if the policy and the guards
    /// say so. A success with an error beside it counts as a permanent failure; a real one is for
    /// [`Job::succeeded`].
    ///
    /// # Errors
    /// [`GaveUp`] gives the item back when there is no further attempt, or when as many are pending as may be.
    pub fn push_retry(&mut self, job: Job<T, S>, outcome: Outcome) -> Result<Queued, GaveUp<T>> {
        let Job { item, mut attempt } = job;
        let outcome = if outcome == Outcome::Success { Outcome::Permanent } else { outcome };
        let (decision, mut course) = attempt.decide(outcome, || self.seeds.draw());
        let attempts = course.state.attempt();
        let (after, source) = match decision {
            Decision::Retry { after, source, .. } => (after, source),
            Decision::Stop(stop) => return Err(GaveUp { item, reason: GiveUpReason::Stop(stop), attempts }),
            // Not a success; there is nothing to repeat.
            _ => return Err(GaveUp { item, reason: GiveUpReason::Stop(StopReason::Permanent), attempts }),
        };
        let resolution = self.queue.timer().resolution();
        let ask =
            RetryMachine::new(&self.terms.policy, &mut course.state, course.seed).on_ticks(after, source, resolution);
        match self.queue.push(Waiting { item, course }, ask) {
            Ok(key) => Ok(Queued { key, after, source }),
            // What was lent is given back with the course.
            Err(QueueFull(waiting)) => Err(GaveUp { item: waiting.item, reason: GiveUpReason::Full, attempts }),
        }
    }

    /// Takes an item out before its time; `None` if it is not pending any more. What was borrowed for it is given back.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.queue.cancel(key).map(|waiting| waiting.item)
    }

    /// Lets its attempt be due after this length of time from now instead. `false` if it is not pending any more. What
    /// is paid stays paid, and no limit is asked again.
    pub fn reschedule(&mut self, key: Key, after: Duration) -> bool {
        self.queue.reschedule(key, after)
    }

    /// The item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.queue.get(key).map(|waiting| &waiting.item)
    }

    /// When the next attempt is due, by the timer's clock. See [`Wheel::next_due`](super::Wheel::next_due) for what it
    /// costs.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.next_due()
    }

    /// How it stands, for metrics. The clock is read; see [`Wheel::next_due`](super::Wheel::next_due) for what it costs.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot {
        self.queue.snapshot()
    }

    /// The next job, when it is due and has begun; `None` if nothing is pending. More may come after a `None`, if more
    /// is pushed.
    ///
    /// Cancel-safe: a job that was not given is still pending. In a `select!`, `Some(due) = queue.next()` leaves this
    /// branch out while the queue is empty.
    ///
    /// # Errors
    /// [`GaveUp`] with [`StopReason::Breaker`] if the breaker refuses it.
    pub async fn next(&mut self) -> Option<Result<Job<T, S>, GaveUp<T>>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next), to be polled. With the feature `stream` a queue is a `Stream`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Job<T, S>, GaveUp<T>>>> {
        let due = ready!(self.queue.poll_next(cx));
        Poll::Ready(due.map(|waiting| self.begun(waiting)))
    }

    fn begun(&self, Waiting { item, mut course }: Waiting<T>) -> Result<Job<T, S>, GaveUp<T>> {
        let timer = self.queue.timer();
        let (mut retry, permit, guards) = course.parts();
        match retry.begin(permit, || timer.now(), &guards) {
            Ok(permit) => {
                course.lent.permit = permit;
                Ok(Job::new(item, course, timer.clone()))
            }
            Err(stop) => Err(GaveUp { item, reason: GiveUpReason::Stop(stop), attempts: course.state.attempt() }),
        }
    }
}

/// Where seeds come from.
#[derive(Debug)]
enum Seeds {
    System,
    Of(Seed, u64),
}

impl Seeds {
    fn draw(&mut self) -> Seed {
        match self {
            Self::System => SystemEntropy.seed(),
            Self::Of(seed, given) => {
                *given = given.wrapping_add(1);
                seed.for_call(*given)
            }
        }
    }
}

/// It ends whenever nothing is pending, and goes on when more is pushed: it is not fused.
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
        f.debug_struct("RetryQueue").field("queue", &self.queue).field("terms", &self.terms).finish_non_exhaustive()
    }
}
