//! `AdmissionLayer`: which requests are admitted, and when the others come back.

use core::convert::Infallible;
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use stagger::admission::{Admission, Secret};
use stagger::{Policy, Retrier, policy};
use stagger_http::header::RESERVATION_TOKEN;
use stagger_http::hint::reservation;
use stagger_http::tower::{AdmissionLayer, ReplayBody, RetryLayer};
use tokio::time::sleep;
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

/// The example prints the figures that are asserted here.
#[path = "../../examples/herd.rs"]
#[allow(dead_code, reason = "an example has a main")]
mod herd;

use herd::{LIMIT, PER_SECOND, RejectionHint};

type Body = Full<Bytes>;

fn request() -> Request<Body> {
    Request::new(Body::default())
}

// 10,000 clients arrive at once at a server that handles 500 a second, through both layers.
#[tokio::test(start_paused = true)]
async fn a_herd_with_reservations_comes_back_at_the_rate_of_the_server() {
    let reserved = herd::run(RejectionHint::Reservation).await.unwrap();
    assert!(reserved.attempts <= 2.2, "{reserved:?}");
    let most = PER_SECOND as usize * 11 / 10;
    assert!(reserved.peak_admitted <= most && reserved.peak_retries <= most, "{reserved:?}");
    assert!(reserved.duration <= LIMIT * 6 / 5, "{reserved:?}");
}

// The same clients with less information: gaps in which the server is idle, and then many more attempts.
#[tokio::test(start_paused = true)]
async fn without_reservations_the_same_herd_needs_more_time_and_without_hints_more_attempts() {
    let hinted = herd::run(RejectionHint::RetryAfter).await.unwrap();
    let longest = LIMIT * 6 / 5;
    assert!(hinted.duration > longest, "{hinted:?}");
    // Whoever comes back without a token gets a time for which nobody came: at the rate of the server, hardly in vain.
    assert!(hinted.attempts <= 2.2 && hinted.peak_admitted <= PER_SECOND as usize * 11 / 10, "{hinted:?}");
    let alone = herd::run(RejectionHint::Nothing).await.unwrap();
    assert!(
        alone.attempts > 1.5 * hinted.attempts
            && alone.peak_retries > hinted.peak_retries
            && alone.duration > hinted.duration,
        "{alone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn permits_are_limited_and_released_however_a_request_ends() {
    let handler = service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let layer = AdmissionLayer::new(Admission::per_second(1000).build(Secret::new([1; 16])).unwrap()).max_concurrent(2);
    let server = layer.layer(handler);
    let first = tokio::spawn(server.clone().oneshot(request()));
    let second = tokio::spawn(server.clone().oneshot(request()));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(layer.in_flight(), 2);
    let rejected = server.clone().oneshot(request()).await.unwrap();
    assert_eq!((rejected.status().as_u16(), rejected.headers().contains_key("stagger-reservation")), (503, true));
    first.abort();
    second.await.unwrap().unwrap();
    assert_eq!(layer.in_flight(), 0);
    assert_eq!(server.oneshot(request()).await.unwrap().status(), 200);
}

// Other clients have reservations, too; a request without a token must not take theirs.
#[tokio::test(start_paused = true)]
async fn a_reservation_token_admits_at_the_reserved_time() {
    let admission = Admission::per_second(1).burst(1).build(Secret::new([1; 16])).unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let status_with = async |token: Option<&str>| {
        let mut request = request();
        request.headers_mut().extend(token.map(|token| (Some(RESERVATION_TOKEN), token.parse().unwrap())));
        server.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    assert_eq!(status_with(None).await, 200);
    let rejected = server.clone().oneshot(request()).await.unwrap();
    let token = reservation(rejected.headers()).unwrap().token.to_string();
    assert_eq!(status_with(None).await, 503, "it gets the next reservation");
    assert_eq!(status_with(Some(&token)).await, 503, "too early");
    sleep(Duration::from_secs(1)).await;
    assert_eq!([status_with(None).await, status_with(Some(&token)).await], [503, 200]);
}

// Even if the completed future is kept, as a combinator that joins several futures does.
#[tokio::test(start_paused = true)]
async fn a_permit_is_released_as_soon_as_the_response_is_ready() {
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let layer = AdmissionLayer::new(Admission::per_second(1000).build(Secret::new([1; 16])).unwrap()).max_concurrent(1);
    let mut server = layer.layer(handler);
    let mut call = pin!(server.call(request()));
    call.as_mut().await.unwrap();
    assert_eq!(layer.in_flight(), 0);
}

// Rounded up, so that no client is early, and never 0, which would bring all clients back at once.
#[tokio::test(start_paused = true)]
async fn retry_after_is_rounded_up_to_whole_seconds_and_at_least_one() {
    // Three reservations per second.
    let admission = Admission::per_second(3).burst(1).build(Secret::new([1; 16])).unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let mut delays = Vec::new();
    for _ in 0..6 {
        let response = server.clone().oneshot(request()).await.unwrap();
        delays.extend(response.headers().get("retry-after").map(|wait| wait.to_str().unwrap().to_owned()));
    }
    // 334, 667, 1001, 1334 and 1667 ms.
    assert_eq!(delays, ["1", "1", "2", "2", "2"]);

    let full = AdmissionLayer::new(Admission::per_second(3).build(Secret::new([1; 16])).unwrap()).max_concurrent(0);
    let at_once =
        full.layer(service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) }));
    let response = at_once.oneshot(request()).await.unwrap();
    assert!(response.headers()["stagger-reservation"].to_str().unwrap().starts_with("0;"));
    assert_eq!(response.headers()["retry-after"], "1");
}

