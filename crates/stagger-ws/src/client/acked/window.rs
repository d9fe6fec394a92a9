use core::fmt::{self, Debug};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::metrics::WindowMetrics;
use super::{Ack, AckDelivery, Acks};
use crate::client::outbox::{Completion, Enqueue, LinkState, enqueue, wake};
use crate::client::{SendError, SendErrorKind};

/// The messages that are not acknowledged, in the order in which they were sent, shared between those who send and the
/// task that owns the connection.
pub(in crate::client) struct Window<K> {
    acks: Acks<K>,
    metrics: WindowMetrics,
    inner: Mutex<Inner<K>>,
    /// For those who wait for room.
    room: Notify,
    /// For those who wait until nothing is left.
    empty: Notify,
}

struct Inner<K> {
    /// Those that have ever been written come first.
    entries: VecDeque<Entry<K>>,
    bytes: usize,
    /// How many of them have been written to the connection that is up.
    written: usize,
    link: LinkState,
    /// What was never acknowledged has been handed back.
    returned: bool,
    /// The task that owns the connection.
    task: Option<Waker>,
    /// Whoever waits with the sink.
    sink: Option<Waker>,
}

struct Entry<K> {
    id: K,
    message: Message,
    /// When it was written last.
    written: Option<Instant>,
}

/// A window, whatever its ids are: what the task that owns the connection does with it.
pub(in crate::client) trait UnackedMessages: Debug + Send + Sync {
    /// The way is open now, or not. When it opens, all that is not acknowledged is to be written resent: how many messages
    /// have been written before.
    fn set_link(&self, link: LinkState) -> usize;

    /// The next message to write. If there is none, the task is woken when there is.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Message>;

    /// What was taken last can never be written.
    fn drop_last(&self);

    /// A message has come.
    fn process_incoming(&self, message: &Message) -> AckDelivery;

    /// How long an acknowledgement may take.
    fn timeout(&self) -> Option<Duration>;

    /// Until when an acknowledgement must have come, if any must.
    fn due(&self) -> Option<Instant>;
}

