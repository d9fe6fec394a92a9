use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use std::io;

use futures_util::stream::FusedStream;
use futures_util::{Sink, Stream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::keepalive::{PeerMonitor, PeerStatus};
use super::{CloseRequest, ConnectionPermit, SocketMessage};

/// A WebSocket that is taken care of: it pings, finds out if its peer is dead, and leaves when a drain says so. Otherwise it
/// is the stream and the sink that it was made of, with the same messages and errors.
///
/// - When a drain comes to it, the client is sent a close frame with 1012 and an [`ReconnectAdvice`](crate::ReconnectAdvice). What the client
///   still sends is read; after its answer, or without one after [`close_timeout`](super::SocketsBuilder::close_timeout),
///   the stream ends. Sending fails from the close on.
/// - A dead peer is an error, once, of the kind [`TimedOut`](io::ErrorKind::TimedOut), while reading or while sending; then
///   the stream ends.
/// - It can be split, as any stream and sink. What it does by itself it does while it is read from; who only sends is told to
///   leave at the next message, and finds a dead peer when nothing more gets through to it.
///
/// Reading is cancel-safe, as that of what it was made of.
pub struct Socket<W> {
    inner: W,
    permit: ConnectionPermit,
    phase: Phase,
    /// Something of ours has still to be flushed.
    needs_flush: bool,
    /// There was a frame since the clock was read.
    received: bool,
    monitor: Option<PeerMonitor>,
    /// When to next_check after the peer, or, from the close on, to wait no longer. It belongs to the reading task alone: a timer
    /// wakes the one that polled it last.
    timer: Option<Pin<Box<Sleep>>>,
    /// Since when a writer has not got on.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// The task that writes. The library remembers one waker for writing, and when we write ourselves that is the reader's.
    writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Open,
    /// A ping is to be sent as soon as there is room.
    SendPing,
    /// A close is to be sent.
    SendClose(CloseRequest),
    /// The client's close is awaited.
    AwaitClose,
    Ended,
}

/// Why a socket has come to its end without its peer's doing.
enum Timeout {
    Keepalive,
    Close,
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

    /// What it was made of.
    pub const fn get_ref(&self) -> &W {
        &self.inner
    }

    /// What it was made of. What is read from it directly counters for nothing.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::SendPing)
    }

    fn begin_close(&mut self, request: CloseRequest) {
        self.phase = Phase::SendClose(request);
        // The reader sets it anew, for the time that a close may take.
        self.timer = None;
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        // The timer stays: if it was the writer who found out, it wakes the reader.
        self.write_timer = None;
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// For how long nothing may get through.
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

    /// What a timer that has gone off means; `None` if it was set again.
    fn on_timer(&mut self) -> Option<Timeout> {
        if !self.is_open() {
            return Some(Timeout::Close);
        }
        match self.monitor?.status(Instant::now()) {
            PeerStatus::Dead => return Some(Timeout::Keepalive),
            PeerStatus::NeedsPing { next_check } => {
                self.phase = Phase::SendPing;
                self.set_timer(next_check);
            }
            PeerStatus::Alive { next_check } => {
                self.phase = Phase::Open;
                self.set_timer(next_check);
            }
        }
        None
    }

    /// Looks at the clock and at what we were told; to be called by the reader only.
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
                self.set_timer(Instant::now() + self.permit.shared().settings.close_timeout);
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
    /// Sends what we have to say ourselves. Whether it fails is not told: who reads will hear of it, and better.
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
            // The peer may have sent a close of its own before.
            self.needs_flush = is_ready && inner.as_mut().start_send(message).is_ok();
            if let (Phase::SendClose(request), true) = (self.phase, self.needs_flush) {
                self.permit.record_close_code(request.code);
            }
            self.phase = then;
        }
        if self.needs_flush {
            // An error is the end of it, too.
            let _ = ready!(inner.poll_flush(cx));
            self.needs_flush = false;
        }
        Poll::Ready(())
    }

    /// Lets the application write, but not for ever.
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
        // Nothing has come, so there is time for our own affairs: what is at hand goes first, also before the reaper.
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
            // On the wire before the error that follows makes the application go.
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
