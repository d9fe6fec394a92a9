use core::fmt::{self, Debug};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use futures_util::{Sink, Stream, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use super::acks::{Ack, Acks};
use super::window::{Room, Window};
use crate::client::background::event::Event;
use crate::client::background::handle::Handle;
use crate::client::background::stream::Client;
use crate::client::builder::ClientBuilder;
use crate::client::failure::fatal::Fatal;
use crate::client::outbox::error::{SendError, SendErrorKind};
use crate::client::outbox::queue::Completion;
use crate::client::outbox::unacked::UnackedMessages;
use crate::client::telemetry;

/// A [`Client`] with at-least-once delivery: unacknowledged messages are kept, and sent again over the next connection.
///
/// After each [`Event::Open`], exactly the unacknowledged messages are sent, in order and before anything else;
/// [`Opened::resent`](crate::Opened::resent) is the number of those that had been sent before. So the server may receive a message twice. To store each
/// message exactly once, the server stores a message before acknowledging it, and detects duplicates by their id: it
/// skips them, and acknowledges them again.
///
/// - The window of unacknowledged messages is bounded. If it is full, `send` waits.
/// - The window is kept in memory. To let messages outlive the process, store what [`close`](Self::close) or
///   [`unacked`](AckedHandle::unacked) returns.
/// - After giving up, the window is unchanged, and [`reconnect_now`](Handle::reconnect_now) sends it again.
/// - Acknowledgements are read in order with all other messages. If the inbox is full, they are not read. A task that
///   both sends and reads should not wait for room in the window while other messages keep arriving.
///
/// ```
/// use futures_util::StreamExt;
/// use stagger_ws::{Ack, Acks, Client, Event, Message};
///
/// // The client sends "7 hello"; the server replies "ack 7".
/// fn id(message: &Message) -> u64 {
///     let text = message.to_text().unwrap_or_default();
///     text.split(' ').next().and_then(|id| id.parse().ok()).unwrap_or_default()
/// }
/// fn ack(message: &Message) -> Option<Ack<u64>> {
///     message.to_text().ok()?.strip_prefix("ack ")?.parse().ok().map(Ack::UpTo)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # use futures_util::SinkExt;
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}", listener.local_addr()?);
/// # tokio::spawn(async move {
/// #     let (stream, _) = listener.accept().await.unwrap();
/// #     let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
/// #     while let Some(Ok(message)) = socket.next().await {
/// #         if let Message::Text(text) = message {
/// #             let id = text.split(' ').next().unwrap();
/// #             socket.send(Message::text(format!("ack {id}"))).await.unwrap();
/// #         }
/// #     }
/// # });
/// let acks = Acks::new(id, ack).window(32).max_bytes(1 << 20);
/// let chat = Client::builder().url(url).acked(acks);
/// chat.send(Message::text("1 hello")).await?;
/// chat.send(Message::text("2 world")).await?;
/// chat.flushed().await?;
/// let unacknowledged = chat.close().await;
/// assert!(unacknowledged.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct AckedClient<K> {
    client: Client,
    handle: AckedHandle<K>,
}

impl ClientBuilder {
    /// Creates a client with at-least-once delivery: messages are kept until the server acknowledges them. Starts
    /// connecting immediately, as [`connect`](Self::connect) does.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    #[must_use]
    pub fn acked<K: Ord + Send + 'static>(self, acks: Acks<K>) -> AckedClient<K> {
        AckedClient::new(self, acks)
    }
}

