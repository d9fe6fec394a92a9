//! The delay queue with a policy.

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::{DelaySource, Instant, Outcome, Seed};

use super::delay::{DelayQueue, QueueSnapshot};
use super::job::{GaveUp, GiveUpReason, ItemCall, ItemState, Job, resume};
use super::slab::{Key, QueueFull};
use crate::call::machine::Next;
use crate::classify::marked::OperationError;
use crate::retrier::event::{Action, Event, EventError, Silent};
use crate::retrier::handle::Retrier;
use crate::time::{Sleep, entropy};

/// A queue of pending retries, such as the items of a consumer or the connections of a fleet.
///
/// A task for each retry costs half a kilobyte. Here a pending retry costs 120 bytes beside the item, and all of them
/// share one task and one timer. The queue makes the same decisions as a single call, so the policy, its limits and
/// its guards apply to all items together: see [`RetryMachine`].
///
/// 1. [`begin`](Self::begin) an item whose first attempt is due now, or [`push`](Self::push) it for later.
/// 2. Make the attempt with the returned [`Job`].
/// 3. Call [`succeeded`](Job::succeeded), or [`push_retry`](Self::push_retry), which decides what follows.
/// 4. [`next`](Self::next) returns the job when its next attempt is due.
///
/// While a [guard](Retrier::guard), such as a quiet period or an open breaker, lets no attempt start, items that are
/// due stay in the queue, where they can be cancelled, until it does or the policy's time is over. An item whose guard
/// rejects it asks again when the guard said, within 1 ms to 10 s.
///
/// The permits of a waiting retry are released when it is cancelled, when the queue is dropped, and by
/// [`into_pending`](Self::into_pending). Timing is that of a [`DelayQueue`].
///
/// A consumer that shuts down loses nothing: the items of [`into_pending`](Self::into_pending) can be
/// [restored](Self::restore) in another process. A consumer that may be killed persists its [pending](Self::pending)
/// items as it goes, and each [job](Job::pending) before its attempt: so an item that kills its worker is delayed and
/// given up like any other.
///
/// ```
/// use std::time::Duration;
/// use stagger::queue::RetryQueue;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(3));
///
/// # let send = async |message: &String| if message == "poison" { Err(()) } else { Ok(()) };
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut queue = RetryQueue::new(POLICY).capacity(100_000);
/// let mut dead_letters = Vec::new();
/// queue.push(String::from("poison"), Duration::ZERO)?;
/// queue.push(String::from("a message"), Duration::from_secs(1))?;
///
/// while let Some(due) = queue.next().await {
///     let queued = match due {
///         Ok(job) if send(&job.item).await.is_ok() => {
///             job.succeeded();
///             continue;
///         }
///         Ok(job) => queue.push_retry(job, Outcome::TRANSIENT),
///         Err(rejected) => Err(rejected),
///     };
///     // The others are still in the queue: an item that is given up does not end the loop.
///     if let Err(gave_up) = queued {
///         dead_letters.push(gave_up.item);
///     }
/// }
/// assert_eq!(dead_letters, ["poison"]);
/// # Ok::<(), Box<dyn core::error::Error>>(()) }).unwrap();
/// ```
pub struct RetryQueue<T, S: Sleep + Clone> {
    pub(super) queue: DelayQueue<Waiting<T, S>, S>,
    pub(super) retrier: Retrier,
    /// Until when guards hold items that are due, as far as is known; `None` if they hold none. The listeners have been
    /// told.
    held_until: Option<Instant>,
    /// Number of seeds derived from the retrier's, if it has one.
    derived: u64,
}

pub(super) struct Waiting<T, S: Sleep> {
    pub(super) item: T,
    pub(super) state: ItemState<S>,
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
    /// Creates an empty queue that retries according to a policy or through a [`Retrier`], on tokio's timer.
    #[must_use]
    pub fn new(retrier: impl Into<Retrier>) -> Self {
        Self::with_timer(crate::time::Tokio, retrier)
    }
}

