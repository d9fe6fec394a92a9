//! gRPC headers and statuses: their conformance rows, through the layer, on tokio's paused clock.

use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use stagger::budget::Throttle;
use stagger::guard::QuietPeriod;
use stagger::observe::Action;
use stagger::profile::GRPC_A6;
use stagger::time::Tokio;
use stagger::{FailureKind, Outcome, Policy, Ratio, Retrier, ServerHint, StopReason, policy};
use stagger_http::grpc::{self, Codes};
use stagger_http::tower::{ReplayBody, RetryLayer};
use tokio::time::Instant;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

const OK: u32 = 0;
const CANCELLED: u32 = 1;
const UNKNOWN: u32 = 2;
const INVALID_ARGUMENT: u32 = 3;
const RESOURCE_EXHAUSTED: u32 = 8;
const ABORTED: u32 = 10;
const UNAVAILABLE: u32 = 14;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn a_status_is_read_from_headers_and_trailers_alike() {
    let outcome = |fields: &[(&'static str, &str)]| {
        grpc::outcome(&fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect())
    };
    for (fields, want) in [
        (&[][..], None),
        (&[("grpc-message", "busy")], None),
        (&[("grpc-status", "0")], Some(Outcome::Success)),
        (&[("grpc-status", "14")], Some(Outcome::TRANSIENT)),
        (&[("grpc-status", "8")], Some(Outcome::throttled(None))),
        // Cancelled by the server or a proxy, not by this client.
        (&[("grpc-status", "1")], Some(Outcome::Permanent)),
        (&[("grpc-status", "what")], Some(Outcome::Permanent)),
        (&[("grpc-status", "99")], Some(Outcome::Permanent)),
        (
            &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "20")],
            Some(Outcome::Failed { kind: FailureKind::Throttled, hint: Some(ServerHint::AtLeast(ms(20))) }),
        ),
    ] {
        assert_eq!(outcome(fields), want, "{fields:?}");
    }
    let malformed = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "what".parse().unwrap())]);
    let unknown = grpc::outcome_with(&malformed, |code| Codes::new(&[UNKNOWN]).outcome(code));
    assert_eq!(unknown, Some(Outcome::TRANSIENT), "a malformed status is UNKNOWN");
}

#[test]
fn grpc_messages_are_recognized_by_their_content_type() {
    for (value, want) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc-web+proto", true),
        ("application/grpc;charset=utf-8", true),
        ("application/grpcish", false),
        ("application/json", false),
    ] {
        let headers = HeaderMap::from_iter([("content-type".parse().unwrap(), value.parse().unwrap())]);
        assert_eq!(grpc::is_grpc(&headers), want, "{value}");
    }
    assert!(!grpc::is_grpc(&HeaderMap::new()));
}

#[test]
fn a_timeout_is_formatted_in_the_finest_unit_that_fits_and_rounded_down() {
    for (duration, want) in [
        (Duration::ZERO, "0n"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_nanos(100_000_999), "100000u"),
        (Duration::from_secs(99_999), "99999000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::from_secs(100_000_000), "1666666M"),
        (Duration::MAX, "99999999H"),
    ] {
        assert_eq!(grpc::format_timeout(duration), want);
        assert!(grpc::parse_timeout(want).unwrap() <= duration, "{want}");
    }
    for text in ["", "n", "1", "123456789n", "-1S", "1 S", "1s", "1.5S", "ﬁS"] {
        assert_eq!(grpc::parse_timeout(text), None, "{text:?}");
    }
}

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(4));
type ServerResponse = Response<Full<Bytes>>;
/// The arrival time and headers of each request.
type Seen = Arc<Mutex<Vec<(Duration, HeaderMap)>>>;

/// Returns a trailers-only response, whose status is in its headers.
fn trailers_only(code: u32) -> ServerResponse {
    let response = Response::builder().header("content-type", "application/grpc").header("grpc-status", code);
    response.body(Full::default()).unwrap()
}