impl<K: Ord + Send + 'static> Window<K> {
    pub(super) fn new(acks: Acks<K>, target: &str) -> Self {
        let inner = Inner {
            entries: VecDeque::new(),
            bytes: 0,
            written: 0,
            link: LinkState::Down,
            returned: false,
            task: None,
            sink: None,
        };
        let (room, empty) = (Notify::new(), Notify::new());
        Self { acks, metrics: WindowMetrics::new(target), inner: Mutex::new(inner), room, empty }
    }

    /// Waits for room, and puts it in.
    pub(super) async fn enqueue(&self, message: Message) -> Result<(), SendError> {
        enqueue(&self.room, message, Completion::Unacked, |message, completion| {
            self.try_enqueue(message, completion, Room::Required)
        })
        .await
    }

    /// Puts it in, if there is room, or if there was when the sink asked.
    pub(super) fn try_enqueue(&self, message: Message, completion: Completion, room_needed: Room) -> Enqueue {
        let id = self.acks.id(&message);
        let mut inner = self.inner();
        let kind = match inner.link {
            LinkState::Closed => Some(SendErrorKind::Closed),
            LinkState::GaveUp => Some(SendErrorKind::GaveUp),
            _ if message.len() > self.acks.max_bytes => Some(SendErrorKind::TooLong),
            _ => None,
        };
        if let Some(kind) = kind {
            return Enqueue::Rejected(SendError::new(kind, Some(message)));
        }
        let bytes = inner.bytes.saturating_add(message.len());
        if room_needed == Room::Required
            && (inner.entries.len() >= self.acks.max_messages || bytes > self.acks.max_bytes)
        {
            return Enqueue::NoRoom(message, completion);
        }
        inner.bytes = bytes;
        inner.entries.push_back(Entry { id, message, written: None });
        self.metrics.added();
        wake(&mut inner.task);
        Enqueue::Queued
    }

    /// Whether the sink may enqueue one in.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = self.inner();
        match inner.link {
            LinkState::Closed => Poll::Ready(Err(SendError::new(SendErrorKind::Closed, None))),
            LinkState::GaveUp => Poll::Ready(Err(SendError::new(SendErrorKind::GaveUp, None))),
            _ if inner.entries.len() >= self.acks.max_messages || inner.bytes >= self.acks.max_bytes => {
                inner.sink = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until everything is acknowledged.
    pub(super) async fn flushed(&self) -> Result<(), SendErrorKind> {
        loop {
            let mut empty = core::pin::pin!(self.empty.notified());
            // Before the look, or the last acknowledgement in between would go unnoticed.
            empty.as_mut().enable();
            {
                let inner = self.inner();
                match inner.link {
                    _ if inner.entries.is_empty() && !inner.returned => return Ok(()),
                    LinkState::Closed => return Err(SendErrorKind::Closed),
                    LinkState::GaveUp => return Err(SendErrorKind::GaveUp),
                    LinkState::Up | LinkState::Down => {}
                }
            }
            empty.await;
        }
    }

    /// Takes away what is acknowledged, of what has been sent at all: nobody can have the rest.
    pub(super) fn acknowledge(&self, ack: &Ack<K>) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let (mut at, mut removed) = (0, 0);
        while let Some(entry) = inner.entries.get(at).filter(|entry| entry.written.is_some()) {
            if !ack.covers(&entry.id) {
                match ack {
                    Ack::One(_) => at += 1,
                    // They ascend: what comes after it is not covered either.
                    Ack::UpTo(_) => break,
                }
                continue;
            }
            inner.remove(at);
            removed += 1;
        }
        self.on_removed(inner, removed);
    }

    /// Copies of all that is not acknowledged.
    pub(super) fn unacked(&self) -> Vec<Message> {
        self.inner().entries.iter().map(|entry| entry.message.clone()).collect()
    }

    /// All that is not acknowledged, which the window no longer has.
    pub(super) fn drain(&self) -> Vec<Message> {
        let mut inner = self.inner();
        (inner.bytes, inner.written) = (0, 0);
        let messages: Vec<_> = inner.entries.drain(..).map(|entry| entry.message).collect();
        inner.returned |= !messages.is_empty();
        self.on_removed(&mut inner, messages.len());
        messages
    }

    fn on_removed(&self, inner: &mut Inner<K>, removed: usize) {
        if removed == 0 {
            return;
        }
        self.metrics.removed(removed);
        wake(&mut inner.sink);
        // Whoever gets in lets the next one look.
        self.room.notify_one();
        if inner.entries.is_empty() {
            self.empty.notify_waiters();
        }
    }
}

impl<K> Window<K> {
    fn inner(&self) -> MutexGuard<'_, Inner<K>> {
        // Comparing ids is not ours and may panic, but nothing is half done then.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Debug for Window<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("acks", &self.acks).finish_non_exhaustive()
    }
}

/// Whether the window keeps its room_needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Required,
    /// The sink has asked for room before; whoever came in between had it first.
    Reserved,
}

impl<K> Inner<K> {
    fn remove(&mut self, at: usize) {
        if let Some(entry) = self.entries.remove(at) {
            self.bytes -= entry.message.len();
            self.written -= usize::from(at < self.written);
        }
    }
}

impl<K: Ord + Send + 'static> UnackedMessages for Window<K> {
    fn set_link(&self, link: LinkState) -> usize {
        let mut inner = self.inner();
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
        let mut inner = self.inner();
        let next = inner.written;
        let Some(entry) = inner.entries.get_mut(next) else {
            inner.task = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if entry.written.replace(Instant::now()).is_some() {
            self.metrics.resent();
        }
        let message = entry.message.clone();
        inner.written += 1;
        Poll::Ready(message)
    }

    fn drop_last(&self) {
        let mut inner = self.inner();
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
        let inner = self.inner();
        let oldest = inner.entries.front().filter(|_| inner.written > 0)?;
        oldest.written?.checked_add(timeout)
    }
}

impl<K> Drop for Window<K> {
    fn drop(&mut self) {
        let left = self.inner().entries.len();
        self.metrics.removed(left);
    }
}
