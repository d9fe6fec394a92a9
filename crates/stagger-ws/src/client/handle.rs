use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use std::sync::Arc;

use futures_channel::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};
use tokio_tungstenite::tungstenite::Message;

use super::acked::UnackedMessages;
use super::outbox::{Completion, Enqueue, LinkState, OutboxQueue};
use super::{ConnectionState, Fatal, SendError, SendErrorKind};

/// What can be asked of the task that owns the connection.
#[derive(Debug)]
pub(super) enum Command {
    ReconnectNow,
    /// The sender is dropped when it is done.
    Close(oneshot::Sender<()>),
    /// The client is gone.
    Shutdown,
}

/// What a client and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbox: OutboxQueue,
    /// What is kept until it is acknowledged.
    pub(super) window: Option<Arc<dyn UnackedMessages>>,
    /// Unbounded, since nothing in it grows with traffic and the task never keeps it waiting.
    pub(super) commands: UnboundedSender<Command>,
    pub(super) state: watch::Receiver<ConnectionState>,
    /// How often it was asked to reconnect. The stream of a client that gave up goes on after it.
    pub(super) reconnect_requests: AtomicU64,
    /// How often it has done so.
    pub(super) reconnects_handled: AtomicU64,
}

impl Shared {
    /// The way is open now, or not: how many messages are sent again.
    pub(super) fn set_link(&self, link: LinkState) -> usize {
        self.outbox.set_link(link);
        self.window.as_ref().map_or(0, |window| window.set_link(link))
    }

    /// What is written next: what is kept first, so that what is sent again is at the head.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<(Message, Completion)> {
        if let Some(Poll::Ready(message)) = self.window.as_ref().map(|window| window.poll_next(cx)) {
            return Poll::Ready((message, Completion::Unacked));
        }
        self.outbox.poll_next(cx).map(|item| (item.message, item.completion))
    }

    /// What was taken last can never be written.
    pub(super) fn fail_unwritable(&self, completion: Completion) {
        let completion = match (completion, &self.window) {
            (Completion::Unacked, Some(window)) => {
                window.drop_last();
                // It is told like everything else that is dropped.
                Completion::Ignored
            }
            (completion, _) => completion,
        };
        self.outbox.complete(completion, Err(SendErrorKind::TooLong));
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
        let (reply, result) = oneshot::channel();
        self.0.outbox.enqueue(message, Completion::Send(reply)).await?;
        result.await.unwrap_or(Err(SendError::new(SendErrorKind::Closed, None)))
    }

    /// Puts it into the outbox, without waiting. What becomes of it is not told; if it is dropped,
    /// [`Event::Dropped`](crate::Event::Dropped) counts it.
    ///
    /// # Errors
    /// [`SendError`] with the message, if it was not taken.
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        match self.0.outbox.try_enqueue(message, Completion::Ignored) {
            Enqueue::Queued => Ok(()),
            Enqueue::NoRoom(message, _) => Err(SendError::new(SendErrorKind::Full, Some(message))),
            Enqueue::Rejected(error) => Err(error),
        }
    }

    /// Connects at once: in the middle of a wait, after giving up, after the server ended the last connection; a
    /// connection that is open is replaced. After a [`close`](Self::close) it does nothing.
    pub fn reconnect_now(&self) {
        self.0.reconnect_requests.fetch_add(1, Ordering::AcqRel);
        self.command(Command::ReconnectNow);
    }

    /// Closes it for good: with the closing handshake if there is a connection, for no longer than the close timeout.
    /// Every timer is dropped, what waits in the outbox fails, and the client's stream ends after what it has not told yet.
    ///
    /// Cancel-safe: it goes on without the caller.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.command(Command::Close(done));
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
                    self.0.reconnect_requests.load(Ordering::Acquire)
                        == self.0.reconnects_handled.load(Ordering::Acquire)
                }
                _ => false,
            })
            .await;
        match settled.as_deref() {
            Ok(ConnectionState::Open) => Ok(()),
            Ok(ConnectionState::Closed(Some(fatal))) => Err(fatal.clone()),
            _ => Err(Fatal::closed_locally()),
        }
    }

    /// If the task is gone, all that can be asked of it has been done.
    pub(super) fn command(&self, command: Command) {
        let _ = self.0.commands.unbounded_send(command);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &*self.0.state.borrow()).finish_non_exhaustive()
    }
}
