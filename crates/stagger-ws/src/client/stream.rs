use core::fmt;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use futures_channel::mpsc::Receiver;
use futures_util::{Sink, Stream, StreamExt};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use super::ack_window::UnackedMessages;
use super::builder::ClientBuilder;
use super::events::{ConnectionState, Delivery, Event};
use super::failure::Fatal;
use super::handle::{ClientState, Command, Handle, UnreadBytes};
use super::outbox::SendError;
use super::outbox_queue::{Completion, OutboxQueue};
use super::reconnect_loop::ReconnectLoop;
use super::resume::{ResumeHandshake, with_position};
use super::task::ConnectionTask;
use super::telemetry;

/// A reconnecting WebSocket client: a stream of events and a sink for messages.
///
/// A background task keeps the connection up. [`Event::Open`], [`Event::Message`] and [`Event::Closed`] arrive in one
/// stream, in order, so the code that handles `Open` is the place to subscribe again. After an error the client has
/// given up, and the stream ends until [`Handle::reconnect_now`] is called. If the server ends the connection normally,
/// the stream ends without an error.
///
/// - Unread events are bounded, in number and in bytes. If the inbox is full, nothing more is read from the connection,
///   which applies backpressure to the server. While that lasts, no pings are sent or answered, and a loss is detected
///   only by sending. A ping that arrived meanwhile is answered when the messages before it have been read.
/// - A message that was sent has been handed to an open connection; see [`Handle::send`]. A message sent through the
///   sink may wait for a connection; the task goes on connecting meanwhile.
/// - Dropping the client ends its task, its timers and the connection, without a closing handshake. Use
///   [`close`](Handle::close) for a closing handshake.
///
/// ```no_run
/// // Needs a server.
/// use futures_util::{SinkExt, StreamExt};
/// use stagger_ws::{Client, Event, Message};
///
/// # async fn feed() -> Result<(), Box<dyn std::error::Error>> {
/// let mut ws = Client::builder().url("wss://feed.example/v1").connect();
/// while let Some(event) = ws.next().await {
///     match event? {
///         Event::Open(_) => ws.send(Message::text("subscribe")).await?,
///         Event::Message(message) => println!("{message}"),
///         Event::Closed(closed) => eprintln!("{}, next try in {:?}", closed.cause, closed.retry_in),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Client {
    handle: Handle,
    events: Receiver<Delivery>,
    /// The stream has ended unless there have been more reconnect requests than this.
    ended: Option<u64>,
}

impl ClientBuilder {
    /// Creates a client: a stream of events and a sink for messages. A background task starts connecting immediately;
    /// [`Client::connected`](crate::Client::connected) waits for it.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    #[must_use]
    pub fn connect(self) -> Client {
        Client::new(self, None)
    }
}

impl Client {
    /// Returns a builder with the default settings. [`ClientBuilder::connect`] creates the client.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(super) fn new(mut builder: ClientBuilder, window: Option<Arc<dyn UnackedMessages>>) -> Self {
        let (deliveries, events) = futures_channel::mpsc::channel(builder.inbox);
        let (commands, received) = futures_channel::mpsc::unbounded();
        let (state, state_watch) = watch::channel(ConnectionState::Connecting { unreachable: None });
        let outbox = OutboxQueue::new(builder.outbox, telemetry::target(&builder.retrier));
        let resume = builder.resume.take().map(|resume| {
            let dialer = &mut builder.dialer;
            dialer.provider = with_position(Arc::clone(&dialer.provider), Arc::clone(&resume));
            Box::new(ResumeHandshake::new(resume, dialer.connect_timeout, builder.inbox_bytes))
        });
        let shared = Arc::new(ClientState {
            outbox,
            unread: UnreadBytes::new(builder.inbox_bytes),
            window,
            commands,
            state: state_watch,
            reconnect_requests: AtomicU64::new(0),
            reconnects_handled: AtomicU64::new(0),
        });
        let task =
            ConnectionTask::new(ReconnectLoop::new(builder), Arc::clone(&shared), received, deliveries, state, resume);
        tokio::spawn(task.run());
        Self { handle: Handle(shared), events, ended: None }
    }

    /// Returns a handle for use in other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until connected. Use it to fail fast at start-up. No events are read meanwhile, and none are lost.
    ///
    /// # Errors
    /// [`Fatal`] if the client gives up first, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        self.handle.connected().await
    }

    /// Closes the client permanently; see [`Handle::close`].
    pub async fn close(&self) {
        self.handle.close().await;
    }

    /// Converts this into a stream of messages only.
    #[must_use]
    pub const fn messages(self) -> Messages {
        Messages(self)
    }

    fn has_ended(&self) -> bool {
        self.ended.is_some_and(|at| self.handle.0.reconnect_requests.load(Ordering::Acquire) == at)
    }
}

impl Stream for Client {
    type Item = Result<Event, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended() {
            return Poll::Ready(None);
        }
        loop {
            let delivery = ready!(self.events.poll_next_unpin(cx));
            match delivery {
                None => return Poll::Ready(None),
                Some(Delivery::Event(event)) => {
                    if let Event::Message(message) = &event {
                        self.handle.0.unread.remove(message.len());
                    }
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Delivery::End(fatal, at)) => {
                    self.ended = Some(at);
                    if let Some(fatal) = fatal {
                        return Poll::Ready(Some(Err(fatal)));
                    }
                    if self.has_ended() {
                        return Poll::Ready(None);
                    }
                }
            }
        }
    }
}

/// A flushed message has been handed to an open connection. If a message was dropped before that, the flush returns the
/// error.
impl Sink<Message> for Client {
    type Error = SendError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.0.outbox.poll_room(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        // The sink always has room: `poll_room` has checked.
        self.handle.0.outbox.try_enqueue(message, Completion::Sink).without_waiting()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.0.outbox.poll_flushed(cx)
    }

    /// Flushes. The connection stays open for the stream; [`Client::close`] closes it.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_flush(cx)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.handle.command(Command::Shutdown);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// A stream of a [`Client`]'s messages only: see [`Client::messages`].
#[derive(Debug)]
pub struct Messages(Client);

impl Messages {
    /// Returns a handle to the client, for use in other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.handle()
    }
}

impl Stream for Messages {
    type Item = Result<Message, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.0.poll_next_unpin(cx)) {
                Some(Ok(Event::Message(message))) => return Poll::Ready(Some(Ok(message))),
                Some(Ok(_)) => {}
                Some(Err(fatal)) => return Poll::Ready(Some(Err(fatal))),
                None => return Poll::Ready(None),
            }
        }
    }
}
