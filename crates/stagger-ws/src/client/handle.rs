//! The handle of a client, and the state that it shares with the connection task.

use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll};
use std::sync::Arc;

use futures_channel::mpsc::UnboundedSender;
use futures_util::task::AtomicWaker;
use stagger::StopReason;
use tokio::sync::{oneshot, watch};
use tokio_tungstenite::tungstenite::Message;

use super::ack_window::UnackedMessages;
use super::events::ConnectionState;
use super::failure::{ConnectionError, Fatal};
use super::outbox::{SendError, SendErrorKind};
use super::outbox_queue::{Completion, LinkState, OutboxQueue};

/// A command to the task that owns the connection.
#[derive(Debug)]
pub(super) enum Command {
    ReconnectNow,
    /// The sender is dropped when the task has ended.
    Close(oneshot::Sender<()>),
    /// The client was dropped.
    Shutdown,
}

/// State shared by a client and its handles.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) outbox: OutboxQueue,
    pub(super) unread: UnreadBytes,
    /// The messages that are kept until acknowledged.
    pub(super) window: Option<Arc<dyn UnackedMessages>>,
    /// Unbounded: commands do not grow with traffic, and the task always drains the channel.
    pub(super) commands: UnboundedSender<Command>,
    pub(super) state: watch::Receiver<ConnectionState>,
    /// The number of reconnect requests. The stream of a client that gave up continues after a new request.
    pub(super) reconnect_requests: AtomicU64,
    /// The number of reconnect requests that the task has handled.
    pub(super) reconnects_handled: AtomicU64,
}

impl ClientState {
    /// Sets whether messages can be sent. Returns the number of messages that will be sent again.
    pub(super) fn set_link(&self, link: LinkState) -> usize {
        self.outbox.set_link(link);
        self.window.as_ref().map_or(0, |window| window.set_link(link))
    }

    /// Returns the next message to write. Unacknowledged messages come first, so that resent messages are at the head.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<(Message, Completion)> {
        if let Some(window) = &self.window {
            if let Poll::Ready(message) = window.poll_next(cx) {
                return Poll::Ready((message, Completion::Unacked));
            }
        }
        self.outbox.poll_next(cx).map(|item| (item.message, item.completion))
    }

    /// Drops the message taken last, which no connection can ever write.
    pub(super) fn fail_unwritable(&self, completion: Completion) {
        let completion = match (completion, &self.window) {
            (Completion::Unacked, Some(window)) => {
                window.drop_last();
                // Reported as dropped, like any other dropped message.
                Completion::Ignored
            }
            (completion, _) => completion,
        };
        self.outbox.complete(completion, Err(SendErrorKind::TooLong));
    }
}

/// A cloneable handle to a [`Client`](crate::Client), for sending, closing, reconnecting and reading the connection
/// state from any task.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<ClientState>);

impl Handle {
    /// Sends a text or binary message. Waits until there is a connection and room in the [`Outbox`](crate::Outbox).
    ///
    /// `Ok` means that the message was handed to an open connection. Only a response from the server can confirm
    /// delivery.
    ///
    /// Cancel-safe: dropping the future withdraws the message, unless it is already being written.
    ///
    /// # Errors
    /// [`SendError`] with the reason, and with the message if the client no longer has it.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        let (reply, result) = oneshot::channel();
        self.0.outbox.enqueue(message, Completion::Send(reply)).await?;
        result.await.unwrap_or(Err(SendError::new(SendErrorKind::Closed, None)))
    }

    /// Puts a message into the outbox without waiting. The outcome is not reported; if the message is dropped,
    /// [`Event::Dropped`](crate::Event::Dropped) counts it.
    ///
    /// # Errors
    /// [`SendError`] with the message, if the outbox did not accept it.
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.0.outbox.try_enqueue(message, Completion::Ignored).without_waiting()
    }

    /// Reconnects immediately, even during a wait, after giving up, or after the server ended the connection. Replaces
    /// an open connection. Does nothing after [`close`](Self::close).
    pub fn reconnect_now(&self) {
        self.0.reconnect_requests.fetch_add(1, Ordering::AcqRel);
        self.command(Command::ReconnectNow);
    }

    /// Closes the client permanently. An open connection is closed with the closing handshake, which is bounded by the
    /// close timeout.
    ///
    /// All timers are dropped, messages in the outbox fail, and the client's stream ends after the events that are
    /// still unread.
    ///
    /// Cancel-safe: closing continues if the future is dropped.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.command(Command::Close(done));
        // The sender is dropped when the task has ended.
        let _ = closed.await;
    }

    /// Returns a receiver for watching the connection state.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ConnectionState> {
        self.0.state.clone()
    }

    /// Waits until the client is connected.
    ///
    /// # Errors
    /// [`Fatal`] if the client gives up first, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        let mut state = self.state();
        let settled = state
            .wait_for(|state| match state {
                ConnectionState::Open => true,
                // A reconnect request that the task has not handled yet may still change this.
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
            _ => Err(Fatal::new(StopReason::Cancelled, ConnectionError::ClosedLocally, 0)),
        }
    }

    /// Sends a command. If the task has ended, there is nothing left to do.
    pub(super) fn command(&self, command: Command) {
        let _ = self.0.commands.unbounded_send(command);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("state", &*self.0.state.borrow()).finish_non_exhaustive()
    }
}

/// The payload of the messages that the client has not read yet. Their number is bounded by the channel.
#[derive(Debug)]
pub(super) struct UnreadBytes {
    bytes: AtomicUsize,
    limit: usize,
    task: AtomicWaker,
}

impl UnreadBytes {
    pub(super) const fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit, task: AtomicWaker::new() }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.task.wake();
    }

    /// Polls until there is room for a message, whatever its length.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        self.task.register(cx.waker());
        // Checked again: the client may have read a message in between.
        if self.has_room() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) < self.limit
    }
}