impl<T, S: Sleep + Clone> RetryQueue<T, S> {
    /// Creates an empty queue that retries according to a policy or through a [`Retrier`], on this timer. The rules,
    /// guards and listeners of the retrier apply to every item; the seed of each item is derived from its seed. Its
    /// timeout does not: an attempt is made by the worker.
    #[must_use]
    pub fn with_timer(timer: S, retrier: impl Into<Retrier>) -> Self {
        let retrier = retrier.into();
        Self { queue: DelayQueue::with_timer(timer), retrier, held_until: None, derived: 0 }
    }

    /// Sets how many items may be pending; a push beyond that is rejected. Default and maximum: 2³² − 1.
    #[must_use]
    pub fn capacity(self, capacity: usize) -> Self {
        Self { queue: self.queue.capacity(capacity), ..self }
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
        let mut state = ItemState::FRESH;
        let mut wait = after;
        if !self.retrier.policy().spread().is_zero() {
            state.seed = self.draw_seed();
            // The spread counts as elapsed time; the wait before it does not.
            let start = || self.queue.timer.now().saturating_add(after);
            if self.retrier.shared().has_listeners() {
                state.state = RetryState::started(start());
            }
            let mut retry = RetryMachine::new(self.retrier.policy(), &mut state.state, state.seed);
            let spread = retry.spread(start);
            wait = wait.saturating_add(retry.on_ticks(spread, DelaySource::Spread, self.queue.timer.resolution()));
        }
        self.queue.push(Waiting { item, state }, wait).map_err(|QueueFull(waiting)| QueueFull(waiting.item))
    }

    /// Begins the first attempt of an item now, bypassing the queue.
    ///
    /// # Errors
    /// Returns [`GaveUp`] with [`StopReason::Guard`](crate::StopReason::Guard) if a guard does not let the attempt
    /// start now: [`push`](Self::push) it then.
    pub fn begin(&mut self, item: T) -> Result<Job<T, S>, GaveUp<T>> {
        Job::begin(item, resume(&self.retrier, ItemState::FRESH, self.queue.timer.clone()))
    }

    /// Records that the attempt failed with this outcome, and queues the item for another one if the policy and the
    /// guards allow it. An [`Outcome::Success`] is treated as permanent; a real success is reported with
    /// [`Job::succeeded`].
    ///
    /// # Errors
    /// Returns [`GaveUp`], with the item, if there is no further attempt or the queue is at capacity.
    pub fn push_retry(&mut self, job: Job<T, S>, outcome: Outcome) -> Result<Queued, GaveUp<T>> {
        self.push_decided::<()>(job, outcome, None)
    }

    /// Records that the attempt failed with this error, which is classified by the rules of the queue's retrier, or the
    /// [built-in rules](crate::classify::built_in); see [`push_retry`](Self::push_retry). Listeners receive the error.
    ///
    /// # Errors
    /// Returns [`GaveUp`], with the item, if there is no further attempt or the queue is at capacity.
    pub fn push_failed<E: EventError + OperationError>(
        &mut self,
        job: Job<T, S>,
        error: &E,
    ) -> Result<Queued, GaveUp<T>> {
        let outcome = job.outcome(error);
        self.push_decided(job, outcome, Some(error))
    }

    fn push_decided<E: EventError>(
        &mut self,
        job: Job<T, S>,
        outcome: Outcome,
        error: Option<&E>,
    ) -> Result<Queued, GaveUp<T>> {
        let Job { item, mut call } = job;
        self.seed(&mut call, &outcome);
        let decided = call.failed(&Silent, outcome, error, self.queue.timer.resolution());
        self.push_next(item, call, decided)
    }

    /// Queues an item after an attempt that was not made with a job of this queue, if the policy and the guards allow
    /// another one.
    pub(super) fn push_after<E: EventError>(
        &mut self,
        item: T,
        state: ItemState<S>,
        outcome: Outcome,
        error: Option<&E>,
    ) -> Result<Queued, GaveUp<T>> {
        let mut call = resume(&self.retrier, state, self.queue.timer.clone());
        self.seed(&mut call, &outcome);
        let decided = call.failed_elsewhere(outcome, error, self.queue.timer.resolution());
        self.push_next(item, call, decided)
    }

