use core::fmt;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use futures_channel::mpsc::Receiver;
use futures_util::{Sink, Stream, StreamExt};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use super::acked::UnackedMessages;
use super::builder::ClientBuilder;
use super::event_buffer::Delivery;
use super::handle::{Command, Handle, Shared};
use super::outbox::{Completion, Enqueue, OutboxQueue};
use super::resume::{ResumeHandshake, with_position};
use super::task::ConnectionTask;
use super::{ConnectionState, Event, Fatal, ReconnectLoop, SendError};

/// A connection that comes back: a stream of what happens, and a sink for messages.
///
/// A task of its own keeps it up. [`Event::Open`], [`Event::Message`] and [`Event::Closed`] come in one stream, in the order
/// in which they happened, so that subscribing again is done where it belongs. An error is the last for now: the client gave
/// up, and the stream ends after it, until [`Handle::reconnect_now`]. If the server ends the connection as it should, the
/// stream ends without an error.
///
/// - What nobody reads is not buffered without bound: when the inbox is full, nothing more is read, and the server has to
///   wait. While that lasts, no pings are sent, none are answered, and a loss shows only when something is sent.
/// - A message that was sent has been handed to an open connection; see [`Handle::send`]. What is sent through the sink may
///   wait for a connection, while the task goes on to connect.
/// - Dropping the client ends the task, its timers and the connection, without a closing handshake;
///   [`close`](Handle::close) is for that.
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
    /// The stream has ended, unless it was asked to reconnect more often than this.
    ended: Option<u64>,
}

impl Client {
    /// What can be said about how it connects. [`ClientBuilder::connect`] makes it.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(super) fn new(mut builder: ClientBuilder, window: Option<Arc<dyn UnackedMessages>>) -> Self {
        let (deliveries, events) = futures_channel::mpsc::channel(builder.inbox);
        let (commands, received) = futures_channel::mpsc::unbounded();
        let (state, state_watch) = watch::channel(ConnectionState::Connecting);
        let outbox = OutboxQueue::new(builder.outbox, &builder.target);
        let resume = builder.resume.take().map(|resume| {
            let dialer = &mut builder.dialer;
            dialer.provider = with_position(Arc::clone(&dialer.provider), resume.clone());
            Box::new(ResumeHandshake::new(resume, dialer.connect_timeout))
        });
        let shared = Arc::new(Shared {
            outbox,
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

    /// Another hand on it, for other tasks.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until there is a connection, for who wants to fail fast. Nothing is read meanwhile, and nothing lost.
    ///
    /// # Errors
    /// [`Fatal`] if it gives up before, or has been closed.
    pub async fn connected(&self) -> Result<(), Fatal> {
        self.handle.connected().await
    }

    /// Closes it for good; see [`Handle::close`].
    pub async fn close(&self) {
        self.handle.close().await;
    }

    /// The messages alone.
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
                Some(Delivery::Event(event)) => return Poll::Ready(Some(Ok(event))),
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

/// What is flushed has been handed to an open connection. If it was dropped on the way, the flush says so.
impl Sink<Message> for Client {
    type Error = SendError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.0.outbox.poll_room(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), SendError> {
        match self.handle.0.outbox.try_enqueue(message, Completion::Sink) {
            Enqueue::Queued | Enqueue::NoRoom(..) => Ok(()),
            Enqueue::Rejected(error) => Err(error),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.handle.0.outbox.poll_flushed(cx)
    }

    /// Flushes; the connection stays, for the stream is still there. [`Client::close`] closes it.
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

/// The messages of a [`Client`] alone: see [`Client::messages`].
#[derive(Debug)]
pub struct Messages(Client);

impl Messages {
    /// Another hand on the client, for other tasks.
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
