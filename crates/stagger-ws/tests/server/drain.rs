//! How everybody leaves.

use core::time::Duration;
use std::collections::BTreeMap;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use stagger_http::hint::server_hint;
use stagger_ws::Advice;
use stagger_ws::server::{Accepted, Drain, Sockets};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{
    Client, SECOND, connect, connect_through, dial, echo, eventually, knock, on_loopback, open_to_all,
};

/// When a client was closed, and what it was told.
type Left = (Duration, Advice);

/// Reads until the close, which is an advice within the bound, and answers it.
async fn stay(mut client: Client, start: Instant) -> Left {
    let mut left = None;
    while let Some(message) = client.next().await {
        if let Ok(Message::Close(frame)) = message {
            let frame = frame.expect("a reason");
            assert_eq!(u16::from(frame.code), 1012);
            assert!(frame.reason.len() <= 123, "{}", frame.reason);
            left = Some((start.elapsed(), Advice::from_reason(&frame.reason).expect("an advice")));
        }
    }
    left.expect("a close")
}

/// So many connections, each with an application that sends back what comes.
async fn crowd(sockets: &Sockets, size: usize) -> JoinSet<Left> {
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..size {
        let (accepted, client) = connect(sockets).await;
        tokio::spawn(echo(accepted));
        clients.spawn(stay(client, start));
    }
    clients
}

