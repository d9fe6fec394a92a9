//! The wheel with a timer.

use core::fmt;
use core::future::poll_fn;
use core::iter::from_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use stagger_core::Instant;

use super::slab::{Key, QueueFull};
use super::wheel::Wheel;
use crate::call::coop;
use crate::time::Sleep;

/// A [`Wheel`] with a timer: yields items when they are due, on one task and with one timer for all of them.
///
/// It accepts what the wheel accepts, however many items are pending. [`RetryQueue`](super::RetryQueue) adds a policy.
///
/// - An item is never early. It is late by less than one tick of the wheel (1 ms, or the timer's own resolution if that
///   is coarser), plus the lateness of the timer.
/// - An item pushed without a delay does not touch the timer.
/// - The clock is read once per push, and once for all items that are due at the same time.
/// - The queue is not shared: pushing needs `&mut`. A task can wait for the queue and for its input in one `select!`.
///
/// ```
/// use std::time::Duration;
/// use stagger::queue::DelayQueue;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut queue = DelayQueue::new();
/// queue.push("second", Duration::from_secs(60))?;
/// queue.push("first", Duration::from_millis(5))?;
/// let third = queue.push("third", Duration::from_secs(120))?;
/// assert_eq!(queue.next().await, Some("first"));
/// assert_eq!(queue.cancel(third), Some("third"));
/// assert_eq!((queue.next().await, queue.next().await), (Some("second"), None));
/// # Ok::<(), stagger::queue::QueueFull<&str>>(()) }).unwrap();
/// ```
pub struct DelayQueue<T, S: Sleep> {
    wheel: Wheel<T>,
    pub(super) timer: S,
    sleeping: Option<S::Sleeping>,
    armed: Option<Armed>,
    /// The latest reading of the clock: items due by then are due.
    seen: Instant,
    /// The waiting task, woken if an earlier item is pushed.
    waker: Option<Waker>,
    yielded_in_a_row: u32,
    rejected: u64,
}

/// An armed timer: when it was armed, and for which instant.
#[derive(Clone, Copy)]
struct Armed {
    at: Instant,
    until: Instant,
}

#[cfg(feature = "tokio")]
impl<T> DelayQueue<T, crate::time::Tokio> {
    /// Creates an empty queue on tokio's timer.
    #[must_use]
    pub fn new() -> Self {
        Self::with_timer(crate::time::Tokio)
    }
}

#[cfg(feature = "tokio")]
impl<T> Default for DelayQueue<T, crate::time::Tokio> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Sleep> DelayQueue<T, S> {
    /// Creates an empty queue on this timer.
    #[must_use]
    pub fn with_timer(timer: S) -> Self {
        let seen = timer.now();
        let tick = timer.resolution().max(Duration::from_millis(1));
        let wheel = Wheel::new(tick, seen);
        Self { wheel, timer, sleeping: None, armed: None, seen, waker: None, yielded_in_a_row: 0, rejected: 0 }
    }

    /// Sets how many items may be pending; a push beyond that is rejected. Default and maximum: 2³² − 1.
    #[must_use]
    pub fn capacity(self, capacity: usize) -> Self {
        Self { wheel: self.wheel.capacity(capacity), ..self }
    }

    /// Reserves memory for at least `additional` more items, so that pushing them does not allocate.
    pub fn reserve(&mut self, additional: usize) {
        self.wheel.reserve(additional);
    }

    /// Returns the number of pending items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Returns true if no item is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Adds an item that is due after this time. With a delay of zero it is due immediately, after the items that are
    /// already due.
    ///
    /// # Errors
    /// Returns [`QueueFull`], with the item, if the queue is at capacity.
    pub fn push(&mut self, item: T, after: Duration) -> Result<Key, QueueFull<T>> {
        let due = self.due_after(after);
        self.push_at(item, due)
    }

    /// Adds an item that is due at an instant of the timer's clock, without reading the clock.
    ///
    /// # Errors
    /// Returns [`QueueFull`], with the item, if the queue is at capacity.
    pub fn push_at(&mut self, item: T, due: Instant) -> Result<Key, QueueFull<T>> {
        let pushed = self.wheel.insert(item, due);
        match pushed {
            Ok(_) => self.wake_if_earlier(due),
            Err(_) => self.rejected += 1,
        }
        pushed
    }

