//! The queue of messages that wait to be sent.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::outbox::{Outbox, OverflowPolicy, SendError, SendErrorKind};
use super::telemetry::{Counter, Gauge};
use crate::sync::{lock, wait_until};

/// The queue of waiting messages, shared between senders and the connection task.
#[derive(Debug)]
pub(super) struct OutboxQueue {
    config: Outbox,
    len: Gauge,
    dropped: Counter,
    inner: Mutex<QueueState>,
    /// Notifies senders that wait for room.
    room: Notify,
}

#[derive(Debug)]
struct QueueState {
    items: VecDeque<QueuedMessage>,
    bytes: usize,
    link: LinkState,
    /// The number of dropped messages that have not been reported yet.
    dropped: u64,
    /// The messages of the sink that are not completed.
    sink: SinkState,
    task: Option<Waker>,
}

#[derive(Debug, Default)]
struct SinkState {
    pending: usize,
    failed: Option<SendErrorKind>,
    waker: Option<Waker>,
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) message: Message,
    /// When it was queued. `None` without a time to live, so that the clock is not read.
    since: Option<Instant>,
    pub(super) completion: Completion,
}

/// Where the outcome of a message is reported.
#[derive(Debug)]
pub(super) enum Completion {
    /// To a waiting `send`. If that future was dropped, the message is withdrawn.
    Send(oneshot::Sender<Result<(), SendError>>),
    /// To the client's sink.
    Sink,
    Ignored,
    /// Nowhere: the message is kept until it is acknowledged.
    Unacked,
}

/// Whether messages can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    Down,
    GaveUp,
    Closed,
}

impl LinkState {
    /// Returns why no message is accepted anymore, if so.
    pub(super) const fn ended(self) -> Option<SendErrorKind> {
        match self {
            Self::Up | Self::Down => None,
            Self::GaveUp => Some(SendErrorKind::GaveUp),
            Self::Closed => Some(SendErrorKind::Closed),
        }
    }
}

/// The result of an attempt to queue a message.
#[derive(Debug)]
pub(super) enum Enqueue {
    Queued,
    /// There is no room yet; the sender can wait.
    NoRoom(Message, Completion),
    Rejected(SendError),
}

impl Enqueue {
    /// Returns the result for a sender that does not wait for room.
    pub(super) fn without_waiting(self) -> Result<(), SendError> {
        match self {
            Self::Queued => Ok(()),
            Self::NoRoom(message, _) => Err(SendError::new(SendErrorKind::Full, Some(message))),
            Self::Rejected(error) => Err(error),
        }
    }
}

impl OutboxQueue {
    pub(super) fn new(config: Outbox, target: &str) -> Self {
        let inner = QueueState {
            items: VecDeque::new(),
            bytes: 0,
            link: LinkState::Down,
            dropped: 0,
            sink: SinkState::default(),
            task: None,
        };
        let len = Gauge::new("stagger_ws_outbox_len", target);
        let dropped = Counter::new("stagger_ws_outbox_dropped_total", target);
        Self { config, len, dropped, inner: Mutex::new(inner), room: Notify::new() }
    }

    /// Queues a message, waiting for room.
    pub(super) async fn enqueue(&self, message: Message, completion: Completion) -> Result<(), SendError> {
        enqueue(&self.room, message, completion, |message, completion| self.try_enqueue(message, completion)).await
    }

