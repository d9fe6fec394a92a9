use core::task::{Context, Poll};

use http::{HeaderMap, Response};

use crate::client::{Renewing, StatusFailure};

/// Fresh credentials on their way, and the answer that they are for.
pub(super) struct Renewal<R> {
    pub(super) fresh: Renewing,
    pub(super) answer: Response<R>,
    pub(super) failure: StatusFailure,
}

impl<R> Renewal<R> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<HeaderMap>> {
        self.fresh.as_mut().poll(cx)
    }
}
