use core::borrow::Borrow;
use core::task::{Context, Poll};

use http::HeaderMap;
use stagger::time::Sleep;
use stagger::{PollRetry, Retrier};

use super::settings::CredentialFuture;

/// Waits for fresh credentials. This is part of the attempt and limited by its remaining time; resolves to `None` when that
/// has elapsed.
pub(crate) fn poll_refresh<T: Sleep + Clone, R: Borrow<Retrier> + Clone>(
    call: &mut PollRetry<T, R>,
    credentials: &mut CredentialFuture,
    cx: &mut Context<'_>,
) -> Poll<Option<HeaderMap>> {
    match credentials.as_mut().poll(cx) {
        Poll::Pending => call.poll_limit(cx).map(|()| None),
        ready => ready,
    }
}
