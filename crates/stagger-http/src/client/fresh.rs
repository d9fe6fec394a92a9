use core::borrow::Borrow;
use core::task::{Context, Poll};

use http::HeaderMap;
use stagger::{PollRetry, Retrier, time::Sleep};

use super::settings::Renewing;

/// Waits for fresh credentials, which is a part of the attempt and has what is left of its time: `None` when that is over.
pub(crate) fn poll_fresh<T: Sleep + Clone, R: Borrow<Retrier> + Clone>(
    call: &mut PollRetry<T, R>,
    renewing: &mut Renewing,
    cx: &mut Context<'_>,
) -> Poll<Option<HeaderMap>> {
    match renewing.as_mut().poll(cx) {
        Poll::Pending => call.poll_limit(cx).map(|()| None),
        fresh => fresh,
    }
}
