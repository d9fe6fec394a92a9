use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use smallvec::SmallVec;

use crate::client::Kept;

/// The body of a request that may be sent again: what has been read of it is kept, up to a limit, and the next attempt
/// begins with that.
///
/// Chunks of [`Bytes`] are shared and not copied. What is longer than the limit is sent all the same, once. A body that is
/// empty costs nothing.
pub struct ReplayBody<B> {
    kept: Option<Arc<Mutex<Shared<B>>>>,
    /// Of the chunks that are kept, the next to be read.
    at: usize,
    /// Which of the bodies it is; if another is read from by now, it has taken over the rest. In the one that the others
    /// are made of, how many there have been.
    turn: u32,
    /// Nothing follows, and nobody has to be asked.
    is_over: bool,
}

struct Shared<B> {
    /// What has not been read yet; `None` when it has come to its end.
    rest: Option<B>,
    /// Most bodies are of one piece.
    chunks: SmallVec<[Bytes; 1]>,
    trailers: Option<HeaderMap>,
    room: usize,
    state: Kept,
    /// Which of the bodies may read on.
    turn: u32,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// A body of which at most so many bytes are kept.
    pub(super) fn new(body: B, limit: usize) -> Self {
        let kept = (!body.is_end_stream()).then(|| {
            let (chunks, state) = (SmallVec::new(), Kept::Whole);
            Arc::new(Mutex::new(Shared { rest: Some(body), chunks, trailers: None, room: limit, state, turn: 0 }))
        });
        Self { is_over: kept.is_none(), kept, at: 0, turn: 0 }
    }

    /// The same body from its beginning, or what is left of it, for another attempt; the one before it ends here.
    pub(super) fn again(&mut self) -> Self {
        let turn = self.turn;
        self.turn += 1;
        // The first has nothing to take over.
        if let (Some(shared), 1..) = (&self.kept, turn) {
            lock(shared).turn = turn;
        }
        Self { kept: self.kept.clone(), at: 0, turn, is_over: self.kept.is_none() }
    }
}

impl<B> ReplayBody<B> {
    /// Whether its beginning is still there.
    pub(super) fn kept(&self) -> Kept {
        self.kept.as_ref().map_or(Kept::Whole, |shared| lock(shared).state)
    }
}

fn lock<B>(shared: &Mutex<Shared<B>>) -> std::sync::MutexGuard<'_, Shared<B>> {
    // Only the caller's own body can panic in there, and then nothing of ours is half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body<Data = Bytes> + Unpin> Shared<B> {
    fn keep(&mut self, chunk: &Bytes) {
        match self.room.checked_sub(chunk.len()) {
            Some(room) if self.state == Kept::Whole => {
                self.room = room;
                self.chunks.push(chunk.clone());
            }
            _ => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.state = Kept::Lost;
        self.chunks = SmallVec::new();
    }

    /// Whether nothing follows what is kept.
    fn has_been_read(&self) -> bool {
        self.trailers.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn remaining(&self, at: usize) -> u64 {
        self.chunks.iter().skip(at).map(|chunk| chunk.len() as u64).sum()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let (Some(shared), false) = (&this.kept, this.is_over) else { return Poll::Ready(None) };
        let mut kept = lock(shared);
        if kept.turn != this.turn {
            return Poll::Ready(None);
        }
        if let Some(chunk) = kept.chunks.get(this.at) {
            this.at += 1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        let Some(rest) = &mut kept.rest else {
            this.is_over = true;
            return Poll::Ready(kept.trailers.clone().map(|trailers| Ok(Frame::trailers(trailers))));
        };
        let frame = ready!(Pin::new(rest).poll_frame(cx));
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
        let (Some(shared), false) = (&self.kept, self.is_over) else { return true };
        let kept = lock(shared);
        kept.turn != self.turn || (self.at >= kept.chunks.len() && kept.has_been_read())
    }

    fn size_hint(&self) -> SizeHint {
        let (Some(shared), false) = (&self.kept, self.is_over) else { return SizeHint::with_exact(0) };
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

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").field("is_empty", &self.kept.is_none()).finish_non_exhaustive()
    }
}
