use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use std::io;

use futures_util::stream::FusedStream;
use futures_util::{Sink, Stream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};

use super::connections::ConnectionPermit;
use super::drain::CloseRequest;
use super::keepalive::{PeerMonitor, PeerStatus};
use crate::sync::saturating_add;

/// A WebSocket with keepalive and draining. It sends pings, detects a dead peer, and closes when a drain asks it to.
/// Otherwise it behaves like the stream and sink that it wraps, with the same messages and errors.
///
/// - When a drain closes the connection, the client is sent a close frame with 1012 and
///   [`ReconnectAdvice`](crate::ReconnectAdvice). Messages that the client still sends are yielded. The stream ends
///   after the client's reply, or after [`close_timeout`](super::SocketsBuilder::close_timeout). Sending fails after
///   the close.
/// - A dead peer is reported as one error of the kind [`TimedOut`](io::ErrorKind::TimedOut), while reading or while
///   sending; then the stream ends.
/// - It can be split, like any stream and sink. Pings and closes are sent while it is polled for reading. A task that
///   only sends learns of a drain at its next message, and of a dead peer when a message cannot be written.
///
/// Reading is cancel-safe if it is for the wrapped WebSocket.
pub struct Socket<W> {
    inner: W,
    permit: ConnectionPermit,
    phase: Phase,
    /// A ping or close has still to be flushed.
    needs_flush: bool,
    /// A frame has been received since the clock was last read.
    received: bool,
    monitor: Option<PeerMonitor>,
    /// When to check the peer; after the close, when to stop waiting for the reply. Polled by the reading task only,
    /// since a timer wakes the task that polled it last.
    timer: Option<Pin<Box<Sleep>>>,
    /// Limits how long a write may be blocked.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// The waker of the writing task. The library stores one waker for writing, and when the reader writes a ping or
    /// close it stores the reader's.
    writer: Option<Waker>,
}

/// ```text
///  Open ◀──▶ SendPing
///    │  a drain asks for the close, in either of both
///    └──▶ SendClose ──▶ AwaitClose ──▶ Ended, as after every other end of the stream
/// ```
#[derive(Clone, Copy, Debug)]
enum Phase {
    Open,
    /// Sends a ping as soon as there is room.
    SendPing,
    /// Sends a close.
    SendClose(CloseRequest),
    /// Waits for the client's close.
    AwaitClose,
    Ended,
}

/// The timeout that ended a connection.
enum Timeout {
    Keepalive,
    Close,
}

impl ConnectionPermit {
    /// Wraps a WebSocket. The upgrade is complete when this is called.
    pub fn wrap<W>(self, socket: W) -> Socket<W> {
        self.upgraded();
        Socket::new(socket, self)
    }
}

impl<W> Socket<W> {
    pub(super) fn new(inner: W, permit: ConnectionPermit) -> Self {
        let now = Instant::now();
        let settings = &permit.shared().settings;
        let monitor = settings.keepalive.map(|keepalive| PeerMonitor::new(keepalive, permit.random_bits(), now));
        Self {
            inner,
            permit,
            phase: Phase::Open,
            needs_flush: false,
            received: true,
            monitor,
            timer: None,
            write_timer: None,
            writer: None,
        }
    }

