//! The headers and extensions of an attempt: keys, credentials, the attempt number and the remaining time.

use core::future::Ready;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use stagger::time::Tokio;
use stagger::{Attempt, Jitter, Policy, Retrier, policy};
use stagger_http::Deadline;
use stagger_http::tower::{ReplayBody, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt as _, service_fn};

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(4));

type LayerRequest = Request<ReplayBody<Full<Bytes>>>;
type Seen = Arc<Mutex<Vec<HeaderMap>>>;

/// Responds with these statuses and then with 200. Records the headers.
fn server(
    statuses: impl IntoIterator<Item = u16>,
) -> (impl Service<LayerRequest, Response = Response<Full<Bytes>>, Error = io::Error, Future: Send> + Clone + Send, Seen)
{
    let (seen, statuses) =
        (Seen::default(), Arc::new(Mutex::new(statuses.into_iter().collect::<Vec<_>>().into_iter())));
    let log = Arc::clone(&seen);
    let service = service_fn(move |request: LayerRequest| {
        log.lock().unwrap().push(request.headers().clone());
        let status = statuses.lock().unwrap().next().unwrap_or(200);
        async move {
            sleep(Duration::from_millis(10)).await;
            Ok(Response::builder().status(status).body(Full::default()).unwrap())
        }
    });
    (service, seen)
}

fn layer() -> RetryLayer<Tokio> {
    RetryLayer::new(Retrier::new(POLICY))
}

fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/").body(Full::from("body")).unwrap()
}

fn texts(seen: &Seen, name: &str) -> Vec<Option<String>> {
    seen.lock().unwrap().iter().map(|headers| Some(headers.get(name)?.to_str().unwrap().to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn ht_25_a_key_is_generated_once_and_sent_with_every_attempt() {
    let (service, seen) = server([503, 503]);
    let client = layer().idempotency_keys().layer(service);
    assert_eq!(client.clone().oneshot(request(Method::POST)).await.unwrap().status(), 200);
    let keys = texts(&seen, "idempotency-key");
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0] && key.as_ref().unwrap().len() == 2 + 36), "{keys:?}");

    client.clone().oneshot(request(Method::POST)).await.unwrap();
    assert_ne!(texts(&seen, "idempotency-key").pop().unwrap(), keys[0], "each request has its own");
    client.clone().oneshot(request(Method::PUT)).await.unwrap();
    assert_eq!(texts(&seen, "idempotency-key").pop().unwrap(), None, "an idempotent method needs no key");
    let mut own = request(Method::POST);
    own.headers_mut().insert("idempotency-key", "\"mine\"".parse().unwrap());
    client.oneshot(own).await.unwrap();
    assert_eq!(texts(&seen, "idempotency-key").pop().unwrap().as_deref(), Some("\"mine\""));
}

#[tokio::test(start_paused = true)]
async fn a_denied_request_is_retried_once_with_fresh_credentials() {
    for status in [401, 403] {
        let (service, seen) = server([status]);
        let client = layer().refresh_credentials(|_| async {
            sleep(Duration::from_millis(5)).await;
            Some(HeaderMap::from_iter([("authorization".parse().unwrap(), "fresh".parse().unwrap())]))
        });
        let mut post = request(Method::POST);
        post.headers_mut().insert("authorization", "stale".parse().unwrap());
        let started = Instant::now();
        assert_eq!(client.layer(service).oneshot(post).await.unwrap().status(), 200);
        assert_eq!(texts(&seen, "authorization"), [Some("stale".to_owned()), Some("fresh".to_owned())]);
        assert_eq!(started.elapsed(), Duration::from_millis(10 + 5 + 10), "immediately");
    }
    let (service, seen) = server([401, 401, 401]);
    let client = layer().refresh_credentials(|_| async { Some(HeaderMap::new()) });
    assert_eq!(client.layer(service).oneshot(request(Method::GET)).await.unwrap().status(), 401);
    assert_eq!(seen.lock().unwrap().len(), 2, "once");

    let (service, seen) = server([401]);
    let client = layer().refresh_credentials(|_| async { None });
    assert_eq!(client.layer(service).oneshot(request(Method::GET)).await.unwrap().status(), 401);
    assert_eq!(seen.lock().unwrap().len(), 1, "no credentials are available");
}

