use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::limits::Mode;
use super::{Outbox, SendError, SendErrorKind};
use crate::client::observe::OutboxGauges;

/// The messages that wait, shared between those who send and the task that owns the connection.
#[derive(Debug)]
pub(in crate::client) struct Queue {
    limits: Outbox,
    gauges: OutboxGauges,
    inner: Mutex<Inner>,
    /// For those who wait for room.
    room: Notify,
}

#[derive(Debug)]
struct Inner {
    items: VecDeque<Item>,
    bytes: usize,
    gate: Gate,
    /// Dropped, and not told yet.
    dropped: u64,
    /// What the sink has put in and what is not settled.
    sink: Sunk,
    owner: Option<Waker>,
}

#[derive(Debug, Default)]
struct Sunk {
    left: usize,
    failed: Option<SendErrorKind>,
    waker: Option<Waker>,
}

/// A message on its way.
#[derive(Debug)]
pub(in crate::client) struct Item {
    pub(in crate::client) message: Message,
    /// If it matters: the clock is not read otherwise.
    since: Option<Instant>,
    pub(in crate::client) via: Via,
}

/// Who wants to know what becomes of a message.
#[derive(Debug)]
pub(in crate::client) enum Via {
    /// A call that waits. If it does not wait any more, it has withdrawn the message.
    Send(oneshot::Sender<Result<(), SendError>>),
    /// The sink of the client.
    Sink,
    Nobody,
    /// Nobody, for it is kept until it is acknowledged.
    Kept,
}

/// Whether messages can go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Gate {
    Open,
    Down,
    GaveUp,
    Closed,
}

/// What became of a message that was offered.
#[derive(Debug)]
pub(in crate::client) enum Offer {
    Taken,
    /// There is no room now, and it is worth waiting for.
    Wait(Message, Via),
    Refused(SendError),
}

impl Queue {
    pub(in crate::client) fn new(limits: Outbox, target: &str) -> Self {
        let inner = Inner {
            items: VecDeque::new(),
            bytes: 0,
            gate: Gate::Down,
            dropped: 0,
            sink: Sunk::default(),
            owner: None,
        };
        Self { limits, gauges: OutboxGauges::new(target), inner: Mutex::new(inner), room: Notify::new() }
    }

    /// Waits for room, and puts it in.
    pub(in crate::client) async fn put(&self, message: Message, via: Via) -> Result<(), SendError> {
        put(&self.room, message, via, |message, via| self.offer(message, via)).await
    }

    /// Puts it in, if there is room.
    pub(in crate::client) fn offer(&self, message: Message, via: Via) -> Offer {
        let mut inner = self.inner();
        let refused = |why, message| Offer::Refused(SendError::new(why, Some(message)));
        match (inner.gate, self.limits.mode) {
            (Gate::Closed, _) => return refused(SendErrorKind::Closed, message),
            (Gate::GaveUp, _) => return refused(SendErrorKind::GaveUp, message),
            (Gate::Down, Mode::None) => return refused(SendErrorKind::NotConnected, message),
            _ => {}
        }
        if message.len() > self.limits.bytes {
            return refused(SendErrorKind::TooLong, message);
        }
        if !self.has_room(&inner, &message) {
            self.withdraw(&mut inner);
        }
        while !self.has_room(&inner, &message) {
            match (self.limits.mode, &via) {
                (Mode::DropOldest, _) => match self.take(&mut inner) {
                    Some(oldest) => self.fail(&mut inner, oldest, SendErrorKind::Dropped),
                    None => break,
                },
                (Mode::DropNewest, _) => return refused(SendErrorKind::Full, message),
                // The sink has asked for room before; whoever came in between had it first.
                (_, Via::Sink) => break,
                _ => return Offer::Wait(message, via),
            }
        }
        inner.bytes += message.len();
        inner.sink.left += usize::from(matches!(via, Via::Sink));
        let since = self.limits.ttl.map(|_| Instant::now());
        inner.items.push_back(Item { message, since, via });
        self.gauges.len(inner.items.len());
        wake(&mut inner.owner);
        Offer::Taken
    }

