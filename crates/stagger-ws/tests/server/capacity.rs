//! The connection limit: a slot is taken while a connection lasts, and released however it ends. And the backlog of the
//! listener, where connections wait for theirs.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use stagger_ws::server::{Accepted, Sockets, listen};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::support::{connect, dial, echo, eventually, on_loopback, unlimited};

/// Ends the TCP connection with a reset.
fn vanish(client: WebSocketStream<TcpStream>) {
    let stream = client.into_inner();
    stream.set_zero_linger().unwrap();
}

/// Starts a server. Returns the maximum number of concurrent handlers, counted by the handler itself.
fn serve(sockets: &Sockets) -> (core::net::SocketAddr, Arc<AtomicUsize>, JoinSet<()>) {
    let (listener, address) = on_loopback();
    let (server, most) = (sockets.clone(), Arc::new(AtomicUsize::new(0)));
    let (inside, seen) = (AtomicUsize::new(0), Arc::clone(&most));
    let inside = Arc::new(inside);
    let handler = move |accepted: Accepted<TcpStream>| {
        let (inside, seen) = (Arc::clone(&inside), Arc::clone(&seen));
        async move {
            seen.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            echo(accepted).await;
            inside.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { server.serve(listener, handler).await });
    (address, most, tasks)
}

#[tokio::test]
async fn the_limit_holds_while_clients_vanish_without_a_close() {
    let sockets = unlimited().max_connections(20).build().unwrap();
    let (address, most, _tasks) = serve(&sockets);
    for _ in 0..10 {
        let mut clients = JoinSet::new();
        for _ in 0..40 {
            clients.spawn(dial(address));
        }
        let opened: Vec<_> = clients.join_all().await.into_iter().filter_map(Result::ok).collect();
        assert!(opened.len() <= 20, "{} connections", opened.len());
        opened.into_iter().for_each(vanish);
    }
    eventually("all connections ended", || sockets.active() == 0).await;
    let seen = sockets.snapshot();
    assert!(most.load(Ordering::SeqCst) <= 20);
    assert_eq!(seen.accepted + seen.rejected.at_capacity, 400);
    assert!(seen.accepted >= 20 && seen.rejected.at_capacity >= 200, "{seen:?}");
    assert_eq!(seen.closed.into_iter().collect::<Vec<_>>(), [("1006", seen.accepted)]);
}

// Each way for a client to end its connection, and the code that is counted.
#[tokio::test]
async fn a_slot_is_released_however_the_client_disconnects() {
    let leave = |n| async move {
        let mut client = dial(n).await.unwrap();
        client.send("here".into()).await.unwrap();
        client.next().await.unwrap().unwrap();
        client
    };
    let sockets = unlimited().max_connections(1).build().unwrap();
    let (address, _, _tasks) = serve(&sockets);
    let mut counted = Vec::new();
    for way in 0..5 {
        let mut client = leave(address).await;
        assert_eq!(sockets.active(), 1);
        match way {
            0 => vanish(client),
            1 => drop(client),
            2 => client.close(None).await.unwrap(),
            3 => client.close(Some(CloseFrame { code: 1000.into(), reason: "".into() })).await.unwrap(),
            _ => client.close(Some(CloseFrame { code: 4321.into(), reason: "".into() })).await.unwrap(),
        }
        eventually("the slot is released", || sockets.active() == 0).await;
        counted.push(sockets.snapshot().closed);
    }
    let last = counted.pop().unwrap();
    assert_eq!(last.into_iter().collect::<Vec<_>>(), [("1000", 1), ("1005", 1), ("1006", 2), ("4xxx", 1)]);
}

#[tokio::test]
async fn a_panicking_handler_releases_its_slot_and_ends_no_other_connection() {
    let sockets = unlimited().build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    let handler = |Accepted { mut socket, .. }: Accepted<TcpStream>| async move {
        while let Some(Ok(message)) = socket.next().await {
            assert_ne!(message, Message::text("panic"), "the requested panic");
            socket.send(message).await.unwrap();
        }
    };
    let _served = tokio::spawn(async move { server.serve(listener, handler).await });
    let (mut bystander, mut victim) = (dial(address).await.unwrap(), dial(address).await.unwrap());
    eventually("both clients connected", || sockets.active() == 2).await;
    victim.send("panic".into()).await.unwrap();
    eventually("one connection ended", || sockets.active() == 1).await;
    bystander.send("still here?".into()).await.unwrap();
    assert_eq!(bystander.next().await.unwrap().unwrap(), Message::text("still here?"));
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_released_when_the_task_is_aborted_or_the_handler_returns() {
    let sockets = unlimited().max_connections(1).build().unwrap();
    let (accepted, _client) = connect(&sockets).await;
    let task = tokio::spawn(echo(accepted));
    tokio::task::yield_now().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(sockets.active(), 0);
    let (accepted, _client) = connect(&sockets).await;
    drop(accepted);
    connect(&sockets).await;
}

#[tokio::test]
async fn dropping_serve_ends_every_connection() {
    let sockets = unlimited().build().unwrap();
    let (address, _, mut tasks) = serve(&sockets);
    let mut client = dial(address).await.unwrap();
    eventually("the client is connected", || sockets.active() == 1).await;
    tasks.shutdown().await;
    eventually("the connection ended", || sockets.active() == 0).await;
    assert!(client.next().await.unwrap().is_err());
}

// Linux queues one connection more than the backlog. It does not answer further ones, whose SYN is sent again after a
// second.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn beyond_the_backlog_the_kernel_does_not_answer() {
    let listener = listen(([127, 0, 0, 1], 0).into(), 3).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(timeout(Duration::from_millis(300), TcpStream::connect(address)).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_an_error_and_can_be_reused_after_the_close() {
    let listener = listen(([127, 0, 0, 1], 0).into(), 16).unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(listen(address, 16).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let client = TcpStream::connect(address).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    // The side that closes first keeps the address in TIME_WAIT.
    drop((accepted, listener, client));
    listen(address, 16).unwrap();
    listen("[::1]:0".parse().unwrap(), 16).unwrap();
}
