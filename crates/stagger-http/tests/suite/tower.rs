//! The retry layer on test services, on tokio's paused clock.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use stagger::budget::{Concurrent, Tokens};
use stagger::observe::Action;
use stagger::{Guard, Policy, Retrier, StopReason, policy};
use stagger_http::tower::{ReplayBody, RetryLayer};
use stagger_http::{Idempotency, RequestProgress, StatusFailure, attempt_number};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _, service_fn};

pub(super) const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(4));

pub(super) type ServerResponse = Response<Full<Bytes>>;
pub(super) type LayerRequest = Request<ReplayBody<Full<Bytes>>>;

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(super) fn status(code: u16) -> Result<ServerResponse, io::Error> {
    Ok(Response::builder().status(code).body(Full::from("said the server")).unwrap())
}

pub(super) fn request(method: Method, body: &'static str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/here").header("x-it", "1").body(Full::from(body)).unwrap()
}

/// The requests that a server has seen: time, attempt number in the extensions, attempt header, body.
pub(super) type Seen = Arc<Mutex<Vec<(Duration, u32, Option<String>, String)>>>;

/// Sends these responses, one after the other, and then 200.
pub(super) fn server(
    responses: impl IntoIterator<Item = Result<ServerResponse, io::Error>>,
) -> (impl Service<LayerRequest, Response = ServerResponse, Error = io::Error, Future: Send> + Clone + Send, Seen) {
    let (responses, seen) = (Arc::new(Mutex::new(responses.into_iter().collect::<VecDeque<_>>())), Seen::default());
    let (start, log) = (Instant::now(), Arc::clone(&seen));
    let service = service_fn(move |request: LayerRequest| {
        let (responses, log) = (Arc::clone(&responses), Arc::clone(&log));
        async move {
            let (parts, body) = request.into_parts();
            let attempt = attempt_number(&parts.extensions);
            let header = parts.headers.get("x-retry-attempt").map(|value| value.to_str().unwrap().to_owned());
            assert_eq!((parts.uri.path(), &parts.headers["x-it"]), ("/here", &"1".parse().unwrap()));
            let body = body.collect().await.unwrap().to_bytes();
            log.lock().unwrap().push((start.elapsed(), attempt, header, String::from_utf8(body.to_vec()).unwrap()));
            responses.lock().unwrap().pop_front().unwrap_or_else(|| status(200))
        }
    });
    (service, seen)
}

fn refused() -> Result<ServerResponse, io::Error> {
    Err(io::ErrorKind::ConnectionRefused.into())
}

fn reset() -> Result<ServerResponse, io::Error> {
    Err(io::ErrorKind::ConnectionReset.into())
}

#[tokio::test(start_paused = true)]
async fn a_retry_sends_the_same_request_after_its_delay() {
    let (server, seen) = server([status(503), reset(), status(200)]);
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY)).attempt_header()).service(server);
    let response = client.oneshot(request(Method::PUT, "a body")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "said the server");
    let want = [1, 2, 3].map(|n| (ms(100 * (n - 1)), n as u32, Some(n.to_string()), "a body".to_owned()));
    assert_eq!(*seen.lock().unwrap(), want);
}

#[tokio::test(start_paused = true)]
async fn the_last_response_and_the_last_error_are_returned_unchanged() {
    let (down, seen) = server((0..9).map(|_| status(503)));
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(down);
    let response = client.oneshot(request(Method::GET, "")).await.unwrap();
    assert_eq!((response.status().as_u16(), seen.lock().unwrap().len()), (503, 4));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "said the server");

    let (down, _) = server((0..9).map(|_| reset()));
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(down);
    let error = client.oneshot(request(Method::GET, "")).await.unwrap_err().into_service_error().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

type Events = Arc<Mutex<Vec<(Action, Option<StatusFailure>)>>>;

fn recording(policy: Policy) -> (Retrier, Events) {
    let events = Events::default();
    let log = Arc::clone(&events);
    let retrier = Retrier::new(policy).on_event(move |event| {
        log.lock().unwrap().push((event.action, event.error_as::<StatusFailure>().copied()));
    });
    (retrier, events)
}

#[tokio::test(start_paused = true)]
async fn ht_23_a_request_that_may_have_been_processed_is_not_retried_and_the_event_says_why() {
    for (first, is_status) in [(status(503), true), (reset(), false)] {
        let (server, seen) = server([first]);
        let (retrier, events) = recording(POLICY);
        let client = ServiceBuilder::new().layer(RetryLayer::new(retrier)).service(server);
        let _ = client.oneshot(request(Method::POST, "pay")).await;
        assert_eq!(seen.lock().unwrap().len(), 1);
        let (action, failure) = events.lock().unwrap()[0];
        assert_eq!(action, Action::Stop(StopReason::UnsafeToRetry));
        assert_eq!(failure.map(|failure| failure.idempotency()), is_status.then_some(Idempotency::OnlyIfUnsent));
    }
}

#[tokio::test(start_paused = true)]
async fn ht_23_any_request_that_was_not_sent_is_retried() {
    let (server, seen) = server([refused(), refused()]);
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(server);
    assert_eq!(client.oneshot(request(Method::POST, "pay")).await.unwrap().status(), 200);
    // A refused connection waits like any other failure.
    assert_eq!(seen.lock().unwrap().iter().map(|seen| seen.0).collect::<Vec<_>>(), [ms(0), ms(100), ms(200)]);
}

#[derive(Debug)]
struct Wrapped(io::Error);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

