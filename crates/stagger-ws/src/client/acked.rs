//! At-least-once delivery: the client, and how its messages are identified and acknowledged.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use futures_util::{Sink, Stream, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use super::ack_window::{AckDelivery, Room, UnackedMessages, Window};
use super::builder::ClientBuilder;
use super::events::Event;
use super::failure::Fatal;
use super::handle::Handle;
use super::outbox::{SendError, SendErrorKind};
use super::outbox_queue::Completion;
use super::stream::Client;
use super::telemetry;

/// What a message from the server acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ack<K> {
    /// Only the message with this id.
    One(K),
    /// All messages up to and including the one with this id. Ids must ascend in send order.
    UpTo(K),
}

impl<K: Ord> Ack<K> {
    pub(super) fn covers(&self, id: &K) -> bool {
        match self {
            Self::One(one) => one == id,
            Self::UpTo(last) => last >= id,
        }
    }
}

/// How messages are identified and acknowledged, and how many may be unacknowledged: the configuration for
/// [`ClientBuilder::acked`].
///
/// | setting | default |
/// |---|---|
/// | unacknowledged messages | 64, then `send` waits |
/// | unacknowledged bytes | no limit |
/// | a server that never acknowledges | no timeout; the keepalive detects an unresponsive peer |
///
/// [`ClientBuilder::acked`]: crate::ClientBuilder::acked
pub struct Acks<K> {
    id: Box<IdOf<K>>,
    ack: Box<AckIn<K>>,
    pub(super) max_messages: usize,
    pub(super) max_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) delivery: AckDelivery,
}

type IdOf<K> = dyn Fn(&Message) -> K + Send + Sync;
type AckIn<K> = dyn Fn(&Message) -> Option<Ack<K>> + Send + Sync;

impl<K: Ord + Send + 'static> Acks<K> {
    /// Creates a configuration with a window of 64 messages. `id` returns the id of an outgoing message; ids must be
    /// unique among unacknowledged messages. `ack` returns what an incoming message acknowledges, or `None` if it is
    /// not an acknowledgement.
    #[must_use]
    pub fn new(
        id: impl Fn(&Message) -> K + Send + Sync + 'static,
        ack: impl Fn(&Message) -> Option<Ack<K>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: Box::new(id),
            ack: Box::new(ack),
            max_messages: 64,
            max_bytes: usize::MAX,
            timeout: None,
            delivery: AckDelivery::Consume,
        }
    }

    /// Limits the number of unacknowledged messages (minimum 1). Further sends wait. Default 64.
    #[must_use]
    pub fn window(mut self, messages: usize) -> Self {
        self.max_messages = messages.max(1);
        self
    }

    /// Limits the total payload of unacknowledged messages to `bytes`. A longer message is rejected. No limit by
    /// default.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Treats the connection as lost if a message that was sent over it is not acknowledged for `longest`, and
    /// everything received has been read. Choose a time longer than the server's slowest response; the minimum is 1 ms.
    /// No timeout by default, since TCP does not lose data while the connection is up.
    #[must_use]
    pub fn ack_timeout(mut self, longest: Duration) -> Self {
        self.timeout = Some(longest.max(Duration::from_millis(1)));
        self
    }

    /// Yields acknowledgements in the stream, too, for protocols whose acknowledgements carry data. By default they are
    /// consumed, so a client that only sends does not have to read.
    #[must_use]
    pub fn pass_through(mut self) -> Self {
        self.delivery = AckDelivery::PassThrough;
        self
    }

    pub(super) fn id(&self, message: &Message) -> K {
        (self.id)(message)
    }

    pub(super) fn ack(&self, message: &Message) -> Option<Ack<K>> {
        (self.ack)(message)
    }
}

impl<K> fmt::Debug for Acks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acks")
            .field("window", &self.max_messages)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// A [`Client`] with at-least-once delivery: unacknowledged messages are kept, and sent again over the next connection.
///
/// After each [`Event::Open`], exactly the unacknowledged messages are sent, in order and before anything else;
/// [`Opened::resent`](crate::Opened::resent) is the number of those that had been sent before. So the server may
/// receive a message twice. To store each message exactly once, the server stores a message before acknowledging it,
/// and detects duplicates by their id: it skips them, and acknowledges them again.
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
    pub(super) fn new(builder: ClientBuilder, acks: Acks<K>) -> Self {
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

impl<K> fmt::Debug for AckedClient<K> {
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

impl<K> fmt::Debug for AckedHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckedHandle").field("client", &self.client).finish_non_exhaustive()
    }
}
