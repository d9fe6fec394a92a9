use core::fmt::{self, Debug};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::acks::Shown;
use super::gauges::WindowGauges;
use super::{Ack, Acks};
use crate::client::outbox::{Gate, Offer, Via, put, wake};
use crate::client::{SendError, SendErrorKind};

/// The messages that are not acknowledged, in the order in which they were sent, shared between those who send and the
/// task that owns the connection.
pub(in crate::client) struct Window<K> {
    acks: Acks<K>,
    gauges: WindowGauges,
    inner: Mutex<Inner<K>>,
    /// For those who wait for room.
    room: Notify,
    /// For those who wait until nothing is left.
    settled: Notify,
}

struct Inner<K> {
    /// Those that have ever been written come first.
    entries: VecDeque<Entry<K>>,
    bytes: usize,
    /// How many of them have been written to the connection that is up.
    written: usize,
    gate: Gate,
    /// What was never acknowledged has been handed back.
    handed_back: bool,
    /// The task that owns the connection.
    owner: Option<Waker>,
    /// Whoever waits with the sink.
    sink: Option<Waker>,
}

struct Entry<K> {
    id: K,
    message: Message,
    /// When it was written last.
    written: Option<Instant>,
}

/// What the stream does with a message that has been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Passing {
    Show,
    Keep,
}

/// A window, whatever its ids are: what the task that owns the connection does with it.
pub(in crate::client) trait Kept: Debug + Send + Sync {
    /// The way is open now, or not. When it opens, all that is not acknowledged is to be written again: how many messages
    /// have been written before.
    fn turn(&self, gate: Gate) -> usize;

    /// The next message to write. If there is none, the task is woken when there is.
    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Message>;

    /// What was taken last can never be written.
    fn give_up_last(&self);

    /// A message has come.
    fn hear(&self, message: &Message) -> Passing;

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
            gate: Gate::Down,
            handed_back: false,
            owner: None,
            sink: None,
        };
        let (room, settled) = (Notify::new(), Notify::new());
        Self { acks, gauges: WindowGauges::new(target), inner: Mutex::new(inner), room, settled }
    }

    /// Waits for room, and puts it in.
    pub(super) async fn put(&self, message: Message) -> Result<(), SendError> {
        put(&self.room, message, Via::Kept, |message, via| self.offer(message, via, Bound::Kept)).await
    }

    /// Puts it in, if there is room, or if there was when the sink asked.
    pub(super) fn offer(&self, message: Message, via: Via, bound: Bound) -> Offer {
        let id = self.acks.id(&message);
        let mut inner = self.inner();
        let why = match inner.gate {
            Gate::Closed => Some(SendErrorKind::Closed),
            Gate::GaveUp => Some(SendErrorKind::GaveUp),
            _ if message.len() > self.acks.bytes => Some(SendErrorKind::TooLong),
            _ => None,
        };
        if let Some(why) = why {
            return Offer::Refused(SendError::new(why, Some(message)));
        }
        let bytes = inner.bytes.saturating_add(message.len());
        if bound == Bound::Kept && (inner.entries.len() >= self.acks.window || bytes > self.acks.bytes) {
            return Offer::Wait(message, via);
        }
        inner.bytes = bytes;
        inner.entries.push_back(Entry { id, message, written: None });
        self.gauges.came();
        wake(&mut inner.owner);
        Offer::Taken
    }

    /// Whether the sink may put one in.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = self.inner();
        match inner.gate {
            Gate::Closed => Poll::Ready(Err(SendError::new(SendErrorKind::Closed, None))),
            Gate::GaveUp => Poll::Ready(Err(SendError::new(SendErrorKind::GaveUp, None))),
            _ if inner.entries.len() >= self.acks.window || inner.bytes >= self.acks.bytes => {
                inner.sink = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until everything is acknowledged.
    pub(super) async fn flushed(&self) -> Result<(), SendErrorKind> {
        loop {
            let mut settled = core::pin::pin!(self.settled.notified());
            // Before the look, or the last acknowledgement in between would go unnoticed.
            settled.as_mut().enable();
            {
                let inner = self.inner();
                match inner.gate {
                    _ if inner.entries.is_empty() && !inner.handed_back => return Ok(()),
                    Gate::Closed => return Err(SendErrorKind::Closed),
                    Gate::GaveUp => return Err(SendErrorKind::GaveUp),
                    Gate::Open | Gate::Down => {}
                }
            }
            settled.await;
        }
    }

    /// Takes away what is acknowledged, of what has been sent at all: nobody can have the rest.
    pub(super) fn acknowledge(&self, ack: &Ack<K>) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let (mut at, mut gone) = (0, 0);
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
            gone += 1;
        }
        self.made_room(inner, gone);
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
        inner.handed_back |= !messages.is_empty();
        self.made_room(&mut inner, messages.len());
        messages
    }

    fn made_room(&self, inner: &mut Inner<K>, gone: usize) {
        if gone == 0 {
            return;
        }
        self.gauges.went(gone);
        wake(&mut inner.sink);
        // Whoever gets in lets the next one look.
        self.room.notify_one();
        if inner.entries.is_empty() {
            self.settled.notify_waiters();
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

/// Whether the window keeps its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Kept,
    /// The sink has asked for room before; whoever came in between had it first.
    Asked,
}

impl<K> Inner<K> {
    fn remove(&mut self, at: usize) {
        if let Some(entry) = self.entries.remove(at) {
            self.bytes -= entry.message.len();
            self.written -= usize::from(at < self.written);
        }
    }
}

impl<K: Ord + Send + 'static> Kept for Window<K> {
    fn turn(&self, gate: Gate) -> usize {
        let mut inner = self.inner();
        inner.gate = gate;
        inner.written = 0;
        let again = inner.entries.iter().take_while(|entry| entry.written.is_some()).count();
        wake(&mut inner.sink);
        drop(inner);
        self.room.notify_waiters();
        self.settled.notify_waiters();
        again
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Message> {
        let mut inner = self.inner();
        let next = inner.written;
        let Some(entry) = inner.entries.get_mut(next) else {
            inner.owner = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if entry.written.replace(Instant::now()).is_some() {
            self.gauges.resent();
        }
        let message = entry.message.clone();
        inner.written += 1;
        Poll::Ready(message)
    }

    fn give_up_last(&self) {
        let mut inner = self.inner();
        if let Some(last) = inner.written.checked_sub(1) {
            inner.remove(last);
            self.made_room(&mut inner, 1);
        }
    }

    fn hear(&self, message: &Message) -> Passing {
        let Some(ack) = self.acks.ack(message) else { return Passing::Show };
        self.acknowledge(&ack);
        match self.acks.shown {
            Shown::Yes => Passing::Show,
            Shown::No => Passing::Keep,
        }
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
        self.gauges.went(left);
    }
}
