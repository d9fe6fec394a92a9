use core::task::{Context, Poll};

use http::{Request, Response};
use stagger::{Policy, Retrier};
use stagger_http::tower::RetryLayer;
use tower::util::BoxCloneService;
use tower::{Layer as _, Service};

type Body = http_body_util::Full<bytes::Bytes>;

#[derive(Clone)]
struct Client;

impl Service<Request<Body>> for Client {
    type Response = Response<Body>;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Response<Body>, std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        std::future::ready(Ok(Response::default()))
    }
}

fn main() {
    let client = RetryLayer::new(Retrier::new(Policy::DEFAULT)).layer(Client);
    let _ = BoxCloneService::<Request<Body>, _, _>::new(client);
}
