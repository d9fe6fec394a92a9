//! A guard of an application, once for each target: at most so many attempts in flight, and the others wait.

use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use stagger::Retrier;
use stagger_http::tower::RetryLayer;
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY, ms};

#[path = "../../../../dev/examples/bulkhead.rs"]
mod example;

pub(super) use example::Bulkhead;

const PATIENT: Duration = Duration::from_secs(60);

/// In which second each request arrived, and its URI without the scheme.
type Arrivals = Arc<Mutex<Vec<(u64, String)>>>;

/// Takes a second for each request. Rejects the first one to each path that says so.
async fn respond(start: Instant, arrivals: Arrivals, uri: String) -> u16 {
    let uri = uri.replace("http://", "");
    let is_first = {
        let mut arrivals = arrivals.lock().unwrap();
        arrivals.push((start.elapsed().as_secs(), uri.clone()));
        arrivals.iter().filter(|(_, other)| *other == uri).count() == 1
    };
    sleep(Duration::from_secs(1)).await;
    if is_first && uri.contains("busy") { 503 } else { 200 }
}

/// Makes these calls, one a millisecond. Returns what arrived.
async fn arrivals<F: Future<Output = u16> + Send + 'static>(
    uris: &[&'static str],
    call: impl Fn(Arrivals, &'static str) -> F,
) -> Vec<(u64, String)> {
    let arrivals = Arrivals::default();
    let mut calls = Vec::new();
    for uri in uris {
        calls.push(tokio::spawn(call(Arc::clone(&arrivals), uri)));
        sleep(ms(1)).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    let arrivals = arrivals.lock().unwrap();
    arrivals.clone()
}

/// What arrives if two attempts may be in flight to each origin.
async fn check<F: Future<Output = u16> + Send + 'static>(call: impl Fn(Arrivals, &'static str) -> F) {
    let uris = [
        "http://a.test/busy",
        "http://a.test/2",
        "http://a.test/3",
        "http://a.test/4",
        "http://b.test/5",
        "http://a.test/6",
    ];
    // The retry of the first call stands in line behind those that came before it.
    let want = [
        (0, "a.test/busy"),
        (0, "a.test/2"),
        (0, "b.test/5"),
        (1, "a.test/3"),
        (1, "a.test/4"),
        (2, "a.test/6"),
        (2, "a.test/busy"),
    ];
    assert_eq!(arrivals(&uris, call).await, want.map(|(at, uri)| (at, uri.to_owned())));
}

/// Once as plain HTTP, and once as gRPC.
#[tokio::test(start_paused = true)]
async fn attempts_of_the_layer_wait_in_order_for_those_in_flight_to_their_origin() {
    for is_grpc in [false, true] {
        let start = Instant::now();
        let layer = RetryLayer::new(Retrier::new(POLICY).guard(Bulkhead::new(2, PATIENT))).idempotent_if(|_| true);
        check(|arrivals, uri| {
            let server = service_fn(move |request: LayerRequest| {
                let code = respond(start, Arc::clone(&arrivals), request.uri().to_string());
                async move {
                    let response = match (code.await, is_grpc) {
                        (code, false) => Response::builder().status(code),
                        (code, true) => Response::builder()
                            .header("content-type", "application/grpc")
                            .header("grpc-status", if code == 200 { "0" } else { "14" }),
                    };
                    Ok::<_, io::Error>(response.body(Full::<Bytes>::default()).unwrap())
                }
            });
            let request =
                if is_grpc { Request::post(uri).header("content-type", "application/grpc") } else { Request::get(uri) };
            let call = layer.layer(server).oneshot(request.body(Full::<Bytes>::default()).unwrap());
            async move { call.await.unwrap().status().as_u16() }
        })
        .await;
    }
}

/// The attempt that is dropped makes room, as does the call that is dropped in line.
#[tokio::test(start_paused = true)]
async fn calls_that_are_dropped_hold_up_nobody() {
    let (start, arrivals) = (Instant::now(), Arrivals::default());
    let log = Arc::clone(&arrivals);
    let server = service_fn(move |request: LayerRequest| {
        let code = respond(start, Arc::clone(&log), request.uri().to_string());
        async move {
            let response = Response::builder().status(code.await);
            Ok::<_, io::Error>(response.body(Full::<Bytes>::default()).unwrap())
        }
    });
    let bulkhead = Arc::new(Bulkhead::new(1, PATIENT));
    let client = RetryLayer::new(Retrier::new(POLICY).shared_guard(Arc::clone(&bulkhead) as _)).layer(server);
    let call = |uri: &str| client.clone().oneshot(Request::get(uri).body(Full::<Bytes>::default()).unwrap());
    let first = tokio::spawn(call("http://a.test/1"));
    sleep(ms(1)).await;
    let second = tokio::spawn(call("http://a.test/2"));
    sleep(ms(1)).await;
    let third = tokio::spawn(call("http://a.test/3"));
    sleep(ms(1)).await;
    second.abort();
    first.abort();
    assert_eq!(third.await.unwrap().unwrap().status(), 200);
    assert!(start.elapsed() < ms(1_100), "{:?}", start.elapsed());
    assert_eq!(bulkhead.in_flight(), 0);
    let arrivals = arrivals.lock().unwrap();
    assert_eq!(*arrivals, [(0, "a.test/1".to_owned()), (0, "a.test/3".to_owned())]);
}

#[cfg(feature = "reqwest-middleware")]
mod reqwest {
    use http::Extensions;
    use reqwest_middleware::{ClientBuilder, Middleware, Next};
    use stagger_http::reqwest::RetryMiddleware;

    use super::*;

    /// The server, as the innermost middleware.
    struct Server(Instant, Arrivals);

    #[async_trait::async_trait]
    impl Middleware for Server {
        async fn handle(
            &self,
            request: ::reqwest::Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> reqwest_middleware::Result<::reqwest::Response> {
            let code = respond(self.0, Arc::clone(&self.1), request.url().to_string()).await;
            Ok(Response::builder().status(code).body("").unwrap().into())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_of_the_middleware_wait_in_order_for_those_in_flight_to_their_origin() {
        let start = Instant::now();
        let retries = Arc::new(RetryMiddleware::new(Retrier::new(POLICY).guard(Bulkhead::new(2, PATIENT))));
        check(|arrivals, uri| {
            let client = ClientBuilder::new(::reqwest::Client::new()).with_arc(Arc::clone(&retries) as _);
            let call = client.with(Server(start, arrivals)).build().get(uri).send();
            async move { call.await.unwrap().status().as_u16() }
        })
        .await;
    }
}
