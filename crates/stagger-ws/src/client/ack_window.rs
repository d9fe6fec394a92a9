//! The unacknowledged messages of a client, and how the connection task sees them.

use core::fmt::{self, Debug};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::acked::{Ack, Acks};
use super::outbox::{SendError, SendErrorKind};
use super::outbox_queue::{Completion, Enqueue, LinkState, enqueue, wake};
use super::telemetry::{Counter, Gauge};
use crate::sync::{lock, wait_until};

/// The messages that an [`AckedClient`](crate::AckedClient) keeps until they are acknowledged, as the connection task
/// sees them: independent of the type of their ids.
pub(super) trait UnackedMessages: Debug + Send + Sync {
    /// Sets whether messages can be sent. When the link comes up, all unacknowledged messages are written again.
    /// Returns how many of them had been written before.
    fn set_link(&self, link: LinkState) -> usize;

    /// Returns the next message to write. If there is none, the task is woken when there is.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Message>;

    /// Drops the message taken last, which no connection can ever write.
    fn drop_last(&self);

    /// Processes an incoming message. Returns whether the stream yields it.
    fn process_incoming(&self, message: &Message) -> AckDelivery;

    /// Returns the acknowledgement timeout.
    fn timeout(&self) -> Option<Duration>;

    /// Returns the deadline of the oldest outstanding acknowledgement, if there is one.
    fn due(&self) -> Option<Instant>;
}

/// Whether the stream yields acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckDelivery {
    /// Yields acknowledgements like any other message.
    PassThrough,
    /// Processes acknowledgements without yielding them.
    Consume,
}

/// The unacknowledged messages in send order, shared between senders and the connection task.
pub(super) struct Window<K> {
    acks: Acks<K>,
    /// Its part of all unacknowledged messages of the target.
    unacked: Gauge,
    resent: Counter,
    inner: Mutex<WindowState<K>>,
    /// Notifies senders that wait for room.
    room: Notify,
    /// Notifies tasks that wait until the window is empty.
    empty: Notify,
}

struct WindowState<K> {
    /// Messages that have ever been written come first.
    entries: VecDeque<Entry<K>>,
    bytes: usize,
    /// How many entries have been written to the current connection: the first ones. A new connection begins with 0, so
    /// that all of them are written again, in order.
    written: usize,
    link: LinkState,
    /// Unacknowledged messages have been returned by `close`.
    returned: bool,
    /// The waker of the connection task.
    task: Option<Waker>,
    /// The waker of the task that waits with the sink.
    sink: Option<Waker>,
}

struct Entry<K> {
    id: K,
    message: Message,
    /// When it was last written.
    written: Option<Instant>,
}