#[tokio::test(start_paused = true)]
async fn an_announced_wait_is_followed_if_that_was_asked_for_and_does_not_refresh_credentials() {
    let server = |status: u16, header: (&'static str, &'static str)| {
        let calls = Arc::new(Mutex::new(0));
        let count = Arc::clone(&calls);
        let service = service_fn(move |_: LayerRequest| {
            let mut calls = count.lock().unwrap();
            *calls += 1;
            let response = Response::builder().header(header.0, header.1);
            let response = response.status(if *calls == 1 { status } else { 200 });
            async { Ok::<_, io::Error>(response.body(Full::<Bytes>::default()).unwrap()) }
        });
        (service, calls)
    };
    let refresh = |_: &_| -> Ready<Option<HeaderMap>> { panic!("credentials must not be refreshed") };
    for (status, header) in [(403, ("retry-after-ms", "700")), (413, ("retry-after-ms", "700"))] {
        let (service, calls) = server(status, header);
        let client = layer().announced_waits().refresh_credentials(refresh).layer(service);
        let started = Instant::now();
        assert_eq!(client.oneshot(request(Method::GET)).await.unwrap().status(), 200);
        assert_eq!(*calls.lock().unwrap(), 2);
        assert!((700..1_100).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());

        let (service, calls) = server(status, header);
        assert_eq!(layer().layer(service).oneshot(request(Method::GET)).await.unwrap().status(), status);
        assert_eq!(*calls.lock().unwrap(), 1, "not asked for");
    }
    let (service, _) = server(403, ("x-ratelimit-remaining", "4999"));
    let denied = layer().announced_waits().layer(service).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(denied.status(), 403, "it is no rate limit");
}

