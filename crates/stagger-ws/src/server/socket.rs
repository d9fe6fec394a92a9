use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;
use std::io;

use futures_util::stream::FusedStream;
use futures_util::{Sink, Stream};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::keepalive::{Pulse, Watch};
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
    conn: ConnectionPermit,
    phase: Phase,
    /// Something of ours has still to be flushed.
    is_written: bool,
    /// There was a frame since the clock was read.
    is_heard: bool,
    watch: Option<Watch>,
    /// When to look after the peer, or, from the close on, to wait no longer. It belongs to the reading task alone: a timer
    /// wakes the one that polled it last.
    timer: Option<Pin<Box<Sleep>>>,
    /// Since when a writer has not got on.
    stall: Option<Pin<Box<Sleep>>>,
    /// The task that writes. The library remembers one waker for writing, and when we write ourselves that is the reader's.
    writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Open,
    /// A ping is to be sent as soon as there is room.
    Ping,
    /// A close is to be sent.
    Leave(CloseRequest),
    /// The client's close is awaited.
    Left,
    Over,
}

/// Why a socket has come to its end without its peer's doing.
enum Cut {
    Dead,
    Unanswered,
}

impl<W> Socket<W> {
    pub(super) fn new(inner: W, conn: ConnectionPermit) -> Self {
        let now = Instant::now();
        let settings = &conn.shared().settings;
        let watch = settings.keepalive.map(|keepalive| Watch::new(keepalive, conn.bits(), now));
        Self {
            inner,
            conn,
            phase: Phase::Open,
            is_written: false,
            is_heard: true,
            watch,
            timer: None,
            stall: None,
            writer: None,
        }
    }

    /// What it was made of.
    pub const fn get_ref(&self) -> &W {
        &self.inner
    }

    /// What it was made of. What is read from it directly counts for nothing.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Ping)
    }

    fn leave(&mut self, closing: CloseRequest) {
        self.phase = Phase::Leave(closing);
        // The reader sets it anew, for the time that a close may take.
        self.timer = None;
    }

    fn end(&mut self) {
        self.phase = Phase::Over;
        // The timer stays: if it was the writer who found out, it wakes the reader.
        self.stall = None;
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// For how long nothing may get through.
    fn patience(&self) -> Option<Duration> {
        let settings = &self.conn.shared().settings;
        if self.is_open() {
            settings.keepalive.map(|keepalive| keepalive.silence())
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
    fn timer_has_gone_off(&mut self) -> Option<Cut> {
        if !self.is_open() {
            return Some(Cut::Unanswered);
        }
        match self.watch?.look(Instant::now()) {
            Pulse::Dead => return Some(Cut::Dead),
            Pulse::Ping { look } => {
                self.phase = Phase::Ping;
                self.set_timer(look);
            }
            Pulse::Alive { look } => {
                self.phase = Phase::Open;
                self.set_timer(look);
            }
        }
        None
    }

    /// Looks at the clock and at what we were told; to be called by the reader only.
    fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<Cut> {
        if core::mem::take(&mut self.is_heard) {
            if let Some(watch) = &mut self.watch {
                watch.heard(Instant::now());
            }
        }
        if self.is_open() {
            if let Poll::Ready(closing) = self.conn.poll_closing(cx) {
                self.leave(closing);
            }
        }
        if self.timer.is_none() {
            if !self.is_open() {
                self.set_timer(Instant::now() + self.conn.shared().settings.close_timeout);
            } else if let Some(Pulse::Alive { look }) = self.watch.map(|watch| watch.look(Instant::now())) {
                self.set_timer(look);
            }
        }
        while let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
            if let Some(cut) = self.timer_has_gone_off() {
                return Poll::Ready(cut);
            }
        }
        Poll::Pending
    }
}

impl<W> Socket<W> {
    /// Sends what we have to say ourselves. Whether it fails is not told: who reads will hear of it, and better.
    fn poll_say<M>(&mut self, cx: &mut Context<'_>) -> Poll<()>
    where
        M: SocketMessage,
        W: Sink<M, Error = M::Error> + Unpin,
    {
        let mut inner = Pin::new(&mut self.inner);
        let said: Option<(M, Phase)> = match self.phase {
            Phase::Ping => Some((M::ping(), Phase::Open)),
            Phase::Leave(closing) => Some((closing.to_message(), Phase::Left)),
            Phase::Open | Phase::Left | Phase::Over => None,
        };
        if let Some((message, then)) = said {
            let is_ready = ready!(inner.as_mut().poll_ready(cx)).is_ok();
            // The peer may have sent a close of its own before.
            self.is_written = is_ready && inner.as_mut().start_send(message).is_ok();
            if let (Phase::Leave(closing), true) = (self.phase, self.is_written) {
                self.conn.closes_with(closing.code);
            }
            self.phase = then;
        }
        if self.is_written {
            // An error is the end of it, too.
            let _ = ready!(inner.poll_flush(cx));
            self.is_written = false;
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
        if matches!(self.phase, Phase::Over) {
            return Poll::Ready(Err(M::io_error(io::ErrorKind::ConnectionAborted.into())));
        }
        if let Poll::Ready(written) = write(self, cx) {
            self.stall = None;
            return Poll::Ready(written);
        }
        self.writer = Some(cx.waker().clone());
        let Some(patience) = self.patience() else { return Poll::Pending };
        ready!(self.stall.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(cx));
        let cut = if self.is_open() { Cut::Dead } else { Cut::Unanswered };
        self.cut(&cut);
        Poll::Ready(Err(M::io_error(io::ErrorKind::TimedOut.into())))
    }

    fn cut(&mut self, cut: &Cut) {
        match cut {
            Cut::Dead => self.conn.reaped(),
            Cut::Unanswered => self.conn.unanswered(),
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
        if matches!(this.phase, Phase::Over) {
            return Poll::Ready(None);
        }
        if let Poll::Ready(item) = Pin::new(&mut this.inner).poll_next(cx) {
            match &item {
                Some(Ok(message)) => {
                    this.is_heard = true;
                    message.close_code().into_iter().for_each(|code| this.conn.closes_with(code));
                }
                Some(Err(_)) => {}
                None => this.end(),
            }
            return Poll::Ready(item);
        }
        // Nothing has come, so there is time for our own affairs: what is at hand goes first, also before the reaper.
        if let Poll::Ready(cut) = this.poll_cut(cx) {
            this.cut(&cut);
            return Poll::Ready(match cut {
                Cut::Dead => Some(Err(M::io_error(io::ErrorKind::TimedOut.into()))),
                Cut::Unanswered => None,
            });
        }
        if this.poll_say(cx).is_ready() {
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
        matches!(self.phase, Phase::Over)
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
            if let Some(closing) = this.conn.try_closing() {
                this.leave(closing);
            }
        }
        this.poll_write::<M>(cx, |this, cx| {
            // On the wire before the error that follows makes the application go.
            if !this.is_open() {
                ready!(this.poll_say::<M>(cx));
            }
            Pin::new(&mut this.inner).poll_ready(cx)
        })
    }

    fn start_send(self: Pin<&mut Self>, message: M) -> Result<(), M::Error> {
        let this = self.get_mut();
        message.close_code().into_iter().for_each(|code| this.conn.closes_with(code));
        Pin::new(&mut this.inner).start_send(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.get_mut().poll_write::<M>(cx, |this, cx| Pin::new(&mut this.inner).poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        let this = self.get_mut();
        if matches!(this.phase, Phase::Over) {
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
