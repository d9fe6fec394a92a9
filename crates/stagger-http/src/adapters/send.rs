use core::future::Future;
use core::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use stagger::observe::EventError;
use stagger::time::Sleep;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::tower::{Error, ReplayBody, RetryLayer};

/// The body of the requests that the layer sees: none, in the smallest type that is a body. The real one is in memory and cheap
/// to clone, so that it needs neither a buffer nor a limit.
type NoBody = String;

/// Sends a request through the layer. `transport` sends an attempt of it.
pub(crate) async fn send<B, R, E, T, F, Fut>(
    layer: &RetryLayer<T>,
    request: Request<B>,
    transport: F,
) -> Result<Response<R>, Error<E>>
where
    B: Clone,
    R: Body + Unpin,
    E: EventError + Unpin,
    T: Sleep + Clone,
    F: Fn(Request<B>) -> Fut + Clone,
    Fut: Future<Output = Result<Response<R>, E>>,
{
    let (head, body) = request.into_parts();
    // An attempt is ready at any time.
    layer.layer(Attempts { body, transport }).call(Request::from_parts(head, NoBody::new())).await
}

/// The attempts of one request.
#[derive(Clone)]
struct Attempts<B, F> {
    body: B,
    transport: F,
}

impl<B, R, E, F, Fut> Service<Request<ReplayBody<NoBody>>> for Attempts<B, F>
where
    B: Clone,
    F: Fn(Request<B>) -> Fut,
    Fut: Future<Output = Result<Response<R>, E>>,
{
    type Response = Response<R>;
    type Error = E;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<NoBody>>) -> Fut {
        (self.transport)(request.map(|_| self.body.clone()))
    }
}