    /// Queues a message if there is room.
    pub(super) fn try_enqueue(&self, message: Message, completion: Completion) -> Enqueue {
        let mut inner = lock(&self.inner);
        let rejected = |kind, message| Enqueue::Rejected(SendError::new(kind, Some(message)));
        if let Some(kind) = inner.link.ended() {
            return rejected(kind, message);
        }
        if inner.link == LinkState::Down && self.config.overflow == OverflowPolicy::FailFast {
            return rejected(SendErrorKind::NotConnected, message);
        }
        if message.len() > self.config.max_bytes {
            return rejected(SendErrorKind::TooLong, message);
        }
        // Withdrawn messages are removed only now, since that takes time in proportion to the queue.
        if !self.has_room(&inner, &message) {
            self.remove_withdrawn(&mut inner);
        }
        while !self.has_room(&inner, &message) {
            match (self.config.overflow, &completion) {
                (OverflowPolicy::DropOldest, _) => match self.pop(&mut inner) {
                    Some(oldest) => self.fail(&mut inner, oldest, SendErrorKind::Dropped),
                    None => break,
                },
                (OverflowPolicy::DropNewest, _) => return rejected(SendErrorKind::Full, message),
                // The sink has checked for room before; another sender may have taken it since.
                (_, Completion::Sink) => break,
                _ => return Enqueue::NoRoom(message, completion),
            }
        }
        inner.bytes += message.len();
        inner.sink.pending += usize::from(matches!(completion, Completion::Sink));
        let since = self.config.ttl.map(|_| Instant::now());
        inner.items.push_back(QueuedMessage { message, since, completion });
        self.len.set(inner.items.len());
        wake(&mut inner.task);
        Enqueue::Queued
    }