    /// Returns the wrapped WebSocket.
    pub const fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Returns the wrapped WebSocket. Messages read from it directly do not count as signs of life.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::SendPing)
    }

    fn begin_close(&mut self, request: CloseRequest) {
        self.phase = Phase::SendClose(request);
        // The reader sets it again, for the close timeout.
        self.timer = None;
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        // The timer is kept: if the writer found the peer dead, it wakes the reader.
        self.write_timer = None;
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Returns how long a write may be blocked.
    fn write_timeout(&self) -> Option<Duration> {
        let settings = &self.permit.shared().settings;
        if self.is_open() {
            settings.keepalive.map(|keepalive| keepalive.max_silence())
        } else {
            Some(settings.close_timeout)
        }
    }

    fn set_timer(&mut self, at: Instant) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(at),
            None => self.timer = Some(Box::pin(sleep_until(at))),
        }
    }

    /// Handles an elapsed timer. Returns `None` if it was set again.
    fn on_timer(&mut self) -> Option<Timeout> {
        if !self.is_open() {
            return Some(Timeout::Close);
        }
        let (phase, next_check) = match self.monitor?.status(Instant::now()) {
            PeerStatus::Dead => return Some(Timeout::Keepalive),
            PeerStatus::NeedsPing { next_check } => (Phase::SendPing, next_check),
            PeerStatus::Alive { next_check } => (Phase::Open, next_check),
        };
        self.phase = phase;
        self.set_timer(next_check);
        None
    }

    /// Checks the timers and the drain. Must be called by the reading task only.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> Poll<Timeout> {
        if core::mem::take(&mut self.received) {
            if let Some(monitor) = &mut self.monitor {
                monitor.frame_received(Instant::now());
            }
        }
        if self.is_open() {
            if let Poll::Ready(request) = self.permit.poll_close_requested(cx) {
                self.begin_close(request);
            }
        }
        if self.timer.is_none() {
            if !self.is_open() {
                self.set_timer(saturating_add(Instant::now(), self.permit.shared().settings.close_timeout));
            } else if let Some(PeerStatus::Alive { next_check }) =
                self.monitor.map(|monitor| monitor.status(Instant::now()))
            {
                self.set_timer(next_check);
            }
        }
        while let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
            if let Some(timeout) = self.on_timer() {
                return Poll::Ready(timeout);
            }
        }
        Poll::Pending
    }
}

impl<W> Socket<W> {
    /// Sends a pending ping or close. Does not report errors; the reader gets them with more detail.
    fn poll_control_frame<M>(&mut self, cx: &mut Context<'_>) -> Poll<()>
    where
        M: SocketMessage,
        W: Sink<M, Error = M::Error> + Unpin,
    {
        let mut inner = Pin::new(&mut self.inner);
        let control: Option<(M, Phase)> = match self.phase {
            Phase::SendPing => Some((M::ping(), Phase::Open)),
            Phase::SendClose(request) => Some((request.to_message(), Phase::AwaitClose)),
            Phase::Open | Phase::AwaitClose | Phase::Ended => None,
        };
        if let Some((message, then)) = control {
            let is_ready = ready!(inner.as_mut().poll_ready(cx)).is_ok();
            // This fails if the peer has already sent a close.
            self.needs_flush = is_ready && inner.as_mut().start_send(message).is_ok();
            if let (Phase::SendClose(request), true) = (self.phase, self.needs_flush) {
                self.permit.record_close_code(request.code);
            }
            self.phase = then;
        }
        if self.needs_flush {
            // An error counts as flushed: the reader will get it.
            let _ = ready!(inner.poll_flush(cx));
            self.needs_flush = false;
        }
        Poll::Ready(())
    }

    /// Runs a write operation of the application, bounded by the write timeout.
    fn poll_write<M>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Self, &mut Context<'_>) -> Poll<Result<(), M::Error>>,
    ) -> Poll<Result<(), M::Error>>
    where
        M: SocketMessage,
    {
        if matches!(self.phase, Phase::Ended) {
            return Poll::Ready(Err(M::io_error(io::ErrorKind::ConnectionAborted.into())));
        }
        if let Poll::Ready(written) = write(self, cx) {
            self.write_timer = None;
            return Poll::Ready(written);
        }
        self.writer = Some(cx.waker().clone());
        let Some(write_timeout) = self.write_timeout() else { return Poll::Pending };
        ready!(self.write_timer.get_or_insert_with(|| Box::pin(sleep(write_timeout))).as_mut().poll(cx));
        let timeout = if self.is_open() { Timeout::Keepalive } else { Timeout::Close };
        self.timed_out(&timeout);
        Poll::Ready(Err(M::io_error(io::ErrorKind::TimedOut.into())))
    }

    fn timed_out(&mut self, timeout: &Timeout) {
        match timeout {
            Timeout::Keepalive => self.permit.reaped(),
            Timeout::Close => self.permit.close_timed_out(),
        }
        self.end();
    }
}

