//! Draining.

use core::time::Duration;
use std::collections::BTreeMap;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use stagger_http::hint::server_hint;
use stagger_ws::ReconnectAdvice;
use stagger_ws::server::{Accepted, Drain, Sockets};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{
    Client, SECOND, connect, connect_through, dial, echo, eventually, on_loopback, request_rejected, unlimited,
};

/// When a client was closed, and the advice that it received.
type Drained = (Duration, ReconnectAdvice);

/// Reads until the close, checks its advice, and replies to it.
async fn read_until_close(mut client: Client, start: Instant) -> Drained {
    let mut closed = None;
    while let Some(message) = client.next().await {
        if let Ok(Message::Close(frame)) = message {
            let frame = frame.expect("a reason");
            assert_eq!(u16::from(frame.code), 1012);
            assert!(frame.reason.len() <= 123, "{}", frame.reason);
            closed = Some((start.elapsed(), ReconnectAdvice::from_reason(&frame.reason).expect("reconnect advice")));
        }
    }
    closed.expect("a close frame")
}

/// Opens connections with an echoing application and a client each.
async fn connect_many(sockets: &Sockets, size: usize) -> JoinSet<Drained> {
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..size {
        let (accepted, client) = connect(sockets).await;
        tokio::spawn(echo(accepted));
        clients.spawn(read_until_close(client, start));
    }
    clients
}

/// Returns how many clients were closed at each time.
fn batches(left: &[Drained]) -> Vec<(Duration, usize)> {
    let mut batches = BTreeMap::new();
    left.iter().for_each(|(when, _)| *batches.entry(*when).or_default() += 1);
    batches.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn connections_are_closed_in_batches() {
    let sockets = unlimited().build().unwrap();
    let clients = connect_many(&sockets, 500).await;
    let draining = sockets.drain(Drain::batches(50, SECOND));
    sleep(SECOND * 5 / 2).await;
    let progress = draining.progress();
    assert_eq!((progress.total, progress.notified, progress.remaining, progress.done), (500, 150, 350, false));
    let left = clients.join_all().await;
    let want: Vec<_> = (0..10).map(|n| (SECOND * n, 50)).collect();
    assert_eq!(batches(&left), want);
    // The next server receives 50 per second, so no client has to wait.
    assert!(left.iter().all(|&(_, advice)| advice == ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND }));
    let progress = draining.done().await;
    assert_eq!((progress.notified, progress.remaining, progress.done), (500, 0, true));
    let seen = sockets.snapshot();
    assert_eq!((seen.drained_in_time, seen.drained_timed_out, seen.active, seen.closed["1012"]), (500, 0, 0, 500));
}

