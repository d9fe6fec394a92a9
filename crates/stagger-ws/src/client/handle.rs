use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use std::sync::Arc;

use futures_channel::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};
use tokio_tungstenite::tungstenite::Message;

use super::acked::Kept;
use super::outbox::{Gate, Offer, Queue, Via};
use super::{ConnectionState, Fatal, SendError, SendErrorKind};

/// What can be asked of the task that owns the connection.
#[derive(Debug)]
pub(super) enum Command {
    ReconnectNow,
    /// The sender is dropped when it is done.
    Close(oneshot::Sender<()>),
    /// The client is gone.
    Leave,
}

/// What a client and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbox: Queue,
    /// What is kept until it is acknowledged.
    pub(super) window: Option<Arc<dyn Kept>>,
    /// Unbounded, since nothing in it grows with traffic and the task never keeps it waiting.
    pub(super) commands: UnboundedSender<Command>,
    pub(super) state: watch::Receiver<ConnectionState>,
    /// How often it was asked to reconnect. The stream of a client that gave up goes on after it.
    pub(super) revivals: AtomicU64,
    /// How often it has done so.
    pub(super) obeyed: AtomicU64,
}

impl Shared {
    /// The way is open now, or not: how many messages are sent again.
    pub(super) fn turn(&self, gate: Gate) -> usize {
        self.outbox.turn(gate);
        self.window.as_ref().map_or(0, |window| window.turn(gate))
    }

    /// What is written next: what is kept first, so that what is sent again is at the head.
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<(Message, Via)> {
        if let Some(Poll::Ready(message)) = self.window.as_ref().map(|window| window.poll_take(cx)) {
            return Poll::Ready((message, Via::Kept));
        }
        self.outbox.poll_take(cx).map(|item| (item.message, item.via))
    }

    /// What was taken last can never be written.
    pub(super) fn never(&self, via: Via) {
        let via = match (via, &self.window) {
            (Via::Kept, Some(window)) => {
                window.give_up_last();
                // It is told like everything else that is dropped.
                Via::Nobody
            }
            (via, _) => via,
        };
        self.outbox.settle(via, Err(SendErrorKind::TooLong));
    }
}

/// Another hand on a [`Client`](crate::Client), from any task: it sends, closes and reconnects, and tells where the client
/// stands.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// Sends a text or a binary; `Ok` says that it was handed to an open connection. Whether it has arrived, only an
    /// answer of the server's can tell. Until there is a connection, and room in the [`Outbox`](crate::Outbox), it waits.
    ///
    /// Cancel-safe: dropped before it is done, the message is withdrawn, unless it is being written.
    ///
    /// # Errors
    /// [`SendError`] says why it was not sent, and gives the message back.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        let (told, hears) = oneshot::channel();
        self.0.outbox.put(message, Via::Send(told)).await?;
        hears.await.unwrap_or(Err(SendError::new(SendErrorKind::Closed, None)))
    }

    /// Puts it into the outbox, without waiting. What becomes of it is not told; if it is dropped,
    /// [`Event::Dropped`](crate::Event::Dropped) counts it.
    ///
    /// # Errors
    /// [`SendError`] with the message, if it was not taken.
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        match self.0.outbox.offer(message, Via::Nobody) {
            Offer::Taken => Ok(()),
            Offer::Wait(message, _) => Err(SendError::new(SendErrorKind::Full, Some(message))),
            Offer::Refused(error) => Err(error),
        }
    }

    /// Connects at once: in the middle of a wait, after giving up, after the server ended the last connection; a
    /// connection that is open is replaced. After a [`close`](Self::close) it does nothing.
    pub fn reconnect_now(&self) {
        self.0.revivals.fetch_add(1, Ordering::AcqRel);
        self.ask(Command::ReconnectNow);
    }

    /// Closes it for good: with the closing handshake if there is a connection, for no longer than the close timeout.
    /// Every timer is dropped, what waits in the outbox fails, and the client's stream ends after what it has not told yet.
    ///
    /// Cancel-safe: it goes on without the caller.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.ask(Command::Close(done));
        // An error: that is when it is done.
        let _ = closed.await;
    }

    /// Where it stands, to be watched.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ConnectionState> {
        self.0.state.clone()
    }

    /// Waits until there is a connection.
    ///
    /// # Errors
    /// [`Fatal`] if it gives up before, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        let mut state = self.state();
        let settled = state
            .wait_for(|state| match state {
                ConnectionState::Open => true,
                // What was asked for and is not begun yet may change it.
                ConnectionState::Closed(_) => {
                    self.0.revivals.load(Ordering::Acquire) == self.0.obeyed.load(Ordering::Acquire)
                }
                _ => false,
            })
            .await;
        match settled.as_deref() {
            Ok(ConnectionState::Open) => Ok(()),
            Ok(ConnectionState::Closed(Some(fatal))) => Err(fatal.clone()),
            _ => Err(Fatal::released()),
        }
    }

    /// If the task is gone, all that can be asked of it has been done.
    pub(super) fn ask(&self, command: Command) {
        let _ = self.0.commands.unbounded_send(command);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &*self.0.state.borrow()).finish_non_exhaustive()
    }
}