    /// Polls until the sink may queue a message.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = lock(&self.inner);
        self.remove_withdrawn(&mut inner);
        let is_full = inner.items.len() >= self.config.max_messages || inner.bytes >= self.config.max_bytes;
        match (inner.link.ended(), self.config.overflow) {
            (Some(kind), _) => Poll::Ready(Err(SendError::new(kind, None))),
            (None, OverflowPolicy::Backpressure | OverflowPolicy::FailFast) if is_full => {
                inner.sink.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Polls until all messages of the sink are completed.
    pub(super) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = lock(&self.inner);
        if inner.sink.pending > 0 && inner.link == LinkState::GaveUp {
            return Poll::Ready(Err(SendError::new(SendErrorKind::GaveUp, None)));
        }
        if inner.sink.pending > 0 {
            inner.sink.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match inner.sink.failed.take() {
            Some(kind) => Poll::Ready(Err(SendError::new(kind, None))),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Returns the next message to send. If there is none, the task is woken when there is.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<QueuedMessage> {
        let mut inner = lock(&self.inner);
        while let Some(item) = self.pop(&mut inner) {
            if !item.is_withdrawn() {
                return Poll::Ready(item);
            }
        }
        inner.task = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Completes a message that was taken from the queue.
    pub(super) fn complete(&self, completion: Completion, result: Result<(), SendErrorKind>) {
        let mut inner = lock(&self.inner);
        if result.is_err() && !matches!(completion, Completion::Unacked) {
            self.count_dropped(&mut inner);
        }
        Self::notify(&mut inner, completion, result.map_err(|kind| SendError::new(kind, None)));
    }

    /// Drops expired messages. Returns how many messages were dropped since the last call, for any reason, and when the
    /// next one expires. The task is woken when either changes.
    pub(super) fn drop_expired(&self, cx: &mut Context<'_>) -> (u64, Option<Instant>) {
        let mut inner = lock(&self.inner);
        let until = self.config.ttl.and_then(|ttl| self.expire(&mut inner, ttl));
        inner.task = Some(cx.waker().clone());
        (core::mem::take(&mut inner.dropped), until)
    }

    fn expire(&self, inner: &mut QueueState, ttl: Duration) -> Option<Instant> {
        let now = Instant::now();
        loop {
            let until = inner.items.front()?.since?.checked_add(ttl)?;
            if until > now {
                return Some(until);
            }
            if let Some(item) = self.pop(inner) {
                self.fail(inner, item, SendErrorKind::Expired);
            }
        }
    }

    /// Sets whether messages can be sent. Waiting messages fail if the client is closed, or if the outbox does not wait
    /// for connections. When the client gives up, messages stay queued, and waiting senders get an error.
    pub(super) fn set_link(&self, link: LinkState) {
        let mut inner = lock(&self.inner);
        inner.link = link;
        let kind = match (link, self.config.overflow) {
            (LinkState::Closed, _) => Some(SendErrorKind::Closed),
            (LinkState::Down | LinkState::GaveUp, OverflowPolicy::FailFast) => Some(SendErrorKind::NotConnected),
            _ => None,
        };
        if let Some(kind) = kind {
            while let Some(item) = self.pop(&mut inner) {
                self.fail(&mut inner, item, kind);
            }
        }
        if link == LinkState::GaveUp {
            for item in &mut inner.items {
                if let Completion::Send(_) = item.completion {
                    let reply = core::mem::replace(&mut item.completion, Completion::Ignored);
                    if let Completion::Send(reply) = reply {
                        let _ = reply.send(Err(SendError::new(SendErrorKind::GaveUp, None)));
                    }
                }
            }
        }
        wake(&mut inner.sink.waker);
        drop(inner);
        self.room.notify_waiters();
    }

    fn has_room(&self, inner: &QueueState, message: &Message) -> bool {
        inner.items.len() < self.config.max_messages
            && inner.bytes.saturating_add(message.len()) <= self.config.max_bytes
    }

    fn pop(&self, inner: &mut QueueState) -> Option<QueuedMessage> {
        let item = inner.items.pop_front()?;
        inner.bytes -= item.message.len();
        self.len.set(inner.items.len());
        wake(&mut inner.sink.waker);
        self.room.notify_one();
        Some(item)
    }

    /// Removes messages whose senders no longer wait.
    fn remove_withdrawn(&self, inner: &mut QueueState) {
        let QueueState { items, bytes, .. } = inner;
        items.retain(|item| {
            let stays = !item.is_withdrawn();
            *bytes -= if stays { 0 } else { item.message.len() };
            stays
        });
        self.len.set(inner.items.len());
    }

    fn fail(&self, inner: &mut QueueState, item: QueuedMessage, kind: SendErrorKind) {
        if item.is_withdrawn() {
            return;
        }
        self.count_dropped(inner);
        Self::notify(inner, item.completion, Err(SendError::new(kind, Some(item.message))));
    }

    fn count_dropped(&self, inner: &mut QueueState) {
        inner.dropped += 1;
        self.dropped.increment();
        wake(&mut inner.task);
    }

    fn notify(inner: &mut QueueState, completion: Completion, result: Result<(), SendError>) {
        match completion {
            // An error means that the sender no longer waits.
            Completion::Send(reply) => drop(reply.send(result)),
            Completion::Sink => {
                inner.sink.pending = inner.sink.pending.saturating_sub(1);
                if let Err(error) = result {
                    inner.sink.failed = Some(error.kind());
                }
                wake(&mut inner.sink.waker);
            }
            Completion::Unacked | Completion::Ignored => {}
        }
    }
}

impl QueuedMessage {
    fn is_withdrawn(&self) -> bool {
        matches!(&self.completion, Completion::Send(reply) if reply.is_closed())
    }
}

/// Tries to queue a message until it is queued or rejected, waiting for room in between.
pub(super) async fn enqueue(
    room: &Notify,
    message: Message,
    completion: Completion,
    try_enqueue: impl Fn(Message, Completion) -> Enqueue,
) -> Result<(), SendError> {
    let mut waiting = Some((message, completion));
    wait_until(room, || {
        let (message, completion) = waiting.take()?;
        match try_enqueue(message, completion) {
            Enqueue::Queued => {
                // There may be room for the next sender, too.
                room.notify_one();
                Some(Ok(()))
            }
            Enqueue::Rejected(error) => Some(Err(error)),
            Enqueue::NoRoom(message, completion) => {
                waiting = Some((message, completion));
                None
            }
        }
    })
    .await
}

pub(super) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