fn pushed_back(code: u32, pushback: &str) -> ServerResponse {
    let mut response = trailers_only(code);
    response.headers_mut().insert(grpc::PUSHBACK, pushback.parse().unwrap());
    response
}

/// Creates a server whose response depends on the number of the request, from 0.
fn server(
    response: impl Fn(usize) -> ServerResponse + Clone + Send,
) -> (
    impl Service<Request<ReplayBody<Full<Bytes>>>, Response = ServerResponse, Error = io::Error, Future: Send>
    + Clone
    + Send,
    Seen,
) {
    let (seen, start) = (Seen::default(), Instant::now());
    let log = Arc::clone(&seen);
    let service = service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
        let mut log = log.lock().unwrap();
        log.push((start.elapsed(), request.headers().clone()));
        let response = response(log.len() - 1);
        async move {
            // Only what the server reads is buffered.
            request.into_body().collect().await.unwrap();
            Ok::<_, io::Error>(response)
        }
    });
    (service, seen)
}

/// Creates a layer for idempotent methods; gRPC's retry policies assume all methods to be.
fn layer(retrier: impl Into<Retrier>) -> RetryLayer<Tokio> {
    RetryLayer::new(retrier).idempotent_if(|_| true)
}

fn call() -> Request<Full<Bytes>> {
    let request = Request::builder().method(Method::POST).uri("/shop.Stock/Count");
    request.header("content-type", "application/grpc+proto").body(Full::from("a message")).unwrap()
}

fn code(response: &ServerResponse) -> u32 {
    response.headers()["grpc-status"].to_str().unwrap().parse().unwrap()
}

fn times(seen: &Seen) -> Vec<Duration> {
    seen.lock().unwrap().iter().map(|(when, _)| *when).collect()
}

/// Returns the status code of the call and the number of requests.
async fn call_through(
    layer: RetryLayer<Tokio>,
    response: impl Fn(usize) -> ServerResponse + Clone + Send,
) -> (u32, usize) {
    let (server, seen) = server(response);
    let response = layer.layer(server).oneshot(call()).await.unwrap();
    let requests = seen.lock().unwrap().len();
    (code(&response), requests)
}

#[tokio::test(start_paused = true)]
async fn gr_05_twelve_calls_share_a_throttle_through_the_layer() {
    let succeeds = |n: usize| matches!(n, 0 | 3 | 6 | 10..=14 | 16 | 18);
    let (server, seen) = server(move |n| trailers_only(if succeeds(n) { OK } else { UNAVAILABLE }));
    let throttle = Arc::new(Throttle::new(10, Ratio::percent(50)).unwrap());
    let retrier = Retrier::new(POLICY).shared_guard(throttle.clone());
    let client = RetryLayer::new(retrier).idempotent_if(|_| true).layer(server);
    let mut got = Vec::new();
    for _ in 0..12 {
        let response = client.clone().oneshot(call()).await.unwrap();
        got.push((seen.lock().unwrap().len() - 1, code(&response) == OK));
    }
    let want = [(0, true), (3, true), (6, true), (8, false), (9, false), (10, true), (11, true), (12, true)];
    let want = [&want[..], &[(13, true), (14, true), (16, true), (17, false)]].concat();
    assert_eq!((throttle.snapshot().milli_tokens, throttle.snapshot().max_milli_tokens), (5_000, 10_000));
    assert_eq!(got, want);
}

#[tokio::test(start_paused = true)]
async fn gr_07_each_retry_sends_the_number_of_previous_attempts() {
    let (server, seen) = server(|n| trailers_only(if n < 3 { UNAVAILABLE } else { OK }));
    assert_eq!(code(&layer(POLICY).layer(server).oneshot(call()).await.unwrap()), OK);
    let seen = seen.lock().unwrap();
    let previous = seen.iter().map(|(_, headers)| headers.get(grpc::PREVIOUS_ATTEMPTS)?.to_str().ok());
    assert_eq!(previous.collect::<Vec<_>>(), [None, Some("1"), Some("2"), Some("3")]);
}

