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
use super::handshake::Socket;
use super::heartbeat::{Beat, Heartbeat};

/// How a connection ended, and when.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) cause: ConnectionError,
    pub(super) at: Instant,
}

/// A connection that is up: a stream of the messages that come, and a sink for those that go.
///
/// The stream gives texts and binaries. It ends with one error, which says why the connection ended, a close by the
/// server included; after that there is nothing more. Pings are answered, and the heartbeat is kept, while it is polled.
///
/// It borrows the [`ReconnectLoop`](super::ReconnectLoop) that it came from, which learns from it how it ended: there is never
/// more than one.
pub struct Connection<'r> {
    socket: Socket,
    response: Response<()>,
    heartbeat: Option<Heartbeat>,
    close_timeout: Duration,
    heard: Heard,
    ping: Flushing,
    attempt: u32,
    downtime: Option<Duration>,
    end: &'r mut Option<End>,
}

/// Whether frames have come since the heartbeat was told: it is told once for all that come in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Something,
    Nothing,
}

/// Whether a ping waits for its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushing {
    Yes,
    No,
}

/// What a connection begins with.
pub(super) struct Fresh {
    pub(super) socket: Socket,
    pub(super) response: Response<()>,
    pub(super) attempt: u32,
    pub(super) downtime: Option<Duration>,
    pub(super) heartbeat: Option<(Duration, Duration)>,
    pub(super) close_timeout: Duration,
}

impl<'r> Connection<'r> {
    pub(super) fn new(fresh: Fresh, end: &'r mut Option<End>) -> Self {
        let Fresh { socket, response, attempt, downtime, heartbeat, close_timeout } = fresh;
        let heartbeat = heartbeat.map(|(every, dead_after)| Heartbeat::new(every, dead_after));
        let (heard, ping) = (Heard::Nothing, Flushing::No);
        Self { socket, response, heartbeat, close_timeout, heard, ping, attempt, downtime, end }
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
        self.say_goodbye(|_| ()).await;
    }

    /// What still comes is looked at.
    pub(super) async fn say_goodbye<T>(&mut self, hear: impl Fn(&Message) -> T) {
        let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let socket = &mut self.socket;
        let handshake = async {
            if socket.send(Message::Close(Some(goodbye))).await.is_ok() {
                while let Some(Ok(message)) = socket.next().await {
                    hear(&message);
                }
            }
        };
        // What comes of it does not matter: after it, the connection is dropped.
        let _ = timeout(self.close_timeout, handshake).await;
    }

    /// It has ended so.
    pub(super) fn over(&mut self, cause: ConnectionError) -> ConnectionError {
        *self.end = Some(End { cause: cause.clone(), at: Instant::now() });
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
                Some(Err(self.over(ConnectionError::Closed { code, reason })))
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    /// Nothing is there to be read: time for the heartbeat.
    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let Some(heartbeat) = &mut self.heartbeat else { return Poll::Pending };
        if core::mem::replace(&mut self.heard, Heard::Nothing) == Heard::Something {
            let due = heartbeat.heard(cx);
            if due.is_pending() && self.ping == Flushing::No {
                return Poll::Pending;
            }
        }
        loop {
            if self.ping == Flushing::Yes && self.socket.poll_flush_unpin(cx).is_ready() {
                // An error is told by the reading half.
                self.ping = Flushing::No;
            }
            match ready!(heartbeat.poll(cx)) {
                Beat::Dead(after) => return Poll::Ready(ConnectionError::KeepaliveTimeout { after }),
                Beat::Ping => {
                    if self.socket.start_send_unpin(Message::Ping(Bytes::new())).is_ok() {
                        self.ping = Flushing::Yes;
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
                    this.heard = Heard::Something;
                    match this.incoming(message, cx) {
                        Some(item) => return Poll::Ready(Some(item)),
                        None => continue,
                    }
                }
                Poll::Ready(Some(Err(error))) => ConnectionError::of(error),
                Poll::Ready(None) => ConnectionError::Lost,
                Poll::Pending => ready!(this.poll_heartbeat(cx)),
            };
            return Poll::Ready(Some(Err(this.over(cause))));
        }
        Poll::Ready(None)
    }
}

/// A message that was flushed has been handed to the system; whether it arrives, only an answer tells. An error of the
/// sink leaves it to the stream to say why: the server's close frame may be there to be read.
impl Sink<Message> for Connection<'_> {
    type Error = ConnectionError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_ready_unpin(cx).map_err(ConnectionError::of)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), ConnectionError> {
        self.socket.start_send_unpin(message).map_err(ConnectionError::of)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_flush_unpin(cx).map_err(ConnectionError::of)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.socket.poll_close_unpin(cx).map_err(ConnectionError::of)
    }
}

/// If its end is not known, it was this side that let go of it.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.over(ConnectionError::ClosedLocally);
        }
    }
}

impl fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("attempt", &self.attempt).field("end", &self.end).finish_non_exhaustive()
    }
}
