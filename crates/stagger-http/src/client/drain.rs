use core::borrow::Borrow;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::Buf;
use http_body::Body;
use stagger::time::Sleep;
use stagger::{Attempt, PollRetry, Rejected, Retrier};

/// The most bytes that are read from the body of a failed response so that its connection can be reused.
const MAX_BYTES: usize = 16 * 1024;
/// Time within which the body must end. A connection held during backoff is not available to other requests.
const GRACE: Duration = Duration::from_millis(50);

/// The body of a failed response that the caller does not receive. It is read to its end if it is short and ends soon,
/// and dropped otherwise.
pub(crate) struct BodyDrain<R, Z> {
    body: R,
    room: usize,
    grace: Z,
}

impl<R: Body + Unpin, Z: Future<Output = ()> + Unpin> BodyDrain<R, Z> {
    /// Creates a drain, or returns `None` if the body has ended already or is known to be too long.
    pub(crate) fn new<T: Sleep<Sleeping = Z>>(body: R, timer: &T) -> Option<Self> {
        if body.is_end_stream() || body.size_hint().lower() > MAX_BYTES as u64 {
            return None;
        }
        Some(Self { body, room: MAX_BYTES, grace: timer.sleep(GRACE) })
    }

    /// Reads the body. Resolves when it has ended, is too long or has exceeded the grace period, so that it can be
    /// dropped.
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

/// Waits until the next attempt is due and the guards let it start. Meanwhile drains the body of the previous response,
/// and drops it at the latest when the attempt begins.
pub(crate) fn poll_begin<T: Sleep + Clone, H: Borrow<Retrier> + Clone, R: Body + Unpin>(
    call: &mut PollRetry<T, H>,
    drain: &mut Option<BodyDrain<R, T::Sleeping>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Attempt, Rejected>> {
    let is_drained = match drain {
        Some(drain) => drain.poll_end(cx).is_ready(),
        None => true,
    };
    let begun = call.poll_begin(cx);
    if is_drained || begun.is_ready() {
        *drain = None;
    }
    begun
}
