//! Quiet periods: when a server asks one call to wait, the other calls with the same key wait, and nobody else.

mod layer;
#[cfg(feature = "reqwest-middleware")]
mod sockets;
mod storm;

use core::time::Duration;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use stagger::guard::QuietPeriod;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::Error;
use tokio::time::Instant;
use tower::Service;

use super::tower::{LayerRequest, ServerResponse, ms};

/// One attempt, so that a call that is not held fails at once.
const ONCE: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(1));
const SECOND: Duration = Duration::from_secs(1);

/// A retrier whose calls wait while the server asks for quiet.
fn quiet(policy: Policy) -> Retrier {
    Retrier::new(policy).guard(QuietPeriod::new())
}

/// When each request arrived, and its path.
type Arrivals = Arc<Mutex<Vec<(Duration, String)>>>;

/// A server that answers by the time since the start of the test.
fn server<F>(
    answer: F,
) -> (
    impl Service<LayerRequest, Response = ServerResponse, Error = std::io::Error, Future: Send> + Clone + Send + Sync,
    Arrivals,
)
where
    F: Fn(Duration, &LayerRequest) -> ServerResponse + Clone + Send + Sync,
{
    let (start, arrivals) = (Instant::now(), Arrivals::default());
    let log = Arc::clone(&arrivals);
    let service = tower::service_fn(move |request: LayerRequest| {
        let now = start.elapsed();
        log.lock().unwrap().push((now, request.uri().path().to_owned()));
        let response = answer(now, &request);
        async move { Ok(response) }
    });
    (service, arrivals)
}

/// Answers 429 with this hint until `until`, and 200 from then on.
fn limited_until(until: Duration, hint: &'static str) -> impl Fn(Duration, &LayerRequest) -> ServerResponse + Copy {
    move |now, _| if now < until { limited("retry-after", hint) } else { ok() }
}

fn limited(header: &str, value: &str) -> ServerResponse {
    Response::builder().status(429).header(header, value).body(Full::default()).unwrap()
}

fn ok() -> ServerResponse {
    Response::new(Full::default())
}

fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::builder().method(Method::GET).uri(uri).body(Full::default()).unwrap()
}

fn with_token(uri: &str, token: &str) -> Request<Full<Bytes>> {
    Request::get(uri).header("authorization", format!("Bearer {token}")).body(Full::default()).unwrap()
}

/// Returns the status of a call, 0 if it was rejected.
fn code<E>(result: &Result<ServerResponse, Error<E>>) -> u16 {
    result.as_ref().map_or(0, |response| response.status().as_u16())
}

const API: &str = "http://api.example/";

fn seconds(arrivals: &Arrivals) -> Vec<u64> {
    arrivals.lock().unwrap().iter().map(|(at, _)| at.as_secs()).collect()
}