#[tokio::test(start_paused = true)]
async fn gr_09_a_retry_comes_no_earlier_than_the_pushback() {
    let response = |n| if n == 0 { pushed_back(UNAVAILABLE, "1000") } else { trailers_only(OK) };
    for (policy, latest) in [(GRPC_A6.policy(), ms(1_002)), (POLICY, ms(2_002))] {
        let (server, seen) = server(response);
        assert_eq!(code(&layer(policy).layer(server).oneshot(call()).await.unwrap()), OK);
        let second = times(&seen)[1];
        assert!(second >= ms(1_000) && second <= latest, "{policy}: {second:?}");
    }
}

/// What a server says to one call for all of them. A pushback of other codes is for the call that it answers.
#[tokio::test(start_paused = true)]
async fn a_pushback_of_an_exhausted_server_holds_the_other_calls_to_it() {
    for (code, seconds) in [(RESOURCE_EXHAUSTED, [0, 10]), (UNAVAILABLE, [0, 0])] {
        let (server, seen) = server(move |n| if n == 0 { pushed_back(code, "10000") } else { trailers_only(OK) });
        let retrier = Retrier::new(policy!(constant(ms(100)).max_attempts(1))).guard(QuietPeriod::new());
        let client = layer(retrier).layer(server);
        let call = || {
            let (mut head, body) = call().into_parts();
            head.uri = "http://shop.example/shop.Stock/Count".parse().unwrap();
            client.clone().oneshot(Request::from_parts(head, body))
        };
        assert_eq!(self::code(&call().await.unwrap()), code);
        assert_eq!(self::code(&call().await.unwrap()), OK);
        let arrivals: Vec<u64> = times(&seen).iter().map(Duration::as_secs).collect();
        assert_eq!(arrivals, seconds, "{code}");
    }
}

