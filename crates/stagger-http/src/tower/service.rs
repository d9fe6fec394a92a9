use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use stagger::{observe::EventError, time::Sleep};
use tower_service::Service;

use super::error::Error;
use super::future::ResponseFuture;
use super::replay::ReplayBody;
use super::settings::Settings;

/// A service whose requests are retried: what [`RetryLayer`](super::RetryLayer) makes.
#[derive(Clone)]
pub struct Retry<S, T> {
    pub(super) inner: S,
    pub(super) settings: Arc<Settings>,
    pub(super) timer: T,
}

impl<S, T, B, R> Service<Request<B>> for Retry<S, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: EventError,
    T: Sleep + Clone,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    type Response = Response<R>;
    type Error = Error<S::Error>;
    type Future = ResponseFuture<S, T, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Error::Service)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that has said that it is ready is used; its clone has yet to be asked.
        let clone = self.inner.clone();
        let ready = core::mem::replace(&mut self.inner, clone);
        ResponseFuture::new(ready, request, &self.settings, self.timer.clone())
    }
}

impl<S: fmt::Debug, T> fmt::Debug for Retry<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("inner", &self.inner).field("settings", &self.settings).finish_non_exhaustive()
    }
}