// Wherever it is in the source chain of the error.
#[tokio::test(start_paused = true)]
async fn io_errors_that_mean_no_connection_need_no_rule() {
    use io::ErrorKind::{
        AddrNotAvailable, BrokenPipe, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown,
        NetworkUnreachable, UnexpectedEof,
    };
    let unsent = [ConnectionRefused, HostUnreachable, NetworkUnreachable, NetworkDown, AddrNotAvailable];
    let ambiguous = [ConnectionReset, BrokenPipe, UnexpectedEof];
    for (kind, want) in unsent.map(|kind| (kind, 4)).into_iter().chain(ambiguous.map(|kind| (kind, 1))) {
        let (server, seen) = server((0..9).map(|_| Err(kind.into())));
        let layer = RetryLayer::new(Retrier::new(POLICY));
        let boxed = layer.layer(server.map_err(|error| tower::BoxError::from(Wrapped(error))));
        let _ = boxed.oneshot(request(Method::POST, "pay")).await.unwrap_err();
        assert_eq!(seen.lock().unwrap().len(), want, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn ht_25_a_key_or_a_declaration_makes_a_post_retryable() {
    let (keyed, seen) = server([status(503)]);
    let mut pays = request(Method::POST, "pay");
    pays.headers_mut().insert("idempotency-key", "\"8e03978e\"".parse().unwrap());
    let layer = RetryLayer::new(Retrier::new(POLICY));
    assert_eq!(layer.layer(keyed).oneshot(pays).await.unwrap().status(), 200);
    assert_eq!(seen.lock().unwrap().len(), 2);

    let (declared, seen) = server([status(503), status(503)]);
    let layer = layer.idempotent_if(|parts| parts.uri.path() == "/here");
    assert_eq!(layer.layer(declared).oneshot(request(Method::POST, "search")).await.unwrap().status(), 200);
    assert_eq!(seen.lock().unwrap().len(), 3);
}

// The first request with the same key is still in progress.
#[tokio::test(start_paused = true)]
async fn a_conflict_is_retried_if_the_request_has_a_key() {
    for (is_keyed, want) in [(true, 200), (false, 409)] {
        let (server, _) = server([status(409)]);
        let mut pays = request(Method::POST, "pay");
        if is_keyed {
            pays.headers_mut().insert("idempotency-key", "\"8e03978e\"".parse().unwrap());
        }
        assert_eq!(RetryLayer::new(Retrier::new(POLICY)).layer(server).oneshot(pays).await.unwrap().status(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_processed_is_retried_immediately_but_only_once() {
    let (server, seen) = server([reset(), reset(), reset()]);
    let layer = RetryLayer::new(Retrier::new(POLICY)).classify_progress(|_: &io::Error| RequestProgress::NotProcessed);
    assert_eq!(layer.layer(server).oneshot(request(Method::POST, "pay")).await.unwrap().status(), 200);
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|seen| (seen.0, seen.1)).collect();
    assert_eq!(seen, [(ms(0), 1), (ms(0), 1), (ms(100), 2), (ms(200), 3)]);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honored() {
    let busy = || {
        let mut response = status(429).unwrap();
        response.headers_mut().insert("retry-after", "2".parse().unwrap());
        Ok(response)
    };
    let (server, seen) = server([busy()]);
    let layer = RetryLayer::new(Retrier::new(POLICY));
    assert_eq!(layer.layer(server).oneshot(request(Method::GET, "")).await.unwrap().status(), 200);
    let second = seen.lock().unwrap()[1].0;
    assert!(second >= ms(2000) && second <= ms(3001), "{second:?}");
}

// Twenty calls in backoff hold no permit, so the twenty-first is sent immediately.
#[tokio::test(start_paused = true)]
async fn nothing_is_held_during_backoff() {
    let fails = Arc::new(Mutex::new(20));
    let server = service_fn(move |_: LayerRequest| {
        let mut left = fails.lock().unwrap();
        let fails = *left > 0;
        *left = u32::saturating_sub(*left, 1);
        async move { status(if fails { 503 } else { 200 }) }
    });
    let slow = Policy::constant(Duration::from_secs(60)).max_attempts(2).build().unwrap();
    let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(slow))).concurrency_limit(4).service(server);
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(client.clone().oneshot(request(Method::GET, "")))).collect();
    sleep(ms(1)).await;
    let started = Instant::now();
    assert_eq!(client.oneshot(request(Method::GET, "")).await.unwrap().status(), 200);
    assert_eq!(started.elapsed(), ms(0));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_releases_its_budget_permit() {
    let (tokens, concurrent) = (Arc::new(Tokens::new()), Arc::new(Concurrent::new()));
    let budgets: [Arc<dyn Guard>; 2] = [tokens.clone(), concurrent.clone()];
    for budget in budgets {
        let (server, _) = server((0..9).map(|_| status(503)));
        let layer = RetryLayer::new(Retrier::new(POLICY).shared_guard(budget));
        let call = layer.layer(server).oneshot(request(Method::GET, ""));
        assert!(tokio::time::timeout(ms(50), call).await.is_err());
    }
    assert_eq!(tokens.snapshot().tokens, 500);
    assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0));
}

// Three nested layers with three attempts each, and a persistent failure: three requests arrive, not 27.
#[tokio::test(start_paused = true)]
async fn nested_layers_do_not_multiply_attempts() {
    const THREE: Policy = policy!(constant(ms(100)).max_attempts(3));
    let layer = || RetryLayer::new(Retrier::new(THREE));
    let calls = Arc::new(Mutex::new(0));
    let log = Arc::clone(&calls);
    let server = service_fn(move |_: Request<ReplayBody<ReplayBody<ReplayBody<Full<Bytes>>>>>| {
        *log.lock().unwrap() += 1;
        async { status(503) }
    });
    let client = ServiceBuilder::new().layer(layer()).layer(layer()).layer(layer()).service(server);
    assert_eq!(client.oneshot(request(Method::GET, "")).await.unwrap().status(), 503);
    assert_eq!(*calls.lock().unwrap(), 3);
}
