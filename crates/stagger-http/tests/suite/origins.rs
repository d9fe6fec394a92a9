//! Budgets and breakers by origin: a host that is down does not stop the calls to another.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::{Retrier, Seed};
use stagger_http::tower::RetryLayer;
use tower::{ServiceBuilder, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY};

/// Allows two retries.
fn two_retries() -> Tokens {
    Tokens::builder().capacity(2).cost(1).build().unwrap()
}

/// Opens after two failures in a row.
fn breaker() -> CircuitBreaker {
    CircuitBreaker::builder(Seed::new(1)).consecutive(2).build().unwrap()
}

/// The requests that each origin has received.
type Seen = Arc<Mutex<Vec<String>>>;

/// Calls these URIs one after the other, of which those with "down" always fail and the others at the first attempt.
/// Returns the status of each call, 0 if it was rejected, and the number of requests that were sent for it.
async fn call(retrier: Retrier, uris: &[&'static str]) -> Vec<(u16, usize)> {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let server = service_fn(move |request: LayerRequest| {
        let uri = request.uri().to_string();
        let mut log = log.lock().unwrap();
        let is_first = !log.contains(&uri);
        let fails = is_first || uri.contains("down");
        log.push(uri);
        let status = if fails { 503 } else { 200 };
        let response = Response::builder().status(status).body(Full::<Bytes>::default()).unwrap();
        async move { Ok::<_, std::io::Error>(response) }
    });
    let client = ServiceBuilder::new().layer(RetryLayer::new(retrier)).service(server);
    let mut calls = Vec::new();
    for uri in uris {
        seen.lock().unwrap().clear();
        let request = Request::get(Uri::from_static(uri)).body(Full::<Bytes>::default()).unwrap();
        let response = client.clone().oneshot(request).await;
        let sent = seen.lock().unwrap().len();
        calls.push((response.map_or(0, |response| response.status().as_u16()), sent));
    }
    calls
}

const DOWN: &str = "http://down.example/";
const UP: &str = "http://up.example/";

#[tokio::test(start_paused = true)]
async fn the_budget_of_a_host_that_is_down_leaves_other_hosts_their_retries() {
    let calls = call(Retrier::new(POLICY).budget(two_retries()), &[DOWN, DOWN, UP]).await;
    assert_eq!(calls, [(503, 3), (503, 1), (200, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_host_that_is_down_admits_calls_to_other_hosts() {
    let calls = call(Retrier::new(POLICY).breaker(breaker()), &[DOWN, DOWN, UP]).await;
    assert_eq!(calls, [(503, 2), (0, 0), (200, 2)]);
}

#[tokio::test(start_paused = true)]
async fn another_port_or_scheme_is_another_origin_and_another_path_is_not() {
    let uris = [DOWN, "http://DOWN.example:80/path?query", "https://down.example/", "http://down.example:81/"];
    let calls = call(Retrier::new(POLICY).budget(two_retries()), &uris).await;
    assert_eq!(calls, [(503, 3), (503, 1), (503, 3), (503, 3)]);
}

#[tokio::test(start_paused = true)]
async fn shared_guards_serve_all_origins() {
    let budget = Retrier::new(POLICY).shared_guard(Arc::new(two_retries()));
    assert_eq!(call(budget, &[DOWN, UP]).await, [(503, 3), (503, 1)]);
    let breaker = Retrier::new(POLICY).shared_guard(Arc::new(breaker()));
    assert_eq!(call(breaker, &[DOWN, UP]).await, [(503, 2), (0, 0)]);
}

/// A user who makes up hosts does not reset a budget that is in use.
#[tokio::test(start_paused = true)]
async fn made_up_hosts_do_not_reset_the_budget_of_a_host_in_use() {
    let hosts: Vec<&'static str> = (0..1_100).map(|n| &*format!("http://made-up-{n}.example/").leak()).collect();
    let uris: Vec<_> = [DOWN].into_iter().chain(hosts).chain([DOWN]).collect();
    let calls = call(Retrier::new(POLICY).budget(two_retries()), &uris).await;
    assert_eq!((calls[0], calls[calls.len() - 1]), ((503, 3), (503, 1)));
}

#[cfg(feature = "reqwest-middleware")]
mod sockets {
    use axum::Router;
    use axum::http::StatusCode;
    use core::net::SocketAddr;
    use core::sync::atomic::{AtomicU32, Ordering};
    use reqwest::Client;
    use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
    use stagger_http::reqwest::RetryMiddleware;
    use tokio::net::TcpListener;

    use super::*;

    /// Serves 503 to the first `failures` requests, and then 200.
    async fn server(failures: u32) -> (SocketAddr, Arc<AtomicU32>) {
        let seen = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&seen);
        let app = Router::new().fallback(move || {
            let is_failure = count.fetch_add(1, Ordering::Relaxed) < failures;
            async move { if is_failure { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK } }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (address, seen)
    }

    async fn get(client: &ClientWithMiddleware, address: SocketAddr) -> u16 {
        client.get(format!("http://{address}/")).send().await.map_or(0, |response| response.status().as_u16())
    }

    /// Calls a server that is down twice, and then one that is not. Returns the statuses and how many requests arrived.
    async fn statuses(retrier: Retrier) -> ([u16; 3], [u32; 2]) {
        let ((down, arrived_down), (up, arrived_up)) = (server(u32::MAX).await, server(1).await);
        let client = ClientBuilder::new(Client::new()).with(RetryMiddleware::new(retrier)).build();
        let statuses = [get(&client, down).await, get(&client, down).await, get(&client, up).await];
        (statuses, [arrived_down, arrived_up].map(|arrived| arrived.load(Ordering::Relaxed)))
    }

    #[tokio::test(start_paused = true)]
    async fn on_sockets_a_server_that_is_down_leaves_another_its_retries_and_calls() {
        let retrier = Retrier::new(POLICY).budget(two_retries());
        assert_eq!(statuses(retrier).await, ([503, 503, 200], [4, 2]));
        let retrier = Retrier::new(POLICY).breaker(breaker());
        assert_eq!(statuses(retrier).await, ([503, 0, 200], [2, 2]));
        // As configured: one for all.
        let retrier = Retrier::new(POLICY).shared_guard(Arc::new(breaker()));
        assert_eq!(statuses(retrier).await, ([503, 0, 0], [2, 0]));
    }
}
