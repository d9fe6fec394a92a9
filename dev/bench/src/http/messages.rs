//! The requests, the server, and the loop that sends them.

use core::convert::Infallible;
use core::future::{Ready, ready};
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::LazyLock;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower_service::Service;

use crate::future::poll_once;

pub(super) type Message = Request<Full<Bytes>>;
pub(super) type Answer = Response<Full<Bytes>>;

/// A request without a body and with typical headers of an API client.
pub(super) static GET: LazyLock<Message> = LazyLock::new(|| message("GET", Bytes::new()));

/// The same request with a body of a kibibyte.
pub(super) static PUT: LazyLock<Message> = LazyLock::new(|| message("PUT", Bytes::from(vec![b'x'; 1024])));

fn message(method: &str, body: Bytes) -> Message {
    Request::builder()
        .method(method)
        .uri("http://api.example.test/v1/orders/4711?expand=items")
        .header("accept", "application/json")
        .header("authorization", "Bearer 0123456789abcdef0123456789abcdef")
        .header("user-agent", "client/1.0")
        .header("x-request-id", "6b1f0a4e-5c1a-4b8e-9a57-0d3b5f1c2e7d")
        .body(Full::new(body))
        // All parts are valid constants.
        .expect("a valid request")
}

/// Reads the body of a request completely and answers 200.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server;

impl<B: Body<Data = Bytes, Error = Infallible>> Service<Request<B>> for Server {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        black_box(&parts);
        let mut body = pin!(body);
        while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
            black_box(&frame);
        }
        ready(Ok(Answer::default()))
    }
}

/// Sends copies of a request, one after another.
pub(super) fn send<S>(mut service: S, message: &Message, iterations: u64)
where
    S: Service<Message, Response = Answer>,
{
    for _ in 0..iterations {
        let is_ready = service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready();
        black_box(is_ready);
        let answer = poll_once(service.call(message.clone()));
        black_box(&answer.is_ok());
    }
}
