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

/// A service that retries its requests: the service of a [`RetryLayer`](super::RetryLayer).
///
/// It is a `Service<Request<B>>` if the inner service is `Clone` and a `Service<Request<`[`ReplayBody<B>`](super::ReplayBody)`>>`.
/// Otherwise the compiler says, for example, that the method `oneshot` exists, but its trait bounds were not satisfied.
#[derive(Clone)]
pub struct RetryService<S, T> {
    pub(super) inner: S,
    pub(super) settings: Arc<Settings>,
    pub(super) timer: T,
}

impl<S, T, B, R> Service<Request<B>> for RetryService<S, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    S::Error: EventError + Unpin,
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
        // `poll_ready` was called on `self.inner`, so the call uses that one and leaves the clone.
        let clone = self.inner.clone();
        let ready = core::mem::replace(&mut self.inner, clone);
        ResponseFuture::new(ready, request, &self.settings, self.timer.clone())
    }
}

impl<S: fmt::Debug, T> fmt::Debug for RetryService<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryService")
            .field("inner", &self.inner)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
