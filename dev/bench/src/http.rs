//! Section H: an HTTP request that is answered immediately.

#[cfg(feature = "peers")]
mod middleware;
#[cfg(feature = "peers")]
mod peers;

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
use stagger::budget::Tokens;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryLayer;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::case::{Case, Role, Table};
use crate::future::poll_once;

const RETRIES: &str = "RetryLayer";
pub(crate) const GUARDED: &str = "RetryLayer, budget";

/// Returns the rows of the tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        layer_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
        #[cfg(feature = "peers")]
        middleware::cases(),
    ]
    .concat()
}

// The service alone, and the cost that the layer adds.

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of the service alone and of this project.
fn layer_cases() -> Vec<Case> {
    let get = |role, name, run| Case::work(Table::LayerGet, role, name, run);
    let put = |role, name, run| Case::work(Table::LayerPut, role, name, run);
    vec![
        get(Role::Bare, "service alone", |iterations| send(Server, &GET, iterations)),
        get(Role::Stagger, RETRIES, |iterations| retries(Retrier::new(POLICY), &GET, iterations)),
        get(Role::Stagger, GUARDED, |iterations| retries(guarded(), &GET, iterations)),
        put(Role::Bare, "service alone", |iterations| send(Server, &PUT, iterations)),
        put(Role::Stagger, RETRIES, |iterations| retries(Retrier::new(POLICY), &PUT, iterations)),
        put(Role::Stagger, GUARDED, |iterations| retries(guarded(), &PUT, iterations)),
    ]
}

fn retries(retrier: Retrier, message: &Message, iterations: u64) {
    send(RetryLayer::new(retrier).layer(Server), message, iterations);
}

fn guarded() -> Retrier {
    Retrier::new(POLICY).budget(Tokens::default())
}

// The requests, the server, and the loop that sends them.

type Message = Request<Full<Bytes>>;
type Answer = Response<Full<Bytes>>;

/// A request without a body and with typical headers of an API client.
static GET: LazyLock<Message> = LazyLock::new(|| message("GET", Bytes::new()));

/// The same request with a body of a kibibyte.
static PUT: LazyLock<Message> = LazyLock::new(|| message("PUT", Bytes::from(vec![b'x'; 1024])));

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
struct Server;

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
fn send<S>(mut service: S, message: &Message, iterations: u64)
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