/// For gRPC the server is only unavailable, but the proxy says when it takes requests again.
#[tokio::test(start_paused = true)]
async fn a_hint_of_a_proxy_that_does_not_know_grpc_holds_the_other_calls() {
    for (status, hint, want) in [(503, "10", 10), (429, "10", 10), (502, "10", 0)] {
        let (server, seen) = server(move |n| {
            let rejected = Response::builder().status(status).header("retry-after", hint);
            if n == 0 { rejected.body(Full::default()).unwrap() } else { trailers_only(OK) }
        });
        let retrier = Retrier::new(policy!(constant(ms(100)).max_attempts(1))).guard(QuietPeriod::new());
        let client = layer(retrier).layer(server);
        assert_eq!(client.clone().oneshot(call()).await.unwrap().status(), status);
        assert_eq!(code(&client.clone().oneshot(call()).await.unwrap()), OK);
        assert_eq!(times(&seen)[1].as_secs(), want, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn gr_11_a_request_beyond_the_replay_limit_is_not_retried() {
    for (limit, want) in [(200, 1), (500, 2)] {
        let (server, seen) = server(|n| trailers_only(if n == 0 { UNAVAILABLE } else { OK }));
        let long = call().map(|_| Full::from(vec![0; 500]));
        layer(POLICY).replay_limit(limit).layer(server).oneshot(long).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), want, "{limit}");
    }
}

// gRPC waits for the deadline if a retry would come after it; here the last response is returned immediately.
#[tokio::test(start_paused = true)]
async fn gr_23_a_backoff_beyond_the_deadline_is_not_waited_for() {
    const SLOW: Policy = policy!(constant(secs(5)).jitter(Jitter::None).max_attempts(4));
    for (unit, want) in [("1S", 1), ("6S", 2)] {
        let (server, seen) = server(|n| trailers_only(if n == 0 { UNAVAILABLE } else { OK }));
        let mut call = call();
        call.headers_mut().insert(grpc::TIMEOUT, unit.parse().unwrap());
        let started = Instant::now();
        layer(SLOW).layer(server).oneshot(call).await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), want, "{unit}");
        assert!(want == 2 || started.elapsed() < ms(1), "{:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn grpc_timeout_is_ignored_on_requests_that_are_not_grpc() {
    let (server, seen) =
        server(|n| Response::builder().status(if n == 0 { 503 } else { 200 }).body(Full::default()).unwrap());
    let plain = Request::get("/").header(grpc::TIMEOUT, "1m").body(Full::default()).unwrap();
    assert_eq!(layer(POLICY).layer(server).oneshot(plain).await.unwrap().status(), 200);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_spans_all_attempts_and_each_attempt_sends_the_remaining_time() {
    let (server, seen) = server(|_| trailers_only(UNAVAILABLE));
    let mut call = call();
    call.headers_mut().insert(grpc::TIMEOUT, "250m".parse().unwrap());
    layer(POLICY).layer(server).oneshot(call).await.unwrap();
    let seen = seen.lock().unwrap();
    let left = seen.iter().map(|(_, headers)| grpc::parse_timeout(headers[grpc::TIMEOUT].to_str().unwrap()).unwrap());
    let left: Vec<_> = left.collect();
    assert_eq!(left.len(), 3);
    for (left, want) in left.iter().zip([250, 150, 50]) {
        assert!(*left <= ms(want) && *left >= ms(want - 3), "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_has_begun_is_not_retried_and_counts_as_a_success() {
    let (server, seen) = server(|n| match n {
        0 => pushed_back(UNAVAILABLE, "-1"),
        // No status in the headers: messages follow, then the status.
        _ => Response::builder().header("content-type", "application/grpc").body(Full::from("x")).unwrap(),
    });
    let throttle = Arc::new(Throttle::new(10, Ratio::percent(50)).unwrap());
    let retrier = Retrier::new(POLICY).shared_guard(throttle.clone());
    let client = RetryLayer::new(retrier).idempotent_if(|_| true).layer(server);
    for (requests, tokens) in [(1, 9_000), (2, 9_500)] {
        assert_eq!(client.clone().oneshot(call()).await.unwrap().status(), 200);
        assert_eq!((seen.lock().unwrap().len(), throttle.snapshot().milli_tokens), (requests, tokens));
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_pushback_ends_the_call() {
    for never in ["-1", "soon", "", "01", " 5", "+5", "1.5", "2147483648"] {
        let mut headers = HeaderMap::new();
        headers.insert(grpc::PUSHBACK, never.parse().unwrap());
        assert_eq!(grpc::pushback(&headers), Some(ServerHint::DoNotRetry), "{never:?}");
        assert_eq!(
            call_through(layer(POLICY), move |_| pushed_back(UNAVAILABLE, never)).await,
            (UNAVAILABLE, 1),
            "{never:?}"
        );
    }
    for (some, want) in [("0", 0), ("5", 5), ("2147483647", 2_147_483_647)] {
        let mut headers = HeaderMap::new();
        headers.insert(grpc::PUSHBACK, some.parse().unwrap());
        assert_eq!(grpc::pushback(&headers), Some(ServerHint::AtLeast(ms(want))));
        headers.append(grpc::PUSHBACK, some.parse().unwrap());
        assert_eq!(grpc::pushback(&headers), Some(ServerHint::DoNotRetry), "twice");
    }
    assert_eq!(grpc::pushback(&HeaderMap::new()), None);
}

// As proposal A6 requires: of the failures that are not retried, only these are counted.
#[tokio::test(start_paused = true)]
async fn a_pushback_that_forbids_retries_takes_a_token_whatever_the_status() {
    for (response, want) in [
        (pushed_back(INVALID_ARGUMENT, "-1"), 9_000),
        (pushed_back(INVALID_ARGUMENT, "5"), 10_000),
        (trailers_only(INVALID_ARGUMENT), 10_000),
        (pushed_back(UNAVAILABLE, "-1"), 9_000),
        (pushed_back(OK, "-1"), 10_000),
    ] {
        let throttle = Arc::new(Throttle::new(10, Ratio::percent(50)).unwrap());
        let retrier = Retrier::new(POLICY).shared_guard(throttle.clone());
        let wanted = response.clone();
        let layer = RetryLayer::new(retrier).idempotent_if(|_| true);
        assert_eq!(call_through(layer, move |_| response.clone()).await.1, 1);
        assert_eq!(throttle.snapshot().milli_tokens, want, "{wanted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_configured_codes_are_retried() {
    let codes = Codes::new(&[CANCELLED, ABORTED, RESOURCE_EXHAUSTED]);
    for (code, want) in [(CANCELLED, 2), (ABORTED, 2), (RESOURCE_EXHAUSTED, 2), (UNAVAILABLE, 1), (UNKNOWN, 1)] {
        let response = move |n| trailers_only(if n == 0 { code } else { OK });
        assert_eq!(call_through(layer(POLICY).grpc_retryable_codes(codes), response).await.1, want, "{code}");
    }
    assert_eq!(codes.outcome(RESOURCE_EXHAUSTED), Outcome::throttled(None));
    // Without configured codes: those that gRPC's own documentation calls transient.
    for (code, want) in [(CANCELLED, 1), (ABORTED, 2), (RESOURCE_EXHAUSTED, 2), (UNAVAILABLE, 2), (UNKNOWN, 1)] {
        let response = move |n| trailers_only(if n == 0 { code } else { OK });
        assert_eq!(call_through(layer(POLICY), response).await.1, want, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_idempotent_is_not_retried_and_the_event_says_why() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let retrier = Retrier::new(POLICY).on_event(move |event| log.lock().unwrap().push(event.action));
    let counts = RetryLayer::new(retrier).idempotent_if(|parts| parts.uri.path().ends_with("/Count"));
    assert_eq!(call_through(counts.clone(), |n| trailers_only(if n == 0 { UNAVAILABLE } else { OK })).await, (OK, 2));
    events.lock().unwrap().clear();
    let (server, seen) = server(|_| trailers_only(UNAVAILABLE));
    let mut order = call();
    *order.uri_mut() = "/shop.Stock/Order".parse().unwrap();
    counts.layer(server).oneshot(order).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(*events.lock().unwrap(), [Action::Stop(StopReason::UnsafeToRetry)]);
}

#[tokio::test(start_paused = true)]
async fn http_statuses_of_proxies_are_mapped_to_grpc_codes() {
    for (status, code, retried) in [
        (400, 13, false),
        (401, 16, false),
        (403, 7, false),
        (404, 12, false),
        (429, UNAVAILABLE, true),
        (500, UNKNOWN, false),
        (502, UNAVAILABLE, true),
        (503, UNAVAILABLE, true),
        (504, UNAVAILABLE, true),
    ] {
        let proxy = move |n| match n {
            0 => Response::builder().status(status).header("retry-after", "7").body(Full::default()).unwrap(),
            _ => trailers_only(OK),
        };
        let (server, seen) = server(proxy);
        layer(POLICY).layer(server).oneshot(call()).await.unwrap();
        let seen = times(&seen);
        assert_eq!(seen.len() == 2, retried, "{status}");
        assert!(!retried || seen[1] >= ms(7_000), "{status}: Retry-After is honored, too: {seen:?}");
        assert_eq!(grpc::code_from_http_status(http::StatusCode::from_u16(status).unwrap()), code);
        let codes = Codes::new(&[code]);
        let proxy_of = move |n| {
            if n == 0 { Response::builder().status(status).body(Full::default()).unwrap() } else { trailers_only(OK) }
        };
        assert_eq!(
            call_through(layer(POLICY).grpc_retryable_codes(codes), proxy_of).await,
            (OK, 2),
            "{status}: {codes}"
        );
    }
}