    /// Whether the sink may put one in.
    pub(in crate::client) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = self.inner();
        self.withdraw(&mut inner);
        let is_full = inner.items.len() >= self.limits.messages || inner.bytes >= self.limits.bytes;
        match (inner.gate, self.limits.mode) {
            (Gate::Closed, _) => Poll::Ready(Err(SendError::new(SendErrorKind::Closed, None))),
            (Gate::GaveUp, _) => Poll::Ready(Err(SendError::new(SendErrorKind::GaveUp, None))),
            (_, Mode::Backpressure | Mode::None) if is_full => {
                inner.sink.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether all that the sink has put in is settled.
    pub(in crate::client) fn poll_settled(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let mut inner = self.inner();
        if inner.sink.left > 0 && inner.gate == Gate::GaveUp {
            return Poll::Ready(Err(SendError::new(SendErrorKind::GaveUp, None)));
        }
        if inner.sink.left > 0 {
            inner.sink.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(inner.sink.failed.take().map_or(Ok(()), |why| Err(SendError::new(why, None))))
    }

    /// The next one to send, if there is any; otherwise the task is woken when there is.
    pub(in crate::client) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Item> {
        let mut inner = self.inner();
        while let Some(item) = self.take(&mut inner) {
            if !item.is_withdrawn() {
                return Poll::Ready(item);
            }
        }
        inner.owner = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Something that was taken out has come to its end.
    pub(in crate::client) fn settle(&self, via: Via, result: Result<(), SendErrorKind>) {
        let mut inner = self.inner();
        if result.is_err() && !matches!(via, Via::Kept) {
            self.count(&mut inner);
        }
        Self::tell(&mut inner, via, result.map_err(|why| SendError::new(why, None)));
    }

    /// Drops what has waited too long; says how many were dropped, for any reason, since this was asked last, and when the
    /// next one will be. The task is woken when there is something new to ask.
    pub(in crate::client) fn sweep(&self, cx: &mut Context<'_>) -> (u64, Option<Instant>) {
        let mut inner = self.inner();
        let until = self.limits.ttl.and_then(|ttl| self.expire(&mut inner, ttl));
        inner.owner = Some(cx.waker().clone());
        (core::mem::take(&mut inner.dropped), until)
    }

    fn expire(&self, inner: &mut Inner, ttl: Duration) -> Option<Instant> {
        let now = Instant::now();
        loop {
            let until = inner.items.front()?.since?.checked_add(ttl)?;
            if until > now {
                return Some(until);
            }
            if let Some(item) = self.take(inner) {
                self.fail(inner, item, SendErrorKind::Expired);
            }
        }
    }

    /// The way is open now, or not. What waits fails if it is closed for good, or if nothing may wait. When the client gives
    /// up, it stays, and whoever waits for it is told.
    pub(in crate::client) fn turn(&self, gate: Gate) {
        let mut inner = self.inner();
        inner.gate = gate;
        let why = match (gate, self.limits.mode) {
            (Gate::Closed, _) => Some(SendErrorKind::Closed),
            (Gate::Down | Gate::GaveUp, Mode::None) => Some(SendErrorKind::NotConnected),
            _ => None,
        };
        if let Some(why) = why {
            while let Some(item) = self.take(&mut inner) {
                self.fail(&mut inner, item, why);
            }
        }
        if gate == Gate::GaveUp {
            for item in &mut inner.items {
                if let Via::Send(_) = item.via {
                    let told = core::mem::replace(&mut item.via, Via::Nobody);
                    if let Via::Send(told) = told {
                        let _ = told.send(Err(SendError::new(SendErrorKind::GaveUp, None)));
                    }
                }
            }
        }
        wake(&mut inner.sink.waker);
        drop(inner);
        self.room.notify_waiters();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, inner: &Inner, message: &Message) -> bool {
        inner.items.len() < self.limits.messages && inner.bytes.saturating_add(message.len()) <= self.limits.bytes
    }

    fn take(&self, inner: &mut Inner) -> Option<Item> {
        let item = inner.items.pop_front()?;
        inner.bytes -= item.message.len();
        self.gauges.len(inner.items.len());
        wake(&mut inner.sink.waker);
        self.room.notify_one();
        Some(item)
    }

    /// Takes out what nobody waits for any more.
    fn withdraw(&self, inner: &mut Inner) {
        let Inner { items, bytes, .. } = inner;
        items.retain(|item| {
            let stays = !item.is_withdrawn();
            *bytes -= if stays { 0 } else { item.message.len() };
            stays
        });
        self.gauges.len(inner.items.len());
    }

    fn fail(&self, inner: &mut Inner, item: Item, why: SendErrorKind) {
        if item.is_withdrawn() {
            return;
        }
        self.count(inner);
        Self::tell(inner, item.via, Err(SendError::new(why, Some(item.message))));
    }

    fn count(&self, inner: &mut Inner) {
        inner.dropped += 1;
        self.gauges.dropped();
        wake(&mut inner.owner);
    }

    fn tell(inner: &mut Inner, via: Via, result: Result<(), SendError>) {
        match via {
            // Who does not wait any more does not want to know.
            Via::Send(told) => drop(told.send(result)),
            Via::Sink => {
                inner.sink.left = inner.sink.left.saturating_sub(1);
                if let Err(error) = result {
                    inner.sink.failed = Some(error.kind());
                }
                wake(&mut inner.sink.waker);
            }
            Via::Kept | Via::Nobody => {}
        }
    }
}

impl Item {
    fn is_withdrawn(&self) -> bool {
        matches!(&self.via, Via::Send(told) if told.is_closed())
    }
}

/// Offers a message until it is taken or refused, and waits for room in between.
pub(in crate::client) async fn put(
    room: &Notify,
    mut message: Message,
    mut via: Via,
    offer: impl Fn(Message, Via) -> Offer,
) -> Result<(), SendError> {
    loop {
        let mut free = pin!(room.notified());
        // Before the look, or what becomes free in between would go unnoticed.
        free.as_mut().enable();
        match offer(message, via) {
            Offer::Taken => {
                // There may be room for the next one too.
                room.notify_one();
                return Ok(());
            }
            Offer::Refused(error) => return Err(error),
            Offer::Wait(again, whose) => (message, via) = (again, whose),
        }
        free.await;
    }
}

pub(in crate::client) fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
