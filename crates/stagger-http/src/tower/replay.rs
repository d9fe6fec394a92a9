use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::client::BodyReplay;

/// The body of a request that may be sent again. The chunks that an attempt reads are buffered, up to a limit, and
/// replayed to the next attempt.
///
/// Chunks of [`Bytes`] are shared and not copied. A body that exceeds the limit is sent in full, but only once. A body
/// whose length is known and within the limit is polled for its first frame before it is sent; if that frame is the
/// whole body, or the body is empty, no buffer is allocated.
pub struct ReplayBody<B: Body> {
    source: Source<B>,
    /// The index of the next buffered chunk to return.
    at: usize,
    /// The attempt that this body belongs to, from 0. Once a later attempt has begun, that one owns the rest of the
    /// stream. In the original, which the others are created from, the number of attempts so far.
    attempt: u32,
    /// The body has ended. Saves locking the shared state.
    is_ended: bool,
}

/// Whatever the body can do without is not allocated: most are empty, or one chunk.
///
/// ```text
///  Empty ◀─────────────────────┐
///                              │ nothing
///  Unpolled ── first poll ─────┼──▶ Chunk     one chunk, and the end
///                              └──▶ Shared    more, or not ready
/// ```
enum Source<B: Body> {
    Empty,
    /// The whole body, in one chunk.
    Chunk(Bytes),
    /// Not yet polled; the replay limit in bytes.
    Unpolled(B, usize),
    /// The buffer that the bodies of all attempts read from.
    Shared(Arc<Mutex<Shared<B>>>),
}

struct Shared<B: Body> {
    /// The unread rest of the stream; `None` once it has ended.
    rest: Option<B>,
    /// The result of polling the stream before the first attempt, until an attempt has read it.
    first: Option<Result<Frame<Bytes>, B::Error>>,
    chunks: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    /// Bytes left in the buffer.
    room: usize,
    replay: BodyReplay,
    /// The attempt that may read from the stream.
    attempt: u32,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// Creates a body of which up to `limit` bytes are buffered.
    pub(super) fn new(body: B, limit: usize) -> Self {
        let source = if body.is_end_stream() { Source::Empty } else { Source::Unpolled(body, limit) };
        Self { source, at: 0, attempt: 0, is_ended: false }
    }