    /// Queues an item if another attempt follows.
    fn push_next(&mut self, item: T, call: ItemCall<S>, decided: Next) -> Result<Queued, GaveUp<T>> {
        let attempts = call.attempts();
        match decided {
            Next::Wait { delay, after, source } => {
                match self.queue.push(Waiting { item, state: call.into_queued() }, delay) {
                    Ok(key) => Ok(Queued { key, after, source }),
                    // The permits are released when the state is dropped.
                    Err(QueueFull(waiting)) => Err(GaveUp { item: waiting.item, reason: GiveUpReason::Full, attempts }),
                }
            }
            Next::Stop(stop) => Err(GaveUp { item, reason: GiveUpReason::Stop(stop), attempts }),
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
    /// Returns [`GaveUp`] with [`StopReason::Guard`](crate::StopReason::Guard) if a guard will not let the attempt
    /// start within the policy's time, or cannot reserve it again after another one has rejected it.
    pub async fn next(&mut self) -> Option<Result<Job<T, S>, GaveUp<T>>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next job; see [`next`](Self::next). With the feature `stream` the queue is a `Stream`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Job<T, S>, GaveUp<T>>>> {
        loop {
            if !ready!(self.queue.poll_due(cx)) {
                return Poll::Ready(None);
            }
            if let Some(due) = self.begin_due() {
                return Poll::Ready(Some(due));
            }
        }
    }

    /// Begins the item that is due, or gives it up. `None` if it stays in the queue until its guards may let it start.
    fn begin_due(&mut self) -> Option<Result<Job<T, S>, GaveUp<T>>> {
        let timer = self.queue.timer.clone();
        if self.retrier.shared().guards().is_unguarded() {
            let Waiting { item, state } = self.queue.pop()?;
            return Some(Job::begin(item, resume(&self.retrier, state, timer)));
        }
        let (key, waiting) = self.queue.first_due()?;
        let state = core::mem::replace(&mut waiting.state, ItemState::FRESH);
        let mut call = resume(&self.retrier, state, timer);
        let asked = match call.turn_unheard() {
            Err((stop, rejected)) => call.ask_again(stop, rejected),
            turn => turn.map_err(|(stop, _)| stop),
        };
        match asked {
            Ok(after) if !after.is_zero() => {
                waiting.state = call.into_queued();
                self.queue.reschedule(key, after);
                self.hold(after);
                None
            }
            Ok(_) => {
                let item = self.queue.cancel(key)?.item;
                self.resume();
                Some(Ok(Job::begun(item, call)))
            }
            Err(stop) => Some(Err(GaveUp::stopped(self.queue.cancel(key)?.item, &call, stop))),
        }
    }

    /// Records that guards hold an item for this long, and tells the listeners if they held none before.
    fn hold(&mut self, after: Duration) {
        let until = self.queue.timer.now().saturating_add(after);
        let was_held_until = self.held_until.replace(until.max(self.held_until.unwrap_or(until)));
        if was_held_until.is_none() {
            self.tell(Action::Held { after });
        }
    }

    /// Records that an item begins, and tells the listeners if it is the last one that guards held.
    fn resume(&mut self) {
        if self.held_until.is_some_and(|until| until <= self.queue.timer.now()) {
            self.held_until = None;
            self.tell(Action::Resumed);
        }
    }

    fn tell(&self, action: Action) {
        self.retrier.shared().emit(|| Event {
            target: "",
            attempt: 0,
            max_attempts: self.retrier.policy().max_attempts(),
            elapsed: Duration::ZERO,
            budget_left: self.retrier.shared().guards().available(),
            action,
            retry_in: None,
            error: None,
            unreachable: None,
            rules: None,
        });
    }

    /// Sets the seed of a call, if the delay after this outcome may depend on it.
    fn seed(&mut self, call: &mut ItemCall<S>, outcome: &Outcome) {
        if call.needs_seed(outcome, self.queue.timer.resolution()) {
            call.seed_with(|| self.draw_seed());
        }
    }

    /// Returns the seed of an item.
    pub(super) fn draw_seed(&mut self) -> Seed {
        match self.retrier.shared().seed {
            None => entropy::seed(),
            Some(seed) => {
                self.derived = self.derived.wrapping_add(1);
                seed.for_call(self.derived)
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

impl<T, S: Sleep + Clone> fmt::Debug for RetryQueue<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryQueue").field("queue", &self.queue).field("retrier", &self.retrier).finish_non_exhaustive()
    }
}