impl<K: Ord + Send + 'static> Window<K> {
    pub(super) fn new(acks: Acks<K>, target: &str) -> Self {
        let inner = WindowState {
            entries: VecDeque::new(),
            bytes: 0,
            written: 0,
            link: LinkState::Down,
            returned: false,
            task: None,
            sink: None,
        };
        let (room, empty) = (Notify::new(), Notify::new());
        let unacked = Gauge::new("stagger_ws_unacked", target);
        let resent = Counter::new("stagger_ws_resent_total", target);
        Self { acks, unacked, resent, inner: Mutex::new(inner), room, empty }
    }

    /// Adds a message, waiting for room.
    pub(super) async fn enqueue(&self, message: Message) -> Result<(), SendError> {
        enqueue(&self.room, message, Completion::Unacked, |message, completion| {
            self.try_enqueue(message, completion, Room::Required)
        })
        .await
    }

    /// Adds a message if there is room, or if the sink has checked for room before.
    pub(super) fn try_enqueue(&self, message: Message, completion: Completion, room_needed: Room) -> Enqueue {
        let id = self.acks.id(&message);
        let mut inner = lock(&self.inner);
        if let Some(kind) = inner.link.ended() {
            return Enqueue::Rejected(SendError::new(kind, Some(message)));
        }
        if message.len() > self.acks.max_bytes {
            return Enqueue::Rejected(SendError::new(SendErrorKind::TooLong, Some(message)));
        }
        let bytes = inner.bytes.saturating_add(message.len());
        if room_needed == Room::Required
            && (inner.entries.len() >= self.acks.max_messages || bytes > self.acks.max_bytes)
        {
            return Enqueue::NoRoom(message, completion);
        }
        inner.bytes = bytes;
        inner.entries.push_back(Entry { id, message, written: None });
        self.unacked.increment();
        wake(&mut inner.task);
        Enqueue::Queued
    }

    /// Polls until the sink may add a message.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = lock(&self.inner);
        match inner.link.ended() {
            Some(kind) => Poll::Ready(Err(SendError::new(kind, None))),
            None if inner.entries.len() >= self.acks.max_messages || inner.bytes >= self.acks.max_bytes => {
                inner.sink = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(Ok(())),
        }
    }

    /// Waits until all messages are acknowledged.
    pub(super) async fn flushed(&self) -> Result<(), SendErrorKind> {
        wait_until(&self.empty, || {
            let inner = lock(&self.inner);
            if inner.entries.is_empty() && !inner.returned { Some(Ok(())) } else { inner.link.ended().map(Err) }
        })
        .await
    }

    /// Removes acknowledged messages. Only messages that have been sent can be acknowledged.
    pub(super) fn acknowledge(&self, ack: &Ack<K>) {
        let mut inner = lock(&self.inner);
        let inner = &mut *inner;
        // Entries that were never written come last, so the loop ends at the first one.
        let (mut at, mut removed) = (0, 0);
        while let Some(entry) = inner.entries.get(at).filter(|entry| entry.written.is_some()) {
            if !ack.covers(&entry.id) {
                match ack {
                    Ack::One(_) => at += 1,
                    // Ids ascend, so no later message is covered.
                    Ack::UpTo(_) => break,
                }
                continue;
            }
            inner.remove(at);
            removed += 1;
        }
        self.on_removed(inner, removed);
    }

    /// Returns copies of all unacknowledged messages.
    pub(super) fn unacked(&self) -> Vec<Message> {
        lock(&self.inner).entries.iter().map(|entry| entry.message.clone()).collect()
    }

    /// Removes and returns all unacknowledged messages.
    pub(super) fn drain(&self) -> Vec<Message> {
        let mut inner = lock(&self.inner);
        (inner.bytes, inner.written) = (0, 0);
        let messages: Vec<_> = inner.entries.drain(..).map(|entry| entry.message).collect();
        inner.returned |= !messages.is_empty();
        self.on_removed(&mut inner, messages.len());
        messages
    }

    fn on_removed(&self, inner: &mut WindowState<K>, removed: usize) {
        if removed == 0 {
            return;
        }
        self.unacked.decrement(removed);
        wake(&mut inner.sink);
        // Each sender that gets room notifies the next one.
        self.room.notify_one();
        if inner.entries.is_empty() {
            self.empty.notify_waiters();
        }
    }
}

impl<K> Debug for Window<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("acks", &self.acks).finish_non_exhaustive()
    }
}

/// Whether there must be room in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Required,
    /// The sink has checked for room before; another sender may have taken it since.
    Reserved,
}

impl<K> WindowState<K> {
    fn remove(&mut self, at: usize) {
        if let Some(entry) = self.entries.remove(at) {
            self.bytes -= entry.message.len();
            self.written -= usize::from(at < self.written);
        }
    }
}

impl<K: Ord + Send + 'static> UnackedMessages for Window<K> {
    fn set_link(&self, link: LinkState) -> usize {
        let mut inner = lock(&self.inner);
        inner.link = link;
        inner.written = 0;
        let resent = inner.entries.iter().take_while(|entry| entry.written.is_some()).count();
        wake(&mut inner.sink);
        drop(inner);
        self.room.notify_waiters();
        self.empty.notify_waiters();
        resent
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Message> {
        let mut inner = lock(&self.inner);
        let next = inner.written;
        let Some(entry) = inner.entries.get_mut(next) else {
            inner.task = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if entry.written.replace(Instant::now()).is_some() {
            self.resent.increment();
        }
        let message = entry.message.clone();
        inner.written += 1;
        Poll::Ready(message)
    }

    fn drop_last(&self) {
        let mut inner = lock(&self.inner);
        if let Some(last) = inner.written.checked_sub(1) {
            inner.remove(last);
            self.on_removed(&mut inner, 1);
        }
    }

    fn process_incoming(&self, message: &Message) -> AckDelivery {
        let Some(ack) = self.acks.ack(message) else { return AckDelivery::PassThrough };
        self.acknowledge(&ack);
        self.acks.delivery
    }

    fn timeout(&self) -> Option<Duration> {
        self.acks.timeout
    }

    fn due(&self) -> Option<Instant> {
        let timeout = self.acks.timeout?;
        let inner = lock(&self.inner);
        // Before it is written to this connection, the server cannot acknowledge it.
        if inner.written == 0 {
            return None;
        }
        inner.entries.front()?.written?.checked_add(timeout)
    }
}

impl<K> Drop for Window<K> {
    fn drop(&mut self) {
        let left = lock(&self.inner).entries.len();
        self.unacked.decrement(left);
    }
}