// Beyond the maximum wait, the response carries no reservation, but a `Retry-After` for any client.
#[tokio::test(start_paused = true)]
async fn a_full_queue_rejects_without_a_reservation() {
    let admission =
        Admission::per_second(1).burst(1).max_wait(Duration::from_secs(2)).build(Secret::new([1; 16])).unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let mut responses = Vec::new();
    for _ in 0..5 {
        let response = server.clone().oneshot(request()).await.unwrap();
        let text =
            |name: &str| Some(response.headers().get(name)?.to_str().unwrap().split(';').next().unwrap().to_owned());
        responses.push((response.status().as_u16(), text("retry-after"), text("stagger-reservation")));
    }
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(responses[0], (200, None, None));
    assert_eq!(responses[1..3], [(503, some("1"), some("1000")), (503, some("2"), some("2000"))]);
    assert_eq!(responses[3..], [(503, some("2"), None), (503, some("2"), None)]);
    let response = server.oneshot(request()).await.unwrap();
    assert_eq!(response.headers()["retry-after-ms"], "2000");
}

const RETRY: Policy = policy!(exponential(ms(100), secs(1)).max_attempts(3));

/// Sends ten POSTs at once through a retrying client to `server`, and returns the statuses that their callers get.
async fn ten_posts<S>(server: S, content_type: &'static str) -> Vec<u16>
where
    S: tower::Service<Request<ReplayBody<Body>>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let client = RetryLayer::new(Retrier::new(RETRY)).layer(server);
    let posts: Vec<_> = (0..10)
        .map(|_| {
            let mut post = Request::new(Body::from("an order"));
            *post.method_mut() = Method::POST;
            post.headers_mut().insert("content-type", content_type.parse().unwrap());
            tokio::spawn(client.clone().oneshot(post))
        })
        .collect();
    let mut statuses = Vec::new();
    for post in posts {
        statuses.push(post.await.unwrap().unwrap().status().as_u16());
    }
    statuses
}

// The server has not read the request, and has reserved a time for it. gRPC sends everything by POST.
#[tokio::test(start_paused = true)]
async fn posts_that_admission_rejected_return_at_their_reserved_times() {
    for content_type in ["text/plain", "application/grpc"] {
        let admission = Admission::per_second(20).burst(1).build(Secret::new([1; 16])).unwrap();
        let handler =
            service_fn(|_: Request<ReplayBody<Body>>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
        let server = AdmissionLayer::new(admission).layer(handler);
        assert_eq!(ten_posts(server, content_type).await, [200; 10], "{content_type}");
    }
}

// A 429 or 503 of another server says nothing about how far the request got, and an error is not a rejection.
#[tokio::test(start_paused = true)]
async fn only_a_rejection_with_a_reservation_says_that_a_post_was_not_processed() {
    const RESERVED: &str = "10;token=0123456789abcdef0123456789abcdef";
    for (status, name, value) in [
        (503, "retry-after", "1"),
        (429, "retry-after", "1"),
        (429, "retry-after-ms", "10"),
        (503, "stagger-reservation", "soon"),
        (500, "stagger-reservation", RESERVED),
    ] {
        let arrived = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&arrived);
        let server = service_fn(move |_: Request<ReplayBody<Body>>| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move {
                let mut response = Response::new(Body::default());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response.headers_mut().insert(name, value.parse().unwrap());
                Ok::<_, Infallible>(response)
            }
        });
        assert_eq!(ten_posts(server, "text/plain").await, [status; 10]);
        assert_eq!(arrived.load(Ordering::Relaxed), 10, "{status} {name}: {value}");
    }
}

// A server written by hand may keep its clone of the service for as long as a connection is open.
#[tokio::test(start_paused = true)]
async fn a_rejection_releases_what_the_inner_service_reserved() {
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let admission = Admission::per_second(1).burst(1).build(Secret::new([1; 16])).unwrap();
    let mut server = AdmissionLayer::new(admission).layer(ConcurrencyLimitLayer::new(1).layer(handler));
    let mut other = server.clone();
    assert_eq!(server.ready().await.unwrap().call(request()).await.unwrap().status(), 200);
    assert_eq!(server.ready().await.unwrap().call(request()).await.unwrap().status(), 503);
    let ready = tokio::time::timeout(Duration::from_secs(1), other.ready()).await;
    assert!(ready.is_ok(), "the only permit is kept by a clone that has nothing to do");
}
