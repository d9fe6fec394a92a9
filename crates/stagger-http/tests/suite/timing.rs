//! Attempts that time out, services that are not ready, and open circuit breakers.

use core::convert::Infallible;
use core::future::{Ready, pending, ready};
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use http::Method;
use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::time::{Clock as _, Tokio};
use stagger::{LastAttempt, Rejected, Retrier, Seed};
use stagger_http::tower::{Error, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY, ServerResponse, ms, request, status};

// The retrier's own timeout drops the attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_times_out_is_dropped() {
    let hangs = service_fn(|_: LayerRequest| pending::<Result<ServerResponse, Infallible>>());
    let started = Instant::now();
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let error = layer.layer(hangs).oneshot(request(Method::GET, "")).await.unwrap_err();
    assert_eq!(error.to_string(), Rejected::TimedOut.to_string());
    assert_eq!(started.elapsed(), ms(4 * 10 + 3 * 100 + 4).min(started.elapsed()));
    assert!(started.elapsed() >= ms(340));
}

// A timeout makes time for a retry. If none is left, a late response is better than no response.
#[tokio::test(start_paused = true)]
async fn ht_31_the_last_attempt_may_take_longer_than_the_others() {
    let slow = service_fn(|_: LayerRequest| async {
        sleep(ms(500)).await;
        status(200)
    });
    let started = Instant::now();
    let retrier = Retrier::new(POLICY).timeout(ms(10)).last_attempt(LastAttempt::Untimed);
    let response = RetryLayer::new(retrier).layer(slow).oneshot(request(Method::GET, "")).await.unwrap();
    assert_eq!(response.status(), 200);
    let took = started.elapsed();
    assert!((ms(3 * 10 + 3 * 100 + 500)..=ms(3 * 10 + 3 * 100 + 500 + 8)).contains(&took), "{took:?}");
}

// Whether the server has processed it is unknown.
#[tokio::test(start_paused = true)]
async fn a_post_that_times_out_is_not_sent_again() {
    let sent = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sent);
    let hangs = service_fn(move |_: LayerRequest| {
        *count.lock().unwrap() += 1;
        pending::<Result<ServerResponse, Infallible>>()
    });
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let error = layer.layer(hangs).oneshot(request(Method::POST, "pay")).await.unwrap_err();
    assert_eq!((error, *sent.lock().unwrap()), (Error::Rejected(Rejected::TimedOut), 1));
}

/// A service with scripted results of `poll_ready` and scripted responses.
#[derive(Clone)]
struct Script {
    readiness: Arc<Mutex<VecDeque<Poll<io::Result<()>>>>>,
    responses: Arc<Mutex<VecDeque<io::Result<ServerResponse>>>>,
}

fn script<const R: usize, const A: usize>(
    readiness: [Poll<io::Result<()>>; R],
    responses: [io::Result<ServerResponse>; A],
) -> Script {
    let (readiness, responses) = (VecDeque::from(readiness), VecDeque::from(responses));
    Script { readiness: Arc::new(Mutex::new(readiness)), responses: Arc::new(Mutex::new(responses)) }
}

impl Service<LayerRequest> for Script {
    type Response = ServerResponse;
    type Error = io::Error;
    type Future = Ready<io::Result<ServerResponse>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.readiness.lock().unwrap().pop_front().unwrap()
    }

    fn call(&mut self, _: LayerRequest) -> Self::Future {
        ready(self.responses.lock().unwrap().pop_front().unwrap())
    }
}

fn refused() -> io::Result<ServerResponse> {
    Err(io::ErrorKind::ConnectionRefused.into())
}

const READY: Poll<io::Result<()>> = Poll::Ready(Ok(()));

// Nothing was sent, so even a payment is safe to retry.
#[tokio::test(start_paused = true)]
async fn a_request_to_a_service_that_is_not_ready_in_time_is_retried() {
    // It is polled when the attempt begins and when the attempt times out.
    let service = script([READY, Poll::Pending, Poll::Pending, READY], [refused(), status(200)]);
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let started = Instant::now();
    assert_eq!(layer.layer(service).oneshot(request(Method::POST, "pay")).await.unwrap().status(), 200);
    // Two delays, and the timeout of the attempt between them. Local exhaustion has a base that is ten times as long.
    assert!((1110..1120).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_in_poll_ready_ends_the_call_with_its_error() {
    let service = script([READY, Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))], [status(503)]);
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(2).build().unwrap());
    let layer = RetryLayer::new(Retrier::new(POLICY).shared_guard(breaker.clone()));
    let error = layer.layer(service).oneshot(request(Method::GET, "")).await.unwrap_err();
    assert_eq!(error.into_service_error().unwrap().kind(), io::ErrorKind::BrokenPipe);
    // The server has not failed twice: it has never received the second attempt.
    assert_eq!(breaker.state(), BreakerState::Closed);
}

// If the last attempt ended with an error, it is returned. A response has already been drained, so the rejection is
// returned in its place.
#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_during_backoff_returns_the_last_error() {
    for (first, want) in [(refused(), Some(io::ErrorKind::ConnectionRefused)), (status(503), None)] {
        let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(2).build().unwrap());
        let layer = RetryLayer::new(Retrier::new(POLICY).shared_guard(breaker.clone()));
        let call = tokio::spawn(layer.layer(script([READY], [first])).oneshot(request(Method::GET, "")));
        sleep(ms(50)).await;
        breaker.force_open(&Tokio.now());
        let error = call.await.unwrap().unwrap_err();
        assert!(
            want.is_some() || matches!(error, Error::Rejected(Rejected::ByGuard { guard: "breaker", .. })),
            "{error:?}"
        );
        assert_eq!(error.into_service_error().map(|error| error.kind()), want);
    }
}