impl<K: Ord + Send + 'static> AckedClient<K> {
    pub(in crate::client) fn new(builder: ClientBuilder, acks: Acks<K>) -> Self {
        let window = Arc::new(Window::new(acks, telemetry::target(&builder.retrier)));
        let client = Client::new(builder, Some(Arc::clone(&window) as Arc<dyn UnackedMessages>));
        let handle = AckedHandle { client: client.handle(), window };
        Self { client, handle }
    }

    /// Returns a handle for use in other tasks.
    #[must_use]
    pub fn handle(&self) -> AckedHandle<K> {
        self.handle.clone()
    }

    /// Waits until connected; see [`Client::connected`].
    ///
    /// # Errors
    /// [`Fatal`] if the client gives up first, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        self.client.connected().await
    }

    /// Accepts a message for delivery; see [`AckedHandle::send`].
    ///
    /// # Errors
    /// [`SendError`] with the reason and the message.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        self.handle.send(message).await
    }

    /// Waits until all messages are acknowledged; see [`AckedHandle::flushed`].
    ///
    /// # Errors
    /// [`SendErrorKind`] if that is no longer possible.
    pub async fn flushed(&self) -> Result<(), SendErrorKind> {
        self.handle.flushed().await
    }

    /// Closes the client permanently and returns the unacknowledged messages; see [`AckedHandle::close`].
    #[must_use = "it contains the unacknowledged messages"]
    pub async fn close(&self) -> Vec<Message> {
        self.handle.close().await
    }
}

/// The same events as those of [`Client`].
impl<K> Stream for AckedClient<K> {
    type Item = Result<Event, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.client.poll_next_unpin(cx)
    }
}

/// A message in the sink is accepted for delivery, so there is nothing to flush. If other tasks send at the same time,
/// the sink may exceed the window by one message.
impl<K: Ord + Send + 'static> Sink<Message> for AckedClient<K> {
    type Error = SendError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.window.poll_room(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        self.handle.window.try_enqueue(message, Completion::Unacked, Room::Reserved).without_waiting()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }
}

impl<K> Debug for AckedClient<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckedClient").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// A cloneable handle to an [`AckedClient`], for use in any task.
pub struct AckedHandle<K> {
    client: Handle,
    window: Arc<Window<K>>,
}

impl<K: Ord + Send + 'static> AckedHandle<K> {
    /// Accepts a message for delivery. `Ok` means that it will be sent until it is acknowledged. Waits for room in the
    /// window, but neither for a connection nor for an acknowledgement.
    ///
    /// Cancel-safe: if the future is dropped, the message has not been accepted.
    ///
    /// # Errors
    /// [`SendError`] with the reason and the message: the client has given up or is closed, or the message is longer
    /// than the window.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        self.window.enqueue(message).await
    }

    /// Accepts a message for delivery without waiting.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`SendErrorKind::Full`] if there is no room.
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.window.try_enqueue(message, Completion::Unacked, Room::Required).without_waiting()
    }

    /// Processes an acknowledgement that was received by other means than the connection, also between two connections.
    /// A message that has never been sent cannot be acknowledged.
    pub fn acknowledge(&self, ack: &Ack<K>) {
        self.window.acknowledge(ack);
    }

    /// Waits until all messages are acknowledged, including those sent meanwhile. Cancel-safe.
    ///
    /// # Errors
    /// [`SendErrorKind::GaveUp`] or [`SendErrorKind::Closed`] if that is no longer possible.
    pub async fn flushed(&self) -> Result<(), SendErrorKind> {
        self.window.flushed().await
    }

    /// Returns copies of the unacknowledged messages, in order.
    #[must_use]
    pub fn unacked(&self) -> Vec<Message> {
        self.window.unacked()
    }

    /// Closes the client permanently, as [`Handle::close`] does, and returns the unacknowledged messages in order,
    /// including those never sent. Some of them may have arrived. Does not wait for acknowledgements;
    /// [`flushed`](Self::flushed) does.
    ///
    /// Cancel-safe: a second call returns what the first one would have returned.
    #[must_use = "it contains the unacknowledged messages"]
    pub async fn close(&self) -> Vec<Message> {
        self.client.close().await;
        self.window.drain()
    }

    /// Returns a handle to the underlying client: for its state, for [`reconnect_now`](Handle::reconnect_now), and for
    /// messages that are not acknowledged. Those are sent when no message in the window is waiting.
    #[must_use]
    pub fn client(&self) -> &Handle {
        &self.client
    }
}

impl<K> Clone for AckedHandle<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), window: Arc::clone(&self.window) }
    }
}

impl<K> Debug for AckedHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckedHandle").field("client", &self.client).finish_non_exhaustive()
    }
}