/// How many were closed at each time.
fn batches(left: &[Left]) -> Vec<(Duration, usize)> {
    let mut batches = BTreeMap::new();
    left.iter().for_each(|(when, _)| *batches.entry(*when).or_default() += 1);
    batches.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn five_hundred_leave_in_batches_and_never_more_than_a_batch_at_once() {
    let sockets = open_to_all().build().unwrap();
    let clients = crowd(&sockets, 500).await;
    let draining = sockets.drain(Drain::batches(50, SECOND));
    sleep(SECOND * 5 / 2).await;
    let progress = draining.progress();
    assert_eq!((progress.total, progress.told, progress.left, progress.done), (500, 150, 350, false));
    let left = clients.join_all().await;
    let want: Vec<_> = (0..10).map(|n| (SECOND * n, 50)).collect();
    assert_eq!(batches(&left), want);
    // The next server meets 50 in each second, so nobody has to wait.
    assert!(left.iter().all(|&(_, advice)| advice == Advice { retry_after: Duration::ZERO, spread: SECOND }));
    let progress = draining.done().await;
    assert_eq!((progress.told, progress.left, progress.done), (500, 0, true));
    let seen = sockets.snapshot();
    assert_eq!((seen.left, seen.dropped, seen.active, seen.closed["1012"]), (500, 0, 0, 500));
}

/// Whoever is told to leave when, the next server takes them one after the other.
#[tokio::test(start_paused = true)]
async fn a_drain_that_is_hurried_spreads_those_who_are_left_as_the_next_server_takes_them() {
    let sockets = open_to_all().build().unwrap();
    let clients = crowd(&sockets, 500).await;
    let draining = sockets.drain(Drain::batches(50, SECOND).next_takes(100));
    sleep(SECOND * 5 / 2).await;
    draining.hurry();
    assert!(draining.done().await.done);
    let left = clients.join_all().await;
    let hurried = SECOND * 5 / 2;
    assert_eq!(batches(&left), [(Duration::ZERO, 50), (SECOND, 50), (SECOND * 2, 50), (hurried, 350)]);
    let last = left.iter().find(|(when, _)| *when == hurried).unwrap().1;
    // Those before have come by then, and 350 take 3.5 s.
    assert_eq!(last, Advice { retry_after: Duration::ZERO, spread: SECOND * 7 / 2 });
}

#[tokio::test(start_paused = true)]
async fn while_it_drains_nobody_comes_in_and_everybody_is_told_to_come_later_than_the_one_before() {
    let sockets = open_to_all().build().unwrap();
    let _clients = crowd(&sockets, 10).await;
    sockets.drain(Drain::batches(10, SECOND).back_after(30 * SECOND));
    tokio::task::yield_now().await;
    let mut waits = Vec::new();
    for _ in 0..3 {
        let headers = knock(&sockets).await;
        waits.push(server_hint(&headers, || unreachable!()).unwrap());
        assert!(headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 30);
    }
    let floor = |millis| stagger::ServerHint::AtLeast(Duration::from_millis(millis));
    // Ten were told to come within the second after the 30, and the line goes on behind them.
    assert_eq!(waits, [floor(31_000), floor(31_100), floor(31_200)]);
    assert_eq!(sockets.snapshot().refused.draining, 3);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_a_close_is_dropped_and_holds_nobody_up() {
    let sockets = open_to_all().close_timeout(3 * SECOND).build().unwrap();
    // It holds its end of the pipe and says nothing.
    let (Accepted { mut socket, .. }, _silent) = connect(&sockets).await;
    let application = tokio::spawn(async move { socket.next().await.is_none() });
    let clients = crowd(&sockets, 2).await;
    let start = Instant::now();
    let progress = sockets.drain(Drain::batches(1, SECOND)).done().await;
    assert_eq!((progress.left, start.elapsed()), (0, 3 * SECOND));
    assert!(application.await.unwrap(), "for the application that is an end, and no error");
    let left = clients.join_all().await;
    assert_eq!(batches(&left), [(SECOND, 1), (2 * SECOND, 1)]);
    assert_eq!((sockets.snapshot().left, sockets.snapshot().dropped), (2, 1));
}

/// A task that waits for something else for ever.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_also_if_an_application_does_not_look() {
    let sockets = open_to_all().close_timeout(3 * SECOND).build().unwrap();
    let (_accepted, _client) = connect(&sockets).await;
    let start = Instant::now();
    let progress = sockets.drain(Drain::per_second(10)).done().await;
    assert_eq!((progress.told, progress.left, start.elapsed()), (1, 1, 4 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_sent_before_it_answers_is_still_read() {
    let sockets = open_to_all().build().unwrap();
    let (Accepted { mut socket, .. }, mut client) = connect(&sockets).await;
    sockets.drain(Drain::per_second(1));
    // The close is on its way while these are on theirs.
    assert!(timeout(SECOND, socket.next()).await.is_err());
    for n in 0..3 {
        client.send(Message::text(n.to_string())).await.unwrap();
    }
    for n in 0..3 {
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(n.to_string()));
    }
    assert!(socket.send("too late".into()).await.is_err());
    assert!(client.next().await.unwrap().unwrap().is_close());
    // It answers, and waits for the end, which is the server's to make.
    let client = tokio::spawn(async move { client.next().await.is_none() });
    assert!(socket.next().await.unwrap().unwrap().is_close());
    assert!(socket.next().await.is_none());
    drop(socket);
    assert!(client.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_only_sends_is_told_at_the_next_message_and_its_client_reads_why() {
    let sockets = open_to_all().build().unwrap();
    let (Accepted { mut socket, .. }, client) = connect(&sockets).await;
    let application = tokio::spawn(async move {
        while socket.send("tick".into()).await.is_ok() {
            sleep(SECOND).await;
        }
    });
    let start = Instant::now();
    let client = tokio::spawn(stay(client, start));
    sleep(SECOND / 2).await;
    sockets.drain(Drain::per_second(1));
    assert_eq!(client.await.unwrap().0, SECOND);
    application.await.unwrap();
    assert_eq!(sockets.snapshot().closed["1012"], 1);
}

/// Both halves wait for room on the same pipe, whose library remembers one of them.
#[tokio::test(start_paused = true)]
async fn the_halves_of_a_socket_that_is_split_wake_each_other() {
    let sockets = open_to_all().keepalive(None).close_timeout(60 * SECOND).build().unwrap();
    let (Accepted { socket, .. }, mut client) = connect_through(&sockets, 64).await;
    let (mut send, mut receive) = socket.split();
    // More than there is room for.
    let writer = tokio::spawn(async move { send.send(Message::text("x".repeat(1_000))).await });
    sleep(SECOND).await;
    let reader = tokio::spawn(async move { while let Some(Ok(_)) = receive.next().await {} });
    sleep(SECOND).await;
    sockets.drain(Drain::per_second(1));
    sleep(SECOND).await;
    assert_eq!(client.next().await.unwrap().unwrap().len(), 1_000);
    let close = timeout(SECOND, client.next()).await.expect("the reader has got on").unwrap().unwrap();
    assert!(close.is_close());
    assert!(timeout(SECOND, client.next()).await.expect("the end").is_none());
    timeout(SECOND, writer).await.expect("the writer has got on").unwrap().unwrap();
    timeout(SECOND, reader).await.expect("the reader is done").unwrap();
}

/// For those who have a WebSocket of another kind.
#[tokio::test(start_paused = true)]
async fn a_connection_by_hand_is_told_what_to_close_with() {
    let sockets = open_to_all().build().unwrap();
    let mut conn = sockets.let_in(&http::HeaderMap::new()).unwrap();
    assert!(conn.closing().now_or_never().is_none());
    let draining = sockets.drain(Drain::per_second(100));
    let closing = conn.closing().await;
    assert_eq!(closing, conn.closing().await);
    let Message::Close(Some(frame)) = closing.frame() else { panic!("no close frame") };
    assert_eq!(u16::from(frame.code), 1012);
    assert_eq!(&*frame.reason, r#"{"retry_after_ms":0,"spread_ms":10}"#);
    assert!(!draining.progress().done);
    drop(conn);
    assert!(draining.done().await.done);
    assert_eq!(sockets.snapshot().left, 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_drain_joins_the_first() {
    let sockets = open_to_all().build().unwrap();
    let clients = crowd(&sockets, 20).await;
    sockets.drain(Drain::batches(10, SECOND));
    let joined = sockets.clone().drain(Drain::batches(1, 60 * SECOND));
    assert_eq!(joined.done().await.told, 20);
    assert_eq!(batches(&clients.join_all().await), [(Duration::ZERO, 10), (SECOND, 10)]);
}

#[tokio::test]
async fn a_server_has_served_when_its_drain_is_done() {
    let sockets = open_to_all().close_timeout(SECOND / 10).build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    // One application answers, the other looks away.
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
    eventually("all are in", || sockets.active() == 8).await;
    let draining = sockets.drain(Drain::batches(8, SECOND));
    assert!(matches!(dial(address).await, Err(Error::Http(_))));
    draining.done().await;
    timeout(20 * SECOND, served).await.expect("it ends").unwrap();
    eventually("those who looked away were aborted", || sockets.active() == 0).await;
}
