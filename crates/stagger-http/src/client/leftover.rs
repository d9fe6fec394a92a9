use core::borrow::Borrow;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::Buf;
use http_body::Body;
use stagger::{Attempt, BreakerOpen, PollRetry, Retrier, time::Sleep};

/// How much of the body of a failed answer is read, so that its connection can be used again.
const MOST: usize = 16 * 1024;
/// How long the server has to end it. A connection that is held through a backoff is one that nobody else has.
const GRACE: Duration = Duration::from_millis(50);

/// The body of an answer that is not the caller's: read to its end if that is near, else dropped.
pub(crate) struct Leftover<R, Z> {
    body: R,
    room: usize,
    grace: Z,
}

impl<R: Body + Unpin, Z: Future<Output = ()> + Unpin> Leftover<R, Z> {
    /// Nothing is left over of a body that has ended, or that is too long.
    pub(crate) fn of<T: Sleep<Sleeping = Z>>(body: R, timer: &T) -> Option<Self> {
        let is_near = !body.is_end_stream() && body.size_hint().lower() <= MOST as u64;
        is_near.then(|| Self { body, room: MOST, grace: timer.sleep(GRACE) })
    }

    /// Ready when it can be dropped.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let Some(Ok(frame)) = frame else { return Poll::Ready(()) };
            let read = frame.data_ref().map_or(0, Buf::remaining);
            match self.room.checked_sub(read) {
                Some(room) => self.room = room,
                None => return Poll::Ready(()),
            }
        }
        Pin::new(&mut self.grace).poll(cx)
    }
}

/// Waits until the next attempt is due, and lets go of what is left over as soon as it has ended, at the latest then.
pub(crate) fn poll_begin<T: Sleep + Clone, H: Borrow<Retrier> + Clone, R: Body + Unpin>(
    call: &mut PollRetry<T, H>,
    leftover: &mut Option<Leftover<R, T::Sleeping>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Attempt, BreakerOpen>> {
    let is_drained = leftover.as_mut().is_none_or(|leftover| leftover.poll_end(cx).is_ready());
    let begun = call.poll_begin(cx);
    if is_drained || begun.is_ready() {
        *leftover = None;
    }
    begun
}