// With the retry at the reserved time, not with later ones.
#[tokio::test(start_paused = true)]
async fn the_token_of_a_reservation_is_sent_once() {
    const RESERVATIONS: [Option<&str>; 3] = [Some("500;token=0123456789abcdef0123456789abcdef"), None, None];
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, started) = (Arc::clone(&seen), Instant::now());
    let service = service_fn(move |request: LayerRequest| {
        let mut seen = log.lock().unwrap();
        let mut response = Response::builder().status(503);
        if let Some(reservation) = RESERVATIONS[seen.len()] {
            response = response.header("stagger-reservation", reservation);
        }
        let token = request.headers().get("stagger-reservation-token").map(|token| token.to_str().unwrap().to_owned());
        seen.push((token, started.elapsed().as_millis()));
        async { Ok::<_, io::Error>(response.body(Full::<Bytes>::default()).unwrap()) }
    });
    let thrice = Policy::constant(Duration::from_millis(100)).jitter(Jitter::None).max_attempts(3).build().unwrap();
    RetryLayer::new(Retrier::new(thrice)).layer(service).oneshot(request(Method::GET)).await.unwrap();
    let token = Some("0123456789abcdef0123456789abcdef".to_owned());
    assert_eq!(*seen.lock().unwrap(), [(None, 0), (token, 500), (None, 600)]);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_times_out_returns_the_denial() {
    let (service, seen) = server([401]);
    let client = RetryLayer::new(Retrier::new(POLICY).timeout(Duration::from_millis(50)));
    let client = client.refresh_credentials(|_| core::future::pending::<Option<HeaderMap>>());
    let started = Instant::now();
    assert_eq!(client.layer(service).oneshot(request(Method::GET)).await.unwrap().status(), 401);
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert!((50..60).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

// Beyond the replay limit, only the end of the body could be sent again, so the credentials are not even refreshed.
#[tokio::test(start_paused = true)]
async fn a_denied_request_with_a_lost_body_is_not_retried() {
    let calls = Arc::new(Mutex::new(0));
    let count = Arc::clone(&calls);
    let reads = service_fn(move |request: LayerRequest| {
        *count.lock().unwrap() += 1;
        async {
            request.into_body().collect().await.unwrap();
            Ok::<_, io::Error>(Response::builder().status(401).body(Full::<Bytes>::default()).unwrap())
        }
    });
    let client = layer()
        .replay_limit(3)
        .refresh_credentials(|_| -> Ready<Option<HeaderMap>> { panic!("credentials must not be refreshed") });
    assert_eq!(client.layer(reads).oneshot(request(Method::PUT)).await.unwrap().status(), 401);
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_limits_the_attempts_and_is_propagated() {
    let (service, seen) = server([503; 9]);
    let client = layer().timeout_header().layer(service);
    let mut hurried = request(Method::GET);
    hurried.extensions_mut().insert(Deadline::within(Duration::from_millis(250)));
    let started = Instant::now();
    assert_eq!(client.oneshot(hurried).await.unwrap().status(), 503);
    // Attempts at 0 ms, 110 ms and 220 ms; the next would start at 330 ms.
    let left = texts(&seen, "stagger-timeout-ms");
    let left: Vec<u32> = left.into_iter().map(|left| left.unwrap().parse().unwrap()).collect();
    assert_eq!(left.len(), 3);
    for (got, want) in left.iter().zip([250, 140, 30]) {
        assert!(got.abs_diff(want) <= 3, "{left:?}");
    }
    assert!(started.elapsed() < Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn grpc_requests_carry_attempts_and_timeout_in_grpcs_headers() {
    let (service, seen) = server([503, 503]);
    let client = RetryLayer::new(Retrier::new(POLICY).timeout(Duration::from_millis(80))).idempotent_if(|_| true);
    let mut call = request(Method::POST);
    call.headers_mut().insert("content-type", "application/grpc+proto".parse().unwrap());
    assert_eq!(client.layer(service).oneshot(call).await.unwrap().status(), StatusCode::OK);
    let previous = texts(&seen, "grpc-previous-rpc-attempts");
    assert_eq!(previous, [None, Some("1".to_owned()), Some("2".to_owned())]);
    assert_eq!(texts(&seen, "grpc-timeout"), vec![Some("80000000n".to_owned()); 3]);
}

// A first attempt without a time limit is not inserted, unless an outer layer has inserted an attempt of its own.
#[tokio::test(start_paused = true)]
async fn an_attempt_is_inserted_into_the_extensions_unless_it_is_the_default() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let down = service_fn(move |request: LayerRequest| {
        log.lock().unwrap().push(request.extensions().get::<Attempt>().copied());
        async { Ok::<_, io::Error>(Response::builder().status(503).body(Full::<Bytes>::default()).unwrap()) }
    });
    let take = || seen.lock().unwrap().drain(..).collect::<Vec<Option<Attempt>>>();
    let numbers = |attempts: Vec<Option<Attempt>>| {
        attempts.iter().map(|attempt| attempt.map(|attempt| attempt.number)).collect::<Vec<_>>()
    };

    layer().layer(down.clone()).oneshot(request(Method::GET)).await.unwrap();
    let attempts = take();
    assert_eq!(attempts[3].unwrap().max.map(Into::into), Some(4_u32));
    let marked = attempts[1].unwrap();
    assert_eq!(numbers(attempts), [None, Some(2), Some(3), Some(4)]);

    let mut inner = request(Method::GET);
    inner.extensions_mut().insert(marked);
    layer().layer(down.clone()).oneshot(inner).await.unwrap();
    assert_eq!(numbers(take()), [1, 2, 3, 4].map(Some));

    let limited = RetryLayer::new(Retrier::new(POLICY).timeout(Duration::from_millis(30)));
    limited.layer(down).oneshot(request(Method::GET)).await.unwrap();
    let attempts = take();
    assert_eq!(attempts[0].unwrap().time_limit, Some(Duration::from_millis(30)));
    assert_eq!(numbers(attempts), [1, 2, 3, 4].map(Some));
}

// A token is valid once, whatever ends the attempt that carried it.
#[tokio::test(start_paused = true)]
async fn the_token_of_a_reservation_is_not_sent_again_after_a_lost_connection() {
    let tokens = &Mutex::new(Vec::new());
    let server = service_fn(|request: LayerRequest| async move {
        let mut tokens = tokens.lock().unwrap();
        tokens.push(request.headers().contains_key("stagger-reservation-token"));
        if tokens.len() == 2 {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        let status = if tokens.len() == 1 { 503 } else { 200 };
        let response = Response::builder()
            .status(status)
            .header("stagger-reservation", "150;token=0123456789abcdef0123456789abcdef");
        Ok(response.body(Full::<Bytes>::default()).unwrap())
    });
    let layer = RetryLayer::new(Retrier::new(POLICY));
    assert_eq!(layer.layer(server).oneshot(request(Method::GET)).await.unwrap().status(), 200);
    assert_eq!(*tokens.lock().unwrap(), [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn retries_count_their_layer_once_in_the_baggage_that_the_application_has_set() {
    let (service, seen) = server([503, 503]);
    let mut call = request(Method::GET);
    call.headers_mut().insert("baggage", "user=7, stagger.depth=1".parse().unwrap());
    layer().depth_in_baggage().layer(service).oneshot(call).await.unwrap();
    let retry = Some("user=7,stagger.depth=2".to_owned());
    assert_eq!(texts(&seen, "baggage"), [Some("user=7, stagger.depth=1".to_owned()), retry.clone(), retry]);
    let (service, seen) = server([503]);
    layer().layer(service).oneshot(request(Method::GET)).await.unwrap();
    assert_eq!(texts(&seen, "baggage"), [None, None], "not by default");
}
