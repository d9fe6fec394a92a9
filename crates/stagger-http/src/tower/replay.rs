use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::client::BodyReplay;

/// The body of a request that may be sent again: what has been read of it is kept, up to a limit, and the next attempt
/// begins with that.
///
/// Chunks of [`Bytes`] are shared and not copied. What is longer than the limit is sent all the same, once. A body of which
/// the length is known, and is below the limit, is asked for its first frame before it is sent. If that is all of it, or if
/// there is none, the body costs nothing.
pub struct ReplayBody<B: Body> {
    source: Source<B>,
    /// Of the chunks that are kept, the next to be read.
    at: usize,
    /// Which of the bodies it is; if another is read from by now, it has taken over the rest. In the one that the others
    /// are made of, how many there have been.
    turn: u32,
    /// Nothing follows, and nobody has to be asked.
    is_over: bool,
}

enum Source<B: Body> {
    Empty,
    /// Whole, and here.
    Piece(Bytes),
    /// Not yet asked for a frame; so many bytes are to be kept.
    Fresh(B, usize),
    /// All the bodies that were made of it read from there.
    Shared(Arc<Mutex<Shared<B>>>),
}

struct Shared<B: Body> {
    /// What has not been read yet; `None` when it has come to its end.
    rest: Option<B>,
    /// What it said when it was asked before it was sent. It has yet to be told.
    first: Option<Result<Frame<Bytes>, B::Error>>,
    chunks: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    room: usize,
    state: BodyReplay,
    /// Which of the bodies may read on.
    turn: u32,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// A body of which at most so many bytes are kept.
    pub(super) fn new(body: B, limit: usize) -> Self {
        let source = if body.is_end_stream() { Source::Empty } else { Source::Fresh(body, limit) };
        Self { source, at: 0, turn: 0, is_over: false }
    }

    /// The same body from its beginning, or what is left of it, for another attempt; the one before it ends here.
    pub(super) fn again(&mut self, cx: &mut Context<'_>) -> Self {
        let source = match mem::replace(&mut self.source, Source::Empty) {
            Source::Fresh(body, limit) => Source::read(body, limit, cx),
            source => source,
        };
        let turn = self.turn;
        self.turn += 1;
        let copy = match &source {
            Source::Empty | Source::Fresh(..) => Source::Empty,
            Source::Piece(piece) => Source::Piece(piece.clone()),
            Source::Shared(shared) => {
                // The first has nothing to take over.
                if turn > 0 {
                    lock(shared).turn = turn;
                }
                Source::Shared(Arc::clone(shared))
            }
        };
        self.source = source;
        let is_over = matches!(copy, Source::Empty);
        Self { source: copy, at: 0, turn, is_over }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Source<B> {
    fn read(mut body: B, limit: usize, cx: &mut Context<'_>) -> Self {
        let is_short = body.size_hint().upper().is_some_and(|length| length <= limit as u64);
        let first = if is_short { Pin::new(&mut body).poll_frame(cx) } else { Poll::Pending };
        let first = match first {
            Poll::Pending => None,
            Poll::Ready(None) => return Self::Empty,
            Poll::Ready(Some(Ok(frame))) if body.is_end_stream() => match frame.into_data() {
                Ok(piece) => return Self::Piece(piece),
                Err(frame) => Some(Ok(frame)),
            },
            Poll::Ready(first) => first,
        };
        let (rest, chunks, state) = (Some(body), Vec::new(), BodyReplay::Possible);
        let shared = Shared { rest, first, chunks, trailers: None, room: limit, state, turn: 0 };
        Self::Shared(Arc::new(Mutex::new(shared)))
    }
}

impl<B: Body> ReplayBody<B> {
    /// Whether its beginning is still there.
    pub(super) fn replay(&self) -> BodyReplay {
        if let Source::Shared(shared) = &self.source { lock(shared).state } else { BodyReplay::Possible }
    }
}

fn lock<B: Body>(shared: &Mutex<Shared<B>>) -> std::sync::MutexGuard<'_, Shared<B>> {
    // Only the caller's own body can panic in there, and then nothing of ours is half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body<Data = Bytes> + Unpin> Shared<B> {
    fn keep(&mut self, chunk: &Bytes) {
        match self.room.checked_sub(chunk.len()) {
            Some(room) if self.state == BodyReplay::Possible => {
                self.room = room;
                self.chunks.push(chunk.clone());
            }
            _ => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.state = BodyReplay::Impossible;
        self.chunks = Vec::new();
    }

    /// Whether nothing follows what is kept.
    fn has_been_read(&self) -> bool {
        self.trailers.is_none() && self.first.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn remaining(&self, at: usize) -> u64 {
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok()?.data_ref());
        self.chunks.iter().skip(at).chain(first).map(|chunk| chunk.len() as u64).sum()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let shared = match &mut this.source {
            Source::Shared(shared) if !this.is_over => shared,
            Source::Piece(piece) if !this.is_over => {
                this.is_over = true;
                return Poll::Ready(Some(Ok(Frame::data(mem::take(piece)))));
            }
            _ => return Poll::Ready(None),
        };
        let mut kept = lock(shared);
        if kept.turn != this.turn {
            return Poll::Ready(None);
        }
        if let Some(chunk) = kept.chunks.get(this.at) {
            this.at += 1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        let frame = match (kept.first.take(), &mut kept.rest) {
            (Some(first), _) => Some(first),
            (None, Some(rest)) => ready!(Pin::new(rest).poll_frame(cx)),
            (None, None) => {
                this.is_over = true;
                return Poll::Ready(kept.trailers.clone().map(|trailers| Ok(Frame::trailers(trailers))));
            }
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(chunk) = frame.data_ref() {
                    kept.keep(chunk);
                    this.at = kept.chunks.len();
                    this.is_over = kept.has_been_read();
                } else if let Some(trailers) = frame.trailers_ref() {
                    kept.trailers = Some(trailers.clone());
                    kept.rest = None;
                    this.is_over = true;
                }
            }
            Some(Err(_)) => {
                kept.lose();
                kept.rest = None;
                this.is_over = true;
            }
            None => {
                kept.rest = None;
                this.is_over = true;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            _ if self.is_over => true,
            Source::Shared(shared) => {
                let kept = lock(shared);
                kept.turn != self.turn || (self.at >= kept.chunks.len() && kept.has_been_read())
            }
            Source::Piece(_) => false,
            Source::Empty | Source::Fresh(..) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let shared = match &self.source {
            Source::Shared(shared) if !self.is_over => shared,
            Source::Piece(piece) if !self.is_over => return SizeHint::with_exact(piece.len() as u64),
            _ => return SizeHint::with_exact(0),
        };
        let kept = lock(shared);
        let replayed = kept.remaining(self.at);
        let rest = kept.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(replayed));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(replayed)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
