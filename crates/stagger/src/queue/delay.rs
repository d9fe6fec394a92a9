use core::fmt;
use core::future::poll_fn;
use core::iter::from_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use super::{Key, QueueFull, QueueSnapshot, Wheel};
use crate::{Instant, fairness, testing, time::Sleep};

/// A [`Wheel`] with a timer: items that come when their time has come, on one task, with one timer for all of them.
///
/// It takes what the wheel takes, however many are pending. [`RetryQueue`](super::RetryQueue) is this with a policy.
///
/// - Never early; late by less than one tick of the wheel (1 ms, or the timer's own resolution if that is coarser), and
///   by whatever the timer is late.
/// - What is pushed with no delay touches no timer.
/// - The clock is read once for a push, and once for all that is due at the same time.
/// - Not shared: whoever pushes needs it mutably, as a task does that waits for it and for its input in one `select!`.
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
    timer: S,
    sleeping: Option<S::Sleeping>,
    armed: Option<Armed>,
    /// When the clock was read last: what was due then is due.
    seen: Instant,
    /// Who waits, to be told when something comes before what it waits for.
    waker: Option<Waker>,
    given_in_a_row: u32,
    refused: u64,
}

/// What the timer was told.
#[derive(Clone, Copy)]
struct Armed {
    at: Instant,
    until: Instant,
}

#[cfg(feature = "tokio")]
impl<T> DelayQueue<T, crate::time::Tokio> {
    /// Nothing is pending; on tokio's timer.
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
    /// Nothing is pending; on this timer.
    #[must_use]
    pub fn with_timer(timer: S) -> Self {
        let seen = timer.now();
        let tick = timer.resolution().max(Duration::from_millis(1));
        let wheel = Wheel::new(tick, seen);
        Self { wheel, timer, sleeping: None, armed: None, seen, waker: None, given_in_a_row: 0, refused: 0 }
    }

    /// At most so many may be pending. Default, and most: 2³² − 1.
    #[must_use]
    pub fn capacity(mut self, most: usize) -> Self {
        self.bound(most);
        self
    }

    /// Makes room for so many more, so that pushing them allocates nothing.
    pub fn reserve(&mut self, additional: usize) {
        self.wheel.reserve(additional);
    }

    /// How many are pending.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Puts an item in, to come after this length of time; with zero, at once, behind what is due already.
    ///
    /// # Errors
    /// [`QueueFull`] gives the item back if as many are pending as may be.
    pub fn push(&mut self, item: T, after: Duration) -> Result<Key, QueueFull<T>> {
        let due = self.due_after(after);
        self.push_at(item, due)
    }

    /// The same at an instant of the timer's clock, which is not read.
    ///
    /// # Errors
    /// [`QueueFull`] gives the item back.
    pub fn push_at(&mut self, item: T, due: Instant) -> Result<Key, QueueFull<T>> {
        match self.wheel.insert(item, due) {
            Ok(key) => {
                self.call_if_earlier(due);
                Ok(key)
            }
            Err(full) => {
                self.refused += 1;
                Err(full)
            }
        }
    }

    /// Takes an item out before its time; `None` if it is not pending any more.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.wheel.cancel(key)
    }

    /// Lets it come after this length of time from now instead. `false` if it is not pending any more.
    pub fn reschedule(&mut self, key: Key, after: Duration) -> bool {
        let due = self.due_after(after);
        let is_pending = self.wheel.reschedule(key, due);
        if is_pending {
            self.call_if_earlier(due);
        }
        is_pending
    }

    /// The item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.wheel.get(key)
    }

    /// When this item comes, by the timer's clock, if it is still pending.
    #[must_use]
    pub fn due(&self, key: Key) -> Option<Instant> {
        self.wheel.due(key)
    }

    /// When the first item comes, by the timer's clock. See [`Wheel::next_due`] for what it costs.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.wheel.next_due()
    }

    /// How it stands, for metrics. The clock is read; see [`Wheel::next_due`] for what it costs.
    #[must_use]
    pub fn snapshot(&self) -> QueueSnapshot {
        let overdue = self.next_due().map_or(Duration::ZERO, |due| self.timer.now().saturating_since(due));
        QueueSnapshot { pending: self.len(), overdue, refused: self.refused }
    }

    /// The next item, when it is due; `None` if nothing is pending. More may come after a `None`, if more is pushed.
    ///
    /// Cancel-safe: an item that was not given is still pending. In a `select!`, `Some(item) = queue.next()` leaves
    /// this branch out while the queue is empty.
    pub async fn next(&mut self) -> Option<T> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next), to be polled. With the feature `stream` a queue is a `Stream`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if fairness::is_over(self.given_in_a_row) {
            self.given_in_a_row = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if let Some(item) = self.pop() {
                self.given_in_a_row = self.given_in_a_row.wrapping_add(1);
                return Poll::Ready(Some(item));
            }
            let Some(until) = self.wheel.wake_at() else { return Poll::Ready(None) };
            if testing::sleeps_are_skipped() {
                self.seen = until;
                continue;
            }
            let armed = self.arm(until);
            if let Some(sleeping) = &mut self.sleeping {
                if Pin::new(sleeping).poll(cx).is_pending() {
                    self.wait_for_call(cx);
                    return Poll::Pending;
                }
            }
            self.armed = None;
            if self.timer.now() == armed.at {
                // It has slept and no time has passed: the clock of a test, which stands still. Its timer is believed.
                self.seen = until;
            }
        }
    }

    /// Everything that is pending, in its order and with its time, on shutdown.
    pub fn into_pending(mut self) -> impl Iterator<Item = (Instant, T)> {
        from_fn(move || self.pop_first())
    }

    pub(super) fn bound(&mut self, most: usize) {
        self.wheel.bound(most);
    }

    pub(super) fn pop_first(&mut self) -> Option<(Instant, T)> {
        self.wheel.pop_first()
    }

    pub(super) const fn timer(&self) -> &S {
        &self.timer
    }

    fn pop(&mut self) -> Option<T> {
        if let item @ Some(_) = self.wheel.pop(self.seen) {
            return item;
        }
        self.seen = self.timer.now();
        self.wheel.pop(self.seen)
    }

    fn due_after(&self, after: Duration) -> Instant {
        let now = self.timer.now();
        if after.is_zero() { self.wheel.last_tick(now) } else { now.saturating_add(after) }
    }

    /// Sets the timer, unless it is set for that already.
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

    fn wait_for_call(&mut self, cx: &Context<'_>) {
        self.given_in_a_row = 0;
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }

    /// Wakes up who waits for something later.
    fn call_if_earlier(&mut self, due: Instant) {
        if self.armed.is_some_and(|armed| due < armed.until) {
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}

/// What is polled in place is `Unpin` by itself.
impl<T, S: Sleep> Unpin for DelayQueue<T, S> {}

/// It ends whenever nothing is pending, and goes on when more is pushed: it is not fused.
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