impl<W, M> Stream for Socket<W>
where
    W: Stream<Item = Result<M, M::Error>> + Sink<M, Error = M::Error> + Unpin,
    M: SocketMessage,
{
    type Item = Result<M, M::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if matches!(this.phase, Phase::Ended) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(item) = Pin::new(&mut this.inner).poll_next(cx) {
            match &item {
                Some(Ok(message)) => {
                    this.received = true;
                    message.close_code().into_iter().for_each(|code| this.permit.record_close_code(code));
                }
                Some(Err(_)) => {}
                None => this.end(),
            }
            return Poll::Ready(item);
        }
        // Received messages come first, also before the timeouts. Timers and control frames are handled only when there
        // is nothing to read.
        if let Poll::Ready(timeout) = this.poll_timers(cx) {
            this.timed_out(&timeout);
            return Poll::Ready(match timeout {
                Timeout::Keepalive => Some(Err(M::io_error(io::ErrorKind::TimedOut.into()))),
                Timeout::Close => None,
            });
        }
        if this.poll_control_frame(cx).is_ready() {
            this.writer.take().into_iter().for_each(Waker::wake);
        }
        Poll::Pending
    }
}

impl<W, M> FusedStream for Socket<W>
where
    W: Stream<Item = Result<M, M::Error>> + Sink<M, Error = M::Error> + Unpin,
    M: SocketMessage,
{
    fn is_terminated(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }
}

impl<W, M> Sink<M> for Socket<W>
where
    W: Sink<M, Error = M::Error> + Unpin,
    M: SocketMessage,
{
    type Error = M::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        let this = self.get_mut();
        if this.is_open() {
            if let Some(request) = this.permit.try_close_requested() {
                this.begin_close(request);
            }
        }
        this.poll_write::<M>(cx, |this, cx| {
            // Write the close before returning the error that makes the application stop.
            if !this.is_open() {
                ready!(this.poll_control_frame::<M>(cx));
            }
            Pin::new(&mut this.inner).poll_ready(cx)
        })
    }

    fn start_send(self: Pin<&mut Self>, message: M) -> Result<(), M::Error> {
        let this = self.get_mut();
        message.close_code().into_iter().for_each(|code| this.permit.record_close_code(code));
        Pin::new(&mut this.inner).start_send(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.get_mut().poll_write::<M>(cx, |this, cx| Pin::new(&mut this.inner).poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        let this = self.get_mut();
        if matches!(this.phase, Phase::Ended) {
            return Poll::Ready(Ok(()));
        }
        this.poll_write::<M>(cx, |this, cx| Pin::new(&mut this.inner).poll_close(cx))
    }
}

impl<W: fmt::Debug> fmt::Debug for Socket<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("inner", &self.inner).field("phase", &self.phase).finish_non_exhaustive()
    }
}

/// A message type of a WebSocket library, as far as [`Socket`](super::Socket) needs it.
///
/// Implemented for tungstenite's and, with the feature `axum`, for axum's messages.
pub trait SocketMessage: Sized {
    /// The library's error type.
    type Error;

    /// Creates a ping without a payload.
    fn ping() -> Self;

    /// Creates a close frame. The reason has at most 123 bytes.
    fn close(code: u16, reason: String) -> Self;

    /// Returns the close code if this is a close frame; 1005 if the frame has none.
    fn close_code(&self) -> Option<u16>;

    /// Converts an I/O error into the library's error type.
    fn io_error(error: io::Error) -> Self::Error;
}

/// The code that stands for a close frame without one: RFC 6455, section 7.1.5.
pub(super) const NO_CODE: u16 = 1005;

impl SocketMessage for Message {
    type Error = tungstenite::Error;

    fn ping() -> Self {
        Self::Ping(tungstenite::Bytes::new())
    }

    fn close(code: u16, reason: String) -> Self {
        Self::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))
    }

    fn close_code(&self) -> Option<u16> {
        match self {
            Self::Close(frame) => Some(frame.as_ref().map_or(NO_CODE, |frame| frame.code.into())),
            _ => None,
        }
    }

    fn io_error(error: io::Error) -> tungstenite::Error {
        error.into()
    }
}
