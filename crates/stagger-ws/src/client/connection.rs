use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::Response;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};

use super::ConnectionError;
use super::dialer::WebSocket;
use super::keepalive::{KeepaliveAction, KeepaliveTimer};

/// How a connection ended, and when.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEnd {
    pub(super) cause: ConnectionError,
    pub(super) at: Instant,
}

/// A connection that is up: a stream of the messages that come, and a sink for those that go.
///
/// The stream gives texts and binaries. It ends with one error, which says why the connection ended, a close by the
/// server included; after that there is nothing more. Pings are answered, and the keepalive is kept, while it is polled.
///
/// It borrows the [`ReconnectLoop`](super::ReconnectLoop) that it came from, which learns from it how it ended: there is never
/// more than one.
pub struct Connection<'r> {
    socket: WebSocket,
    response: Response<()>,
    keepalive: Option<KeepaliveTimer>,
    close_timeout: Duration,
    activity: Activity,
    ping: PingFlush,
    attempt: u32,
    downtime: Option<Duration>,
    end: &'r mut Option<ConnectionEnd>,
}

/// Whether frames have come since the keepalive was told: it is told once for all that come in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Received,
    None,
}

/// Whether a ping waits for its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingFlush {
    Pending,
    Done,
}

/// What a connection begins with.
pub(super) struct ConnectionParts {
    pub(super) socket: WebSocket,
    pub(super) response: Response<()>,
    pub(super) attempt: u32,
    pub(super) downtime: Option<Duration>,
    pub(super) keepalive: Option<(Duration, Duration)>,
    pub(super) close_timeout: Duration,
}

impl<'r> Connection<'r> {
    pub(super) fn new(parts: ConnectionParts, end: &'r mut Option<ConnectionEnd>) -> Self {
        let ConnectionParts { socket, response, attempt, downtime, keepalive, close_timeout } = parts;
        let keepalive = keepalive.map(|(every, dead_after)| KeepaliveTimer::new(every, dead_after));
        let (activity, ping) = (Activity::None, PingFlush::Done);
        Self { socket, response, keepalive, close_timeout, activity, ping, attempt, downtime, end }
    }

    /// The server's answer to the request for the upgrade: its headers, among them the protocol that it has chosen.
    #[must_use]
    pub const fn response(&self) -> &Response<()> {
        &self.response
    }

    /// The number of the attempt that opened it, from 1; it starts again after a connection that was healthy.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How long there was no connection before it; `None` for the first.
    #[must_use]
    pub const fn downtime(&self) -> Option<Duration> {
        self.downtime
    }

    /// Closes it with the closing handshake: code 1000, and a wait for the server's answer, which takes no longer than the
    /// close timeout. What was sent before is on its way. Cancelled in the middle, the connection is dropped.
    pub async fn close(mut self) {
        self.close_handshake(|_| ()).await;
    }

    /// What still comes is looked at.
    pub(super) async fn close_handshake<T>(&mut self, on_message: impl Fn(&Message) -> T) {
        let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let socket = &mut self.socket;
        let handshake = async {
            if socket.send(Message::Close(Some(goodbye))).await.is_ok() {
                while let Some(Ok(message)) = socket.next().await {
                    on_message(&message);
                }
            }
        };
        // What comes of it does not matter: after it, the connection is dropped.
        let _ = timeout(self.close_timeout, handshake).await;
    }

    /// It has ended so.
    pub(super) fn record_end(&mut self, cause: ConnectionError) -> ConnectionError {
        *self.end = Some(ConnectionEnd { cause: cause.clone(), at: Instant::now() });
        cause
    }

    /// What is not for the user is answered here; `None` if there is more to read.
    fn incoming(&mut self, message: Message, cx: &mut Context<'_>) -> Option<Result<Message, ConnectionError>> {
        match message {
            Message::Text(_) | Message::Binary(_) => Some(Ok(message)),
            Message::Close(frame) => {
                // The answer goes out if it can at once: the connection is not kept for it.
                let _ = self.socket.poll_flush_unpin(cx);
                let (code, reason) =
                    frame.map_or((1005, Utf8Bytes::default()), |frame| (frame.code.into(), frame.reason));
                Some(Err(self.record_end(ConnectionError::Closed { code, reason })))
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    /// Nothing is there to be read: time for the keepalive.
    fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let Some(keepalive) = &mut self.keepalive else { return Poll::Pending };
        if core::mem::replace(&mut self.activity, Activity::None) == Activity::Received {
            let due = keepalive.frame_received(cx);
            if due.is_pending() && self.ping == PingFlush::Done {
                return Poll::Pending;
            }
        }
        loop {
            if self.ping == PingFlush::Pending && self.socket.poll_flush_unpin(cx).is_ready() {
                // An error is told by the reading half.
                self.ping = PingFlush::Done;
            }
            match ready!(keepalive.poll(cx)) {
                KeepaliveAction::PeerDead(after) => return Poll::Ready(ConnectionError::KeepaliveTimeout { after }),
                KeepaliveAction::SendPing => {
                    if self.socket.start_send_unpin(Message::Ping(Bytes::new())).is_ok() {
                        self.ping = PingFlush::Pending;
                    }
                }
            }
        }
    }
}

impl Stream for Connection<'_> {
    type Item = Result<Message, ConnectionError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // What tungstenite says after the end that was told is not news.
        while this.end.is_none() {
            let cause = match this.socket.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => {
                    this.activity = Activity::Received;
                    match this.incoming(message, cx) {
                        Some(item) => return Poll::Ready(Some(item)),
                        None => continue,
                    }
                }
                Poll::Ready(Some(Err(error))) => ConnectionError::from_tungstenite(error),
                Poll::Ready(None) => ConnectionError::Lost,
                Poll::Pending => ready!(this.poll_keepalive(cx)),
            };
            return Poll::Ready(Some(Err(this.record_end(cause))));
        }
        Poll::Ready(None)
    }
}

/// A message that was flushed has been handed to the system; whether it arrives, only an answer tells. An error of the
/// sink leaves it to the stream to say why: the server's close frame may be there to be read.
impl Sink<Message> for Connection<'_> {
    type Error = ConnectionError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_ready_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), ConnectionError> {
        self.socket.start_send_unpin(message).map_err(ConnectionError::from_tungstenite)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_flush_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_close_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }
}

/// If its end is not known, it was this side that let go of it.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.record_end(ConnectionError::ClosedLocally);
        }
    }
}

impl fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("attempt", &self.attempt).field("end", &self.end).finish_non_exhaustive()
    }
}