    /// Returns the body for the next attempt, from its beginning. The body of the previous attempt ends here.
    pub(super) fn next_attempt(&mut self, cx: &mut Context<'_>) -> Self {
        let source = match mem::replace(&mut self.source, Source::Empty) {
            Source::Unpolled(body, limit) => Source::poll_first(body, limit, cx),
            source => source,
        };
        let attempt = self.attempt;
        self.attempt += 1;
        let copy = match &source {
            Source::Empty | Source::Unpolled(..) => Source::Empty,
            Source::Chunk(chunk) => Source::Chunk(chunk.clone()),
            Source::Shared(shared) => {
                // The first attempt already owns the stream.
                if attempt > 0 {
                    lock(shared).attempt = attempt;
                }
                Source::Shared(Arc::clone(shared))
            }
        };
        self.source = source;
        let is_ended = matches!(copy, Source::Empty);
        Self { source: copy, at: 0, attempt, is_ended }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Source<B> {
    fn poll_first(mut body: B, limit: usize, cx: &mut Context<'_>) -> Self {
        let first = match body.size_hint().upper() {
            Some(length) if length <= limit as u64 => Pin::new(&mut body).poll_frame(cx),
            _ => Poll::Pending,
        };
        let first = match first {
            Poll::Pending => None,
            Poll::Ready(None) => return Self::Empty,
            Poll::Ready(Some(Ok(frame))) if body.is_end_stream() => match frame.into_data() {
                Ok(chunk) => return Self::Chunk(chunk),
                Err(frame) => Some(Ok(frame)),
            },
            Poll::Ready(first) => first,
        };
        let (rest, chunks, replay) = (Some(body), Vec::new(), BodyReplay::Possible);
        let shared = Shared { rest, first, chunks, trailers: None, room: limit, replay, attempt: 0 };
        Self::Shared(Arc::new(Mutex::new(shared)))
    }
}

impl<B: Body> ReplayBody<B> {
    /// Returns whether the body can be sent again from its beginning.
    pub(super) fn replay(&self) -> BodyReplay {
        if let Source::Shared(shared) = &self.source { lock(shared).replay } else { BodyReplay::Possible }
    }
}

fn lock<B: Body>(shared: &Mutex<Shared<B>>) -> std::sync::MutexGuard<'_, Shared<B>> {
    // Only the caller's body can panic while the lock is held, and the state is consistent then.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body<Data = Bytes> + Unpin> Shared<B> {
    fn push(&mut self, chunk: &Bytes) {
        match self.room.checked_sub(chunk.len()) {
            Some(room) if self.replay == BodyReplay::Possible => {
                self.room = room;
                self.chunks.push(chunk.clone());
            }
            _ => self.discard(),
        }
    }

    fn discard(&mut self) {
        self.replay = BodyReplay::Impossible;
        self.chunks = Vec::new();
    }

    /// Returns whether the stream has nothing beyond the buffered chunks.
    fn is_fully_buffered(&self) -> bool {
        let has_rest = self.rest.as_ref().is_some_and(|rest| !rest.is_end_stream());
        self.trailers.is_none() && self.first.is_none() && !has_rest
    }

    /// Returns the number of buffered bytes from chunk `at` on.
    fn remaining(&self, at: usize) -> u64 {
        let first = match &self.first {
            Some(Ok(frame)) => frame.data_ref(),
            _ => None,
        };
        self.chunks.iter().skip(at).chain(first).map(|chunk| chunk.len() as u64).sum()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let shared = match &mut this.source {
            Source::Shared(shared) if !this.is_ended => shared,
            Source::Chunk(chunk) if !this.is_ended => {
                this.is_ended = true;
                return Poll::Ready(Some(Ok(Frame::data(mem::take(chunk)))));
            }
            _ => return Poll::Ready(None),
        };
        let mut shared = lock(shared);
        if shared.attempt != this.attempt {
            return Poll::Ready(None);
        }
        if let Some(chunk) = shared.chunks.get(this.at) {
            this.at += 1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        let frame = match (shared.first.take(), &mut shared.rest) {
            (Some(first), _) => Some(first),
            (None, Some(rest)) => ready!(Pin::new(rest).poll_frame(cx)),
            (None, None) => {
                this.is_ended = true;
                return Poll::Ready(shared.trailers.clone().map(|trailers| Ok(Frame::trailers(trailers))));
            }
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(chunk) = frame.data_ref() {
                    shared.push(chunk);
                    this.at = shared.chunks.len();
                    this.is_ended = shared.is_fully_buffered();
                } else if let Some(trailers) = frame.trailers_ref() {
                    shared.trailers = Some(trailers.clone());
                    shared.rest = None;
                    this.is_ended = true;
                }
            }
            Some(Err(_)) => {
                shared.discard();
                shared.rest = None;
                this.is_ended = true;
            }
            None => {
                shared.rest = None;
                this.is_ended = true;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            _ if self.is_ended => true,
            Source::Shared(shared) => {
                let shared = lock(shared);
                shared.attempt != self.attempt || (self.at >= shared.chunks.len() && shared.is_fully_buffered())
            }
            Source::Chunk(_) => false,
            Source::Empty | Source::Unpolled(..) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let shared = match &self.source {
            Source::Shared(shared) if !self.is_ended => shared,
            Source::Chunk(chunk) if !self.is_ended => return SizeHint::with_exact(chunk.len() as u64),
            _ => return SizeHint::with_exact(0),
        };
        let shared = lock(shared);
        let replayed = shared.remaining(self.at);
        let rest = shared.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(replayed));
        if let Some(upper) = rest.upper() {
            if let Some(upper) = upper.checked_add(replayed) {
                hint.set_upper(upper);
            }
        }
        hint
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").field("is_ended", &self.is_ended).finish_non_exhaustive()
    }
}