#[tokio::test(start_paused = true)]
async fn batches_are_not_made_up_for_after_a_stall() {
    let sockets = unlimited().build().unwrap();
    let _clients = connect_many(&sockets, 10).await;
    let draining = sockets.drain(Drain::batches(1, SECOND));
    sleep(SECOND / 2).await;
    assert_eq!(draining.progress().notified, 1);
    // Nothing runs for five seconds.
    tokio::time::advance(SECOND * 5).await;
    sleep(SECOND / 4).await;
    assert_eq!(draining.progress().notified, 2);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_never_polled_counts_as_drained_in_time() {
    let sockets = unlimited().build().unwrap();
    let permit = sockets.admit(&http::HeaderMap::new()).unwrap();
    sockets.drain(Drain::batches(1, SECOND));
    sleep(SECOND / 2).await;
    drop(permit);
    assert_eq!((sockets.snapshot().drained_in_time, sockets.active()), (1, 0));
}

// Whenever the clients are closed, the next server receives them at its rate.
#[tokio::test(start_paused = true)]
async fn close_remaining_spreads_the_remaining_clients_at_the_reconnect_rate() {
    let sockets = unlimited().build().unwrap();
    let clients = connect_many(&sockets, 500).await;
    let draining = sockets.drain(Drain::batches(50, SECOND).reconnect_rate(100));
    sleep(SECOND * 5 / 2).await;
    draining.close_remaining();
    assert!(draining.done().await.done);
    let left = clients.join_all().await;
    let hurried = SECOND * 5 / 2;
    assert_eq!(batches(&left), [(Duration::ZERO, 50), (SECOND, 50), (SECOND * 2, 50), (hurried, 350)]);
    let last = left.iter().find(|(when, _)| *when == hurried).unwrap().1;
    // The clients closed before have reconnected by then, and 350 take 3.5 s.
    assert_eq!(last, ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND * 7 / 2 });
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_rejects_upgrades_with_increasing_waits() {
    let sockets = unlimited().build().unwrap();
    let _clients = connect_many(&sockets, 10).await;
    sockets.drain(Drain::batches(10, SECOND).restart_downtime(30 * SECOND));
    tokio::task::yield_now().await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        let headers = request_rejected(&sockets).await;
        waits.push(server_hint(&headers, || unreachable!()).unwrap());
        assert!(headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 30);
    }
    let floor = |millis| stagger::ServerHint::AtLeast(Duration::from_millis(millis));
    // Ten clients reconnect within the second after the 30 s, and the schedule continues after them.
    assert_eq!(waits, [floor(31_000), floor(31_100), floor(31_200)]);
    assert_eq!(sockets.snapshot().rejected.draining, 3);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_reply_to_the_close_is_dropped_and_delays_no_other() {
    let sockets = unlimited().close_timeout(3 * SECOND).build().unwrap();
    // This client keeps its end of the pipe open and sends nothing.
    let (Accepted { mut socket, .. }, _silent) = connect(&sockets).await;
    let application = tokio::spawn(async move { socket.next().await.is_none() });
    let clients = connect_many(&sockets, 2).await;
    let start = Instant::now();
    let progress = sockets.drain(Drain::batches(1, SECOND)).done().await;
    assert_eq!((progress.remaining, start.elapsed()), (0, 3 * SECOND));
    assert!(application.await.unwrap(), "the stream must end without an error");
    let left = clients.join_all().await;
    assert_eq!(batches(&left), [(SECOND, 1), (2 * SECOND, 1)]);
    assert_eq!((sockets.snapshot().drained_in_time, sockets.snapshot().drained_timed_out), (2, 1));
}

// The task waits forever for something else.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_even_if_an_application_does_not_poll() {
    let sockets = unlimited().close_timeout(3 * SECOND).build().unwrap();
    let (_accepted, _client) = connect(&sockets).await;
    let start = Instant::now();
    let progress = sockets.drain(Drain::per_second(10)).done().await;
    assert_eq!((progress.notified, progress.remaining, start.elapsed()), (1, 1, 4 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn messages_sent_before_the_close_reply_are_still_read() {
    let sockets = unlimited().build().unwrap();
    let (Accepted { mut socket, .. }, mut client) = connect(&sockets).await;
    sockets.drain(Drain::per_second(1));
    // The close and these messages cross on the wire.
    assert!(timeout(SECOND, socket.next()).await.is_err());
    for n in 0..3 {
        client.send(Message::text(n.to_string())).await.unwrap();
    }
    for n in 0..3 {
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(n.to_string()));
    }
    assert!(socket.send("too late".into()).await.is_err());
    assert!(client.next().await.unwrap().unwrap().is_close());
    // The client replies, and waits for the server to end the connection.
    let client = tokio::spawn(async move { client.next().await.is_none() });
    assert!(socket.next().await.unwrap().unwrap().is_close());
    assert!(socket.next().await.is_none());
    drop(socket);
    assert!(client.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_only_sends_is_closed_at_its_next_message_with_advice() {
    let sockets = unlimited().build().unwrap();
    let (Accepted { mut socket, .. }, client) = connect(&sockets).await;
    let application = tokio::spawn(async move {
        while socket.send("tick".into()).await.is_ok() {
            sleep(SECOND).await;
        }
    });
    let start = Instant::now();
    let client = tokio::spawn(read_until_close(client, start));
    sleep(SECOND / 2).await;
    sockets.drain(Drain::per_second(1));
    assert_eq!(client.await.unwrap().0, SECOND);
    application.await.unwrap();
    assert_eq!(sockets.snapshot().closed["1012"], 1);
}

// Both halves wait for room on the same pipe, but the library remembers only one waker.
#[tokio::test(start_paused = true)]
async fn the_halves_of_a_split_socket_wake_each_other() {
    let sockets = unlimited().keepalive(None).close_timeout(60 * SECOND).build().unwrap();
    let (Accepted { socket, .. }, mut client) = connect_through(&sockets, 64).await;
    let (mut send, mut receive) = socket.split();
    // More than the pipe has room for.
    let writer = tokio::spawn(async move { send.send(Message::text("x".repeat(1_000))).await });
    sleep(SECOND).await;
    let reader = tokio::spawn(async move { while let Some(Ok(_)) = receive.next().await {} });
    sleep(SECOND).await;
    sockets.drain(Drain::per_second(1));
    sleep(SECOND).await;
    assert_eq!(client.next().await.unwrap().unwrap().len(), 1_000);
    let close = timeout(SECOND, client.next()).await.expect("the reader makes progress").unwrap().unwrap();
    assert!(close.is_close());
    assert!(timeout(SECOND, client.next()).await.expect("the end").is_none());
    timeout(SECOND, writer).await.expect("the writer makes progress").unwrap().unwrap();
    timeout(SECOND, reader).await.expect("the reader is done").unwrap();
}

// For WebSockets of another kind.
#[tokio::test(start_paused = true)]
async fn a_permit_without_a_socket_gets_the_close_request() {
    let sockets = unlimited().build().unwrap();
    let mut permit = sockets.admit(&http::HeaderMap::new()).unwrap();
    assert!(permit.close_requested().now_or_never().is_none());
    let draining = sockets.drain(Drain::per_second(100));
    let request = permit.close_requested().await;
    assert_eq!(request, permit.close_requested().await);
    let Message::Close(Some(frame)) = request.to_message() else { panic!("no close frame") };
    assert_eq!(u16::from(frame.code), 1012);
    assert_eq!(&*frame.reason, r#"{"retry_after_ms":0,"spread_ms":10}"#);
    assert!(!draining.progress().done);
    drop(permit);
    assert!(draining.done().await.done);
    assert_eq!(sockets.snapshot().drained_in_time, 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_drain_joins_the_first() {
    let sockets = unlimited().build().unwrap();
    let clients = connect_many(&sockets, 20).await;
    sockets.drain(Drain::batches(10, SECOND));
    let joined = sockets.clone().drain(Drain::batches(1, 60 * SECOND));
    assert_eq!(joined.done().await.notified, 20);
    assert_eq!(batches(&clients.join_all().await), [(Duration::ZERO, 10), (SECOND, 10)]);
}

#[tokio::test]
async fn serve_returns_when_the_drain_is_done() {
    let sockets = unlimited().close_timeout(SECOND / 10).build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    // One application responds to the close, the other does not poll its socket.
    let handler = |accepted: Accepted<tokio::net::TcpStream>| async move {
        if accepted.socket.get_ref().get_ref().peer_addr().unwrap().port() % 2 == 0 {
            echo(accepted).await;
        } else {
            core::future::pending::<()>().await;
        }
    };
    let served = tokio::spawn(async move { server.serve(listener, handler).await });
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(dial(address).await.unwrap());
    }
    eventually("all clients connected", || sockets.active() == 8).await;
    let draining = sockets.drain(Drain::batches(8, SECOND));
    assert!(matches!(dial(address).await, Err(Error::Http(_))));
    draining.done().await;
    timeout(20 * SECOND, served).await.expect("serve returns in time").unwrap();
    eventually("unpolled connections aborted", || sockets.active() == 0).await;
}
