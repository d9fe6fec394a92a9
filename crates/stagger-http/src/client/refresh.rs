use core::borrow::Borrow;
use core::task::{Context, Poll};

use http::HeaderMap;
use stagger::{PolledCall, Retrier, Sleep};

use super::settings::CredentialFuture;

/// Waits for fresh credentials, which is a part of the attempt and has what is left of its time: `None` when that is over.
pub(crate) fn poll_refresh<T: Sleep + Clone, R: Borrow<Retrier> + Clone>(
    call: &mut PolledCall<T, R>,
    credentials: &mut CredentialFuture,
    cx: &mut Context<'_>,
) -> Poll<Option<HeaderMap>> {
    match credentials.as_mut().poll(cx) {
        Poll::Pending => call.poll_limit(cx).map(|()| None),
        fresh => fresh,
    }
}
