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

use super::dial::WebSocket;
use super::failure::ConnectionError;
use super::timer::{KeepaliveAction, KeepaliveTimer};

/// How and when a connection ended.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEnd {
    pub(super) cause: ConnectionError,
    pub(super) at: Instant,
    /// Whether it ended before it was in service: while a resume was negotiated.
    pub(super) is_negotiating: bool,
}

/// An open connection: a stream of received messages and a sink for outgoing ones.
///
/// The stream yields text and binary messages. It ends with one error, the reason why the connection ended, also if the
/// server closed it normally. Pings are answered and keepalive pings are sent only while the stream is polled.
///
/// It borrows its [`ReconnectLoop`](crate::ReconnectLoop) and reports its end to it, so there is at most one connection
/// at a time.
pub struct Connection<'r> {
    parts: ConnectionParts,
    keepalive: Option<KeepaliveTimer>,
    activity: Activity,
    ping: PingFlush,
    end: &'r mut Option<ConnectionEnd>,
}

/// Whether frames have been received since the keepalive timer was last updated. The timer is updated once per batch of
/// frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Received,
    None,
}

/// Whether a ping has still to be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingFlush {
    Pending,
    Done,
}

/// What a connection is created from.
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
        let keepalive = parts.keepalive.map(|(interval, timeout)| KeepaliveTimer::new(interval, timeout));
        Self { parts, keepalive, activity: Activity::None, ping: PingFlush::Done, end }
    }

    /// Returns the server's response to the upgrade request. Its headers include the subprotocol that the server
    /// selected.
    #[must_use]
    pub const fn response(&self) -> &Response<()> {
        &self.parts.response
    }

    /// Returns the number of the attempt that opened the connection, from 1. The count restarts after a healthy
    /// connection.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// Returns the time without a connection before this one; `None` for the first.
    #[must_use]
    pub const fn downtime(&self) -> Option<Duration> {
        self.parts.downtime
    }

    /// Closes the connection with the closing handshake: sends code 1000 and waits for the server's close frame, for at
    /// most the close timeout. Messages that were sent before are flushed.
    ///
    /// If the future is dropped, the connection is dropped without completing the handshake.
    pub async fn close(mut self) {
        self.close_handshake(|_| ()).await;
    }

    /// Runs the closing handshake, and passes each message that still arrives to `on_message`.
    pub(super) async fn close_handshake<T>(&mut self, on_message: impl Fn(&Message) -> T) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let socket = &mut self.parts.socket;
        let handshake = async {
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(message)) = socket.next().await {
                    on_message(&message);
                }
            }
        };
        // The result does not matter: the connection is dropped next.
        let _ = timeout(self.parts.close_timeout, handshake).await;
    }

    /// Records how the connection ended.
    pub(super) fn record_end(&mut self, cause: ConnectionError) -> ConnectionError {
        *self.end = Some(ConnectionEnd { cause: cause.clone(), at: Instant::now(), is_negotiating: false });
        cause
    }

    /// Records that the connection ended before it was in service, if it ended.
    pub(super) const fn record_unnegotiated(&mut self) {
        if let Some(end) = &mut *self.end {
            end.is_negotiating = true;
        }
    }

    /// Returns what the stream yields for a message, or `None` for control frames, which need no further handling.
    fn incoming(&mut self, message: Message, cx: &mut Context<'_>) -> Option<Result<Message, ConnectionError>> {
        match message {
            Message::Text(_) | Message::Binary(_) => Some(Ok(message)),
            Message::Close(frame) => {
                // The reply is sent only if that is possible immediately; the connection is not kept open for it.
                let _ = self.parts.socket.poll_flush_unpin(cx);
                let (code, reason) =
                    frame.map_or((1005, Utf8Bytes::default()), |frame| (frame.code.into(), frame.reason));
                Some(Err(self.record_end(ConnectionError::Closed { code, reason })))
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    /// Sends keepalive pings. Called when there is nothing to read. Ready if the peer is unresponsive.
    fn poll_keepalive(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let Some(keepalive) = &mut self.keepalive else { return Poll::Pending };
        if core::mem::replace(&mut self.activity, Activity::None) == Activity::Received {
            let due = keepalive.frame_received(cx);
            if due.is_pending() && self.ping == PingFlush::Done {
                return Poll::Pending;
            }
        }
        loop {
            if self.ping == PingFlush::Pending && self.parts.socket.poll_flush_unpin(cx).is_ready() {
                // The reading half reports errors.
                self.ping = PingFlush::Done;
            }
            match ready!(keepalive.poll(cx)) {
                KeepaliveAction::PeerDead(after) => return Poll::Ready(ConnectionError::KeepaliveTimeout { after }),
                KeepaliveAction::SendPing => {
                    if self.parts.socket.start_send_unpin(Message::Ping(Bytes::new())).is_ok() {
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
        // Errors that tungstenite reports after the end are not passed on.
        while this.end.is_none() {
            let cause = match this.parts.socket.poll_next_unpin(cx) {
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

/// A flushed message has been handed to the operating system; only a response can confirm delivery. After a sink error,
/// read the stream for the reason: the server's close frame may be waiting there.
impl Sink<Message> for Connection<'_> {
    type Error = ConnectionError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.parts.socket.poll_ready_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), ConnectionError> {
        self.parts.socket.start_send_unpin(message).map_err(ConnectionError::from_tungstenite)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.parts.socket.poll_flush_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.parts.socket.poll_close_unpin(cx).map_err(ConnectionError::from_tungstenite)
    }
}

/// Records [`ConnectionError::ClosedLocally`] if the connection is dropped before it ended.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.record_end(ConnectionError::ClosedLocally);
        }
    }
}

impl fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("attempt", &self.parts.attempt)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
