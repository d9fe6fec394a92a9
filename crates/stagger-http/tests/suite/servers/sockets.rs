//! Requests and connections, observed from the server's end of the sockets.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use http_body_util::channel::Channel;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::CallerContextLayer;
use stagger_kit::Port;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::{Layer as _, ServiceExt as _};

use super::{hyper, layer, on_threads, request, serve};

const QUICK: Policy = policy!(exponential(ms(20), ms(100)).max_attempts(4));

#[test]
fn ht_23_a_post_that_was_sent_is_not_sent_again() {
    on_threads(async {
        let arrived = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&arrived);
        let busy = any(move || {
            count.fetch_add(1, Ordering::Relaxed);
            async { StatusCode::SERVICE_UNAVAILABLE }
        });
        let address = serve(Router::new().route("/", busy)).await;
        let client = layer(Retrier::new(QUICK)).layer(hyper());
        let posted = client.clone().oneshot(request(Method::POST, address, "/", "pay")).await.unwrap();
        assert_eq!((posted.status().as_u16(), arrived.swap(0, Ordering::Relaxed)), (503, 1));
        let put = client.oneshot(request(Method::PUT, address, "/", "pay")).await.unwrap();
        assert_eq!((put.status().as_u16(), arrived.load(Ordering::Relaxed)), (503, 4));
    });
}

#[test]
fn ht_23_a_post_whose_connection_is_refused_is_sent_once_a_server_listens() {
    on_threads(async {
        let port = Port::reserve().unwrap();
        // No server listens on the port, and it is reserved for this test.
        let address = port.address();
        let patient = Policy::constant(Duration::from_millis(50)).max_attempts(100).build().unwrap();
        let client = layer(Retrier::new(patient)).layer(hyper());
        let call = tokio::spawn(client.oneshot(request(Method::POST, address, "/", "pay")));
        sleep(Duration::from_millis(200)).await;
        assert!(!call.is_finished());
        let listener = TcpListener::bind(address).await.unwrap();
        let app = Router::new().route("/", any(|body: String| async move { body }));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "pay");
    });
}

/// The counters of a server with four connections.
#[derive(Default)]
struct Four {
    accepted: AtomicU32,
    failed: AtomicU32,
}

/// Starts a server with four connections: the fifth is accepted once one of them has closed. Its responses to `/busy`
/// consist of parts of these sizes, the second of which follows after 5 ms.
async fn four_at_a_time(parts: [usize; 2]) -> (SocketAddr, Arc<Four>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, four, permits) =
        (listener.local_addr().unwrap(), Arc::<Four>::default(), Arc::new(Semaphore::new(4)));
    let count = Arc::clone(&four);
    let busy = any(move || {
        count.failed.fetch_add(1, Ordering::Relaxed);
        let (mut sender, body) = Channel::<Bytes>::new(1);
        tokio::spawn(async move {
            for part in parts {
                // Fails if the client no longer reads the body.
                let _ = sender.send_data(vec![b'x'; part].into()).await;
                sleep(Duration::from_millis(5)).await;
            }
        });
        async { (StatusCode::SERVICE_UNAVAILABLE, axum::body::Body::new(body)) }
    });
    let app = Router::new().route("/ok", any(|| async { "ok" })).route("/busy", busy);
    let count = Arc::clone(&four);
    tokio::spawn(async move {
        loop {
            let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            count.accepted.fetch_add(1, Ordering::Relaxed);
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                drop(permit);
            });
        }
    });
    (address, four)
}

/// Long enough for a busy machine. A call that held its connection during backoff would hold it for an hour.
const SOON: Duration = Duration::from_secs(10);

/// How the calls are started.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    Together,
    /// Each after the previous one has failed.
    InTurn,
}

/// Checks that a twenty-first call succeeds while twenty failed calls are in backoff.
async fn twenty_wait_and_one_gets_through(address: SocketAddr, four: &Four, begun: Begun) {
    let slow = Policy::constant(Duration::from_secs(3600)).max_attempts(2).build().unwrap();
    let client = layer(Retrier::new(slow)).layer(hyper());
    let have_failed = async |many| {
        while four.failed.load(Ordering::Relaxed) < many {
            sleep(Duration::from_millis(2)).await;
        }
    };
    let mut waiting = JoinSet::new();
    for number in 1..=20 {
        waiting.spawn(client.clone().oneshot(request(Method::GET, address, "/busy", "")));
        if begun == Begun::InTurn {
            timeout(SOON, have_failed(number)).await.expect("a call in backoff has kept its connection");
            // Time for the two parts of the response to arrive.
            sleep(Duration::from_millis(60)).await;
        }
    }
    timeout(SOON, have_failed(20)).await.expect("a call in backoff has kept its connection");
    let last = timeout(SOON, client.oneshot(request(Method::GET, address, "/ok", ""))).await;
    assert_eq!(last.expect("a connection is available").unwrap().status(), StatusCode::OK);
    assert!(waiting.try_join_next().is_none(), "all calls are in backoff");
}

// A response that is too long to drain is dropped, and its connection with it.
#[test]
fn calls_in_backoff_hold_no_connection() {
    on_threads(async {
        // More than the buffers between client and server hold.
        let (address, four) = four_at_a_time([16 << 20, 1]).await;
        twenty_wait_and_one_gets_through(address, &four, Begun::Together).await;
    });
}

// A short response is drained, and its connection is reused.
#[test]
fn a_failed_response_is_drained_and_its_connection_reused() {
    on_threads(async {
        let (address, four) = four_at_a_time([6_000; 2]).await;
        twenty_wait_and_one_gets_through(address, &four, Begun::InTurn).await;
        // One, and some more if the machine was too busy to drain a response in time; 21 if each were dropped.
        let accepted = four.accepted.load(Ordering::Relaxed);
        assert!(accepted < 18, "{accepted} connections");
    });
}

// A chain of three servers, each of which calls the next through a retry layer.
#[test]
fn a_chain_of_servers_sends_three_attempts_not_27() {
    const THREE: Policy = policy!(exponential(ms(1), ms(5)).max_attempts(3));
    on_threads(async {
        for (guarded, want) in [(true, 3), (false, 27)] {
            let arrived = Arc::new(AtomicU32::new(0));
            let count = Arc::clone(&arrived);
            let last = any(move || {
                count.fetch_add(1, Ordering::Relaxed);
                async { StatusCode::SERVICE_UNAVAILABLE }
            });
            let mut next = serve(Router::new().route("/", last)).await;
            let retrying = || {
                let layer = layer(Retrier::new(THREE));
                if guarded { layer.attempt_header() } else { layer }
            };
            for _ in 0..2 {
                let client = retrying().layer(hyper());
                let handler = any(move || {
                    let call = client.clone().oneshot(request(Method::GET, next, "/", ""));
                    async move { call.await.unwrap().status() }
                });
                next = serve(Router::new().route("/", handler).layer(CallerContextLayer::new())).await;
            }
            let response = retrying().layer(hyper()).oneshot(request(Method::GET, next, "/", "")).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(arrived.load(Ordering::Relaxed), want, "guarded: {guarded}");
        }
    });
}