    /// Removes an item before it is due. Returns `None` if it is no longer pending.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.wheel.cancel(key)
    }

    /// Changes when an item is due, to this time from now. Returns `false` if it is no longer pending.
    pub fn reschedule(&mut self, key: Key, after: Duration) -> bool {
        let due = self.due_after(after);
        let is_pending = self.wheel.reschedule(key, due);
        if is_pending {
            self.wake_if_earlier(due);
        }
        is_pending
    }

    /// Returns the item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.wheel.get(key)
    }

    /// Returns when this item is due, on the timer's clock, if it is still pending.
    #[must_use]
    pub fn due(&self, key: Key) -> Option<Instant> {
        self.wheel.due(key)
    }

    /// Returns when the first item is due, on the timer's clock. See [`Wheel::next_due`] for its cost.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.wheel.next_due()
    }

    /// Returns a snapshot for metrics. Reads the clock; see [`Wheel::next_due`] for its cost.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot {
        let overdue = self.next_due().map_or(Duration::ZERO, |due| self.timer.now().saturating_since(due));
        QueueSnapshot { pending: self.len(), overdue, rejected: self.rejected }
    }

    /// Waits for the next item to be due. Returns `None` if nothing is pending; items pushed later are yielded by later
    /// calls.
    ///
    /// Cancel-safe: an item that was not returned is still pending. In a `select!`, the pattern `Some(item) =
    /// queue.next()` disables the branch while the queue is empty.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next item; see [`next`](Self::next). With the feature `stream` the queue is a `Stream`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let is_due = ready!(self.poll_due(cx));
        Poll::Ready(if is_due { self.pop() } else { None })
    }

    /// Waits until an item is due, and leaves it in the queue. Returns false if nothing is pending.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if coop::should_yield(self.yielded_in_a_row) {
            self.yielded_in_a_row = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if self.is_due() {
                self.yielded_in_a_row = self.yielded_in_a_row.wrapping_add(1);
                return Poll::Ready(true);
            }
            let Some(until) = self.wheel.wake_at() else { return Poll::Ready(false) };
            let armed = self.arm(until);
            if let Some(sleeping) = &mut self.sleeping {
                if Pin::new(sleeping).poll(cx).is_pending() {
                    self.store_waker(cx);
                    return Poll::Pending;
                }
            }
            self.armed = None;
            if self.timer.now() == armed.at {
                // The sleep ended and no time has passed: the clock of a test stands still, so trust its timer.
                self.seen = until;
            }
        }
    }

    /// Returns all pending items in order, with their due times, for shutdown.
    pub fn into_pending(mut self) -> impl Iterator<Item = (Instant, T)> {
        from_fn(move || self.wheel.pop_first())
    }

    /// Removes and returns the next item that is due now.
    pub(super) fn pop(&mut self) -> Option<T> {
        if let item @ Some(_) = self.wheel.pop(self.seen) {
            return item;
        }
        self.seen = self.timer.now();
        self.wheel.pop(self.seen)
    }

    /// Returns whether an item is due now.
    fn is_due(&mut self) -> bool {
        if self.wheel.is_due(self.seen) {
            return true;
        }
        self.seen = self.timer.now();
        self.wheel.is_due(self.seen)
    }

    /// Returns the next item that is due now, and its key.
    pub(super) fn first_due(&mut self) -> Option<(Key, &mut T)> {
        let key = self.wheel.first_due(self.seen)?;
        Some((key, self.wheel.get_mut(key)?))
    }

    fn due_after(&self, after: Duration) -> Instant {
        let now = self.timer.now();
        if after.is_zero() { self.wheel.last_tick(now) } else { now.saturating_add(after) }
    }

    /// Arms the timer, unless it is already armed for `until`.
    fn arm(&mut self, until: Instant) -> Armed {
        if let Some(armed) = self.armed {
            if armed.until == until {
                return armed;
            }
        }
        let length = until.saturating_since(self.seen);
        match &mut self.sleeping {
            Some(sleeping) => self.timer.rearm(sleeping, length),
            None => self.sleeping = Some(self.timer.sleep(length)),
        }
        *self.armed.insert(Armed { at: self.seen, until })
    }

    fn store_waker(&mut self, cx: &Context<'_>) {
        self.yielded_in_a_row = 0;
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }

    /// Wakes the waiting task if this item is due before the one it waits for.
    fn wake_if_earlier(&mut self, due: Instant) {
        if self.armed.is_some_and(|armed| due < armed.until) {
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}

/// Nothing is pinned structurally.
impl<T, S: Sleep> Unpin for DelayQueue<T, S> {}

/// Ends whenever nothing is pending, and continues when more is pushed: not a fused stream.
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<T, S: Sleep> futures_core::Stream for DelayQueue<T, S> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_next(cx)
    }
}

impl<T, S: Sleep> fmt::Debug for DelayQueue<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("wheel", &self.wheel).finish_non_exhaustive()
    }
}

/// The state of a queue, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueSnapshot {
    /// Number of pending items.
    pub pending: usize,
    /// How long the first item has been due without being taken; zero if none is due.
    pub overdue: Duration,
    /// Number of items rejected since the queue was created, because it was at capacity.
    pub rejected: u64,
}
