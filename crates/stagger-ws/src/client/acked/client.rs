use core::fmt::{self, Debug};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use futures_util::{Sink, Stream, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use super::window::{Room, UnackedMessages, Window};
use super::{Ack, Acks};
use crate::client::builder::ClientBuilder;
use crate::client::outbox::{Completion, Enqueue};
use crate::client::{Client, Event, Fatal, Handle, SendError, SendErrorKind};

/// A [`Client`] that delivers at least once: what the server has not acknowledged is kept, and sent again over the next
/// connection.
///
/// After each [`Event::Open`], exactly the messages that are not acknowledged are sent again, in their order, before
/// anything else; [`Opened::resent`](crate::Opened::resent) says how many. So the server may get a message twice, and has
/// to know it by its id: store it, then acknowledge it, and pass over what is stored already, but acknowledge that too.
/// Then each is stored exactly once.
///
/// - What is not acknowledged is bounded: beyond the window, `send` waits.
/// - It is kept in memory. What [`close`](Self::close) gives back, or [`unacked`](AckedHandle::unacked), is for whoever
///   wants it to outlive the process.
/// - After giving up, the window stays as it is, and [`reconnect_now`](Handle::reconnect_now) sends it again.
/// - Acknowledgements are read with everything else: if the inbox is full because nobody reads, they are not. Whoever sends
///   and reads in one task should not wait for room in the window while messages of another kind keep coming.
///
/// ```
/// use futures_util::StreamExt;
/// use stagger_ws::{Ack, Acks, Client, Event, Message};
///
/// // "7 hello" goes out, "ack 7" comes back.
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
/// let never_acknowledged = chat.close().await;
/// assert!(never_acknowledged.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct AckedClient<K> {
    client: Client,
    handle: AckedHandle<K>,
}

impl<K: Ord + Send + 'static> AckedClient<K> {
    pub(in crate::client) fn new(builder: ClientBuilder, acks: Acks<K>) -> Self {
        let window = Arc::new(Window::new(acks, &builder.target));
        let client = Client::new(builder, Some(Arc::clone(&window) as Arc<dyn UnackedMessages>));
        let handle = AckedHandle { client: client.handle(), window };
        Self { client, handle }
    }

    /// Another hand on it, for other tasks.
    #[must_use]
    pub fn handle(&self) -> AckedHandle<K> {
        self.handle.clone()
    }

    /// Waits until there is a connection; see [`Client::connected`].
    ///
    /// # Errors
    /// [`Fatal`] if it gives up before, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        self.client.connected().await
    }

    /// Takes charge of a message; see [`AckedHandle::send`].
    ///
    /// # Errors
    /// [`SendError`] says why it was not taken, and gives it back.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        self.handle.send(message).await
    }

    /// Waits until everything is acknowledged; see [`AckedHandle::flushed`].
    ///
    /// # Errors
    /// [`SendErrorKind`] if that can no longer be.
    pub async fn flushed(&self) -> Result<(), SendErrorKind> {
        self.handle.flushed().await
    }

    /// Closes it for good, and gives back what was never acknowledged; see [`AckedHandle::close`].
    #[must_use = "what was never acknowledged is in it"]
    pub async fn close(&self) -> Vec<Message> {
        self.handle.close().await
    }
}

/// As of [`Client`].
impl<K> Stream for AckedClient<K> {
    type Item = Result<Event, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.client.poll_next_unpin(cx)
    }
}

/// What is put in has been taken charge of: there is nothing to flush. While others send too, it may go beyond the window
/// by one message.
impl<K: Ord + Send + 'static> Sink<Message> for AckedClient<K> {
    type Error = SendError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.window.poll_room(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        self.handle.enqueue(message, Room::Reserved)
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

/// Another hand on an [`AckedClient`], from any task.
pub struct AckedHandle<K> {
    client: Handle,
    window: Arc<Window<K>>,
}

impl<K: Ord + Send + 'static> AckedHandle<K> {
    /// Takes charge of a message: `Ok` says that it will be sent until it is acknowledged. It waits for room in the window,
    /// but neither for a connection nor for an acknowledgement.
    ///
    /// Cancel-safe: dropped before it is done, the message has not been taken.
    ///
    /// # Errors
    /// [`SendError`] says why it was not taken, and gives it back: the client has given up or is closed, or it is longer
    /// than the window.
    pub async fn send(&self, message: Message) -> Result<(), SendError> {
        self.window.enqueue(message).await
    }

    /// Takes charge of a message, without waiting.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`SendErrorKind::Full`] if there is no room.
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.enqueue(message, Room::Required)
    }

    /// What is acknowledged in another way than by a message that comes, between two connections too. A message that has
    /// never been sent cannot be.
    pub fn acknowledge(&self, ack: &Ack<K>) {
        self.window.acknowledge(ack);
    }

    /// Waits until everything is acknowledged, that which is sent meanwhile too. Cancel-safe.
    ///
    /// # Errors
    /// [`SendErrorKind::GaveUp`] or [`SendErrorKind::Closed`] if that can no longer be.
    pub async fn flushed(&self) -> Result<(), SendErrorKind> {
        self.window.flushed().await
    }

    /// Copies of what is not acknowledged, in order.
    #[must_use]
    pub fn unacked(&self) -> Vec<Message> {
        self.window.unacked()
    }

    /// Closes it for good, as [`Handle::close`], and gives back in order what was never acknowledged, never sent included.
    /// Some of it may have arrived. It does not wait for acknowledgements; [`settled`](Self::flushed) does.
    ///
    /// Cancel-safe: asked again, it gives back what it would have.
    #[must_use = "what was never acknowledged is in it"]
    pub async fn close(&self) -> Vec<Message> {
        self.client.close().await;
        self.window.drain()
    }

    /// The client below: its state, [`reconnect_now`](Handle::reconnect_now), and messages that nobody acknowledges. Those
    /// go out when nothing in the window waits to.
    #[must_use]
    pub fn client(&self) -> &Handle {
        &self.client
    }

    fn enqueue(&self, message: Message, room: Room) -> Result<(), SendError> {
        match self.window.try_enqueue(message, Completion::Unacked, room) {
            Enqueue::Queued => Ok(()),
            Enqueue::NoRoom(message, _) => Err(SendError::new(SendErrorKind::Full, Some(message))),
            Enqueue::Rejected(error) => Err(error),
        }
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
