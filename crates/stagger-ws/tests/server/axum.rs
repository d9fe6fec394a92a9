//! The server with axum, over sockets.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRef, State};
use axum::response::Response;
use axum::routing::any;
use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::{Admission, Secret};
use stagger_http::hint::reservation;
use stagger_ws::ReconnectAdvice;
use stagger_ws::server::{ConnectionPermit, Drain, Keepalive, Sockets};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::support::{SECOND, dial, eventually, on_loopback, rejection_headers, request_upgrade, unlimited};

/// An application with its own state, which contains the sockets.
#[derive(Clone)]
struct App {
    sockets: Sockets,
    upgrades: Arc<AtomicUsize>,
}

impl FromRef<App> for Sockets {
    fn from_ref(app: &App) -> Self {
        app.sockets.clone()
    }
}

async fn echo(ws: WebSocketUpgrade, permit: ConnectionPermit, State(App { upgrades, .. }): State<App>) -> Response {
    upgrades.fetch_add(1, Ordering::Relaxed);
    ws.on_upgrade(async move |socket| {
        let mut socket = permit.wrap(socket);
        while let Some(Ok(message)) = socket.next().await {
            if socket.send(message).await.is_err() {
                break;
            }
        }
    })
}

fn serve(sockets: &Sockets) -> (SocketAddr, Arc<AtomicUsize>, oneshot::Sender<()>, JoinHandle<()>) {
    let (listener, address) = on_loopback();
    let (stop, stopped) = oneshot::channel();
    let (sockets, upgrades) = (sockets.clone(), Arc::<AtomicUsize>::default());
    let state = App { sockets: sockets.clone(), upgrades: Arc::clone(&upgrades) };
    let app = Router::new().route("/feed", any(echo)).with_state(state);
    let drained = async move {
        let _ = stopped.await;
        sockets.drain(Drain::per_second(100)).done().await;
    };
    let served = async move { axum::serve(listener, app).with_graceful_shutdown(drained).await.unwrap() };
    (address, upgrades, stop, tokio::spawn(served))
}

#[tokio::test]
async fn a_rejected_client_gets_a_response_and_the_handler_is_not_called() {
    let admission = Admission::per_second(2).burst(1).build(Secret::new([1; 16])).unwrap();
    let sockets = Sockets::builder(admission).build().unwrap();
    let (address, upgrades, _stop, _server) = serve(&sockets);
    let _first = dial(address).await.unwrap();
    let reservation = reservation(&rejection_headers(dial(address).await.unwrap_err())).unwrap();
    assert!(reservation.after <= SECOND / 2 && reservation.after > Duration::ZERO, "{reservation:?}");
    assert_eq!(upgrades.load(Ordering::Relaxed), 1);
    tokio::time::sleep(reservation.after).await;
    let token = reservation.token.to_string();
    request_upgrade(TcpStream::connect(address).await.unwrap(), Some(&token)).await.unwrap();
    assert_eq!(sockets.snapshot().rejected.rate_limited, 1);
}

// The arguments of a handler are extracted in order.
#[tokio::test]
async fn a_request_without_upgrade_takes_no_slot() {
    let sockets = unlimited().max_connections(1).build().unwrap();
    let (address, _, _stop, _server) = serve(&sockets);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /feed HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(sockets.snapshot().accepted, 0);
}

#[tokio::test]
async fn a_drain_closes_with_advice_and_then_the_server_stops() {
    let sockets = unlimited().max_connections(30).build().unwrap();
    let (address, _, stop, server) = serve(&sockets);
    let mut clients = Vec::new();
    for _ in 0..30 {
        clients.push(dial(address).await.unwrap());
    }
    assert_eq!(rejection_headers(dial(address).await.unwrap_err())["retry-after"], "10");
    let first = &mut clients[0];
    first.send("echo".into()).await.unwrap();
    assert_eq!(first.next().await.unwrap().unwrap(), Message::text("echo"));
    eventually("all clients connected", || sockets.active() == 30).await;
    stop.send(()).unwrap();
    for mut client in clients {
        let Some(Ok(Message::Close(Some(frame)))) = client.next().await else { panic!("no close") };
        let advice = ReconnectAdvice::from_reason(&frame.reason).unwrap();
        assert_eq!((u16::from(frame.code), advice.spread), (1012, SECOND / 10));
        assert!(client.next().await.is_none());
    }
    server.await.unwrap();
    let seen = sockets.snapshot();
    assert_eq!((seen.active, seen.drained_in_time, seen.closed["1012"]), (0, 30, 30));
}

#[tokio::test]
async fn a_close_is_counted_by_its_code() {
    let sockets = unlimited().build().unwrap();
    let (address, _, _stop, _server) = serve(&sockets);
    for frame in [Some(CloseFrame { code: 4321.into(), reason: "".into() }), None] {
        dial(address).await.unwrap().close(frame).await.unwrap();
    }
    eventually("both connections ended", || sockets.active() == 0 && sockets.snapshot().accepted == 2).await;
    assert_eq!(sockets.snapshot().closed.into_iter().collect::<Vec<_>>(), [("1005", 1), ("4xxx", 1)]);
}

#[tokio::test]
async fn a_dead_peer_is_reaped() {
    let keepalive = Keepalive { interval: SECOND / 10, timeout: SECOND / 20 };
    let sockets = unlimited().keepalive(keepalive).build().unwrap();
    let (address, _, _stop, _server) = serve(&sockets);
    // The client does not read, so it does not reply to pings.
    let _client = dial(address).await.unwrap();
    eventually("the peer is reaped", || sockets.snapshot().reaped == 1).await;
    assert_eq!(sockets.active(), 0);
}

// The client is gone before the response, so no WebSocket is created, and the application is not notified.
#[tokio::test]
async fn an_incomplete_upgrade_releases_its_slot() {
    let sockets = unlimited().max_connections(1).build().unwrap();
    let (address, _, _stop, _server) = serve(&sockets);
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = "GET /feed HTTP/1.1\r\nHost: it\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.set_zero_linger().unwrap();
        drop(stream);
        eventually("the slot is released", || sockets.active() == 0).await;
    }
    dial(address).await.unwrap();
}
