//! What is sent, and what is held, seen from the other end of a socket.

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
fn ht_23_a_post_whose_connection_is_refused_is_sent_when_there_is_a_server() {
    on_threads(async {
        let port = Port::reserve().unwrap();
        // Nobody listens there, and nobody else is given the number.
        let address = port.address();
        let patient = Policy::constant(Duration::from_millis(50)).max_attempts(100).build().unwrap();
        let client = layer(Retrier::new(patient)).layer(hyper());
        let call = tokio::spawn(client.oneshot(request(Method::POST, address, "/", "pay")));
        sleep(Duration::from_millis(200)).await;
        assert!(!call.is_finished());
        let listener = TcpListener::bind(address).await.unwrap();
        let app = Router::new().route("/", any(|body: String| async move { body }));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let answer = call.await.unwrap().unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "pay");
    });
}

/// What a server of four connections has been asked.
#[derive(Default)]
struct Four {
    accepted: AtomicU32,
    failed: AtomicU32,
}

/// A server whose answers to `/busy` have these two parts, the second of which takes a moment, and which has four
/// connections: the fifth is accepted when one of them is closed.
async fn four_at_a_time(parts: [usize; 2]) -> (SocketAddr, Arc<Four>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, four, places) = (listener.local_addr().unwrap(), Arc::<Four>::default(), Arc::new(Semaphore::new(4)));
    let count = Arc::clone(&four);
    let busy = any(move || {
        count.failed.fetch_add(1, Ordering::Relaxed);
        let (mut sender, body) = Channel::<Bytes>::new(1);
        tokio::spawn(async move {
            for part in parts {
                // It may be that nobody reads it any more.
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
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            count.accepted.fetch_add(1, Ordering::Relaxed);
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                drop(place);
            });
        }
    });
    (address, four)
}

/// Long enough for a machine that has much else to do; whoever holds a connection through a backoff does it for an hour.
const SOON: Duration = Duration::from_secs(10);

/// How the calls are begun.
#[derive(Clone, Copy, PartialEq)]
enum Begun {
    Together,
    /// Each when the one before it has failed.
    InTurn,
}

/// Twenty calls that have failed and wait, and a twenty-first.
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
            timeout(SOON, have_failed(number)).await.expect("a call that waits has kept its connection");
            // For the answer's way back, and its second part's.
            sleep(Duration::from_millis(60)).await;
        }
    }
    timeout(SOON, have_failed(20)).await.expect("a call that waits has kept its connection");
    let last = timeout(SOON, client.oneshot(request(Method::GET, address, "/ok", ""))).await;
    assert_eq!(last.expect("there is a connection for it").unwrap().status(), StatusCode::OK);
    assert!(waiting.try_join_next().is_none(), "all of them wait");
}

/// What is too long to be read to its end is dropped, and its connection with it.
#[test]
fn twenty_calls_that_wait_leave_a_server_of_four_connections_free_for_the_twenty_first() {
    on_threads(async {
        // More than there is room for between the two.
        let (address, four) = four_at_a_time([16 << 20, 1]).await;
        twenty_wait_and_one_gets_through(address, &four, Begun::Together).await;
    });
}

/// What has its end near is read, and its connection serves again.
#[test]
fn a_failed_answer_is_read_to_its_end_and_its_connection_used_again() {
    on_threads(async {
        let (address, four) = four_at_a_time([6_000; 2]).await;
        twenty_wait_and_one_gets_through(address, &four, Begun::InTurn).await;
        // One, and some more where the machine was too busy to read an answer in time; 21 if each were dropped.
        let accepted = four.accepted.load(Ordering::Relaxed);
        assert!(accepted < 18, "{accepted} connections");
    });
}

/// A chain of three servers, each of which calls the next with a layer that retries.
#[test]
fn a_chain_of_servers_sends_three_attempts_and_not_twenty_seven() {
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
            let answer = retrying().layer(hyper()).oneshot(request(Method::GET, next, "/", "")).await.unwrap();
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(arrived.load(Ordering::Relaxed), want, "guarded: {guarded}");
        }
    });
}
