//! Dead peers.

use core::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use stagger_ws::server::{Accepted, Drain, Keepalive, Sockets};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{SECOND, connect, connect_through, echo, unlimited};

const KEEPALIVE: Keepalive = Keepalive { interval: Duration::from_secs(20), timeout: Duration::from_secs(10) };

fn sockets() -> Sockets {
    unlimited().keepalive(KEEPALIVE).build().unwrap()
}

fn is_timed_out(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut)
}

#[tokio::test(start_paused = true)]
async fn dead_peers_are_reaped_interval_plus_timeout_after_their_last_frame() {
    let (sockets, mut applications) = (sockets(), JoinSet::new());
    let mut silent = Vec::new();
    let start = Instant::now();
    for n in 0..100_u32 {
        let (Accepted { mut socket, .. }, mut client) = connect(&sockets).await;
        let sends_message = n % 2 == 0;
        if sends_message {
            client.send("still here".into()).await.unwrap();
        }
        silent.push(client);
        applications.spawn(async move {
            if sends_message {
                socket.next().await.unwrap().unwrap();
            }
            let error = socket.next().await.unwrap().unwrap_err();
            let is_over = socket.next().await.is_none() && socket.send("?".into()).await.is_err();
            (start.elapsed(), is_timed_out(&error), is_over)
        });
    }
    let ends = applications.join_all().await;
    assert!(ends.iter().all(|&end| end == (Duration::from_secs(30), true, true)), "{ends:?}");
    let seen = sockets.snapshot();
    assert_eq!((seen.reaped, seen.closed["1006"], seen.active), (100, 100, 0));
}

#[tokio::test(start_paused = true)]
async fn the_longest_lengths_do_not_panic() {
    let longest = Keepalive { interval: Duration::MAX, timeout: Duration::MAX };
    let sockets = unlimited().keepalive(longest).close_timeout(Duration::MAX).build().unwrap();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let (accepted, client) = connect(&sockets).await;
        tokio::spawn(echo(accepted));
        clients.push(client);
    }
    for client in &mut clients {
        client.send("hello".into()).await.unwrap();
        assert_eq!(client.next().await.unwrap().unwrap(), Message::text("hello"));
    }
    let drain = sockets.drain(Drain::batches(1, Duration::MAX));
    assert!(clients[0].next().await.unwrap().unwrap().is_close());
    drain.close_remaining();
    assert!(clients[1].next().await.unwrap().unwrap().is_close());
}

#[tokio::test(start_paused = true)]
async fn connections_that_were_opened_together_are_pinged_apart() {
    let (sockets, start, mut pings) = (sockets(), Instant::now(), JoinSet::new());
    for _ in 0..20 {
        let (accepted, mut client) = connect(&sockets).await;
        tokio::spawn(echo(accepted));
        pings.spawn(async move {
            assert!(client.next().await.unwrap().unwrap().is_ping());
            start.elapsed()
        });
    }
    let mut pings = pings.join_all().await;
    pings.sort();
    assert!(pings[19] - pings[0] > SECOND, "{pings:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_close_code_of_either_side_counts() {
    let sockets = sockets();
    let (Accepted { mut socket, .. }, mut client) = connect(&sockets).await;
    let close = |code: u16| Message::Close(Some(CloseFrame { code: code.into(), reason: "".into() }));
    client.send(close(4000)).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_close());
    let _ = socket.send(close(1001)).await;
    drop(socket);
    assert_eq!(sockets.snapshot().closed.into_iter().collect::<Vec<_>>(), [("4xxx", 1)]);
}

// Each frame restarts the clock.
#[tokio::test(start_paused = true)]
async fn each_frame_restarts_the_keepalive() {
    let sockets = sockets();
    let (Accepted { mut socket, .. }, mut client) = connect(&sockets).await;
    let application = tokio::spawn(async move {
        while let Some(Ok(_)) = socket.next().await {}
        Instant::now()
    });
    for wait in [3, 19, 28, 1, 22] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        client.send("still here".into()).await.unwrap();
    }
    let last = Instant::now();
    assert_eq!(application.await.unwrap() - last, KEEPALIVE.interval + KEEPALIVE.timeout);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_pongs_or_messages_is_not_reaped() {
    let sockets = sockets();
    let mut peers = JoinSet::new();
    // One peer sends nothing and replies to pings; its library does so while reading.
    let (accepted, mut idle) = connect(&sockets).await;
    tokio::spawn(echo(accepted));
    peers.spawn(async move {
        let mut pings = 0;
        while timeout(600 * SECOND, idle.next()).await.is_ok_and(|message| message.unwrap().unwrap().is_ping()) {
            pings += 1;
            if pings == 50 {
                break;
            }
        }
        assert_eq!(pings, 50);
    });
    // The other peer never reads, so it never replies, but it sends messages.
    let (Accepted { mut socket, .. }, mut talker) = connect(&sockets).await;
    tokio::spawn(async move { while let Some(Ok(_)) = socket.next().await {} });
    peers.spawn(async move {
        let mut beat = interval(Duration::from_secs(29));
        for _ in 0..30 {
            beat.tick().await;
            talker.send("I am fine".into()).await.unwrap();
        }
    });
    peers.join_all().await;
    assert_eq!(sockets.snapshot().reaped, 0);
}

#[tokio::test(start_paused = true)]
async fn a_writer_whose_peer_reads_nothing_times_out() {
    let sockets = sockets();
    let (Accepted { mut socket, .. }, _client) = connect_through(&sockets, 64).await;
    let start = Instant::now();
    let error = socket.send(Message::text("x".repeat(1_000))).await.unwrap_err();
    assert!(is_timed_out(&error), "{error}");
    assert_eq!(start.elapsed(), KEEPALIVE.interval + KEEPALIVE.timeout);
    assert!(socket.next().await.is_none());
    socket.close().await.unwrap();
    drop(socket);
    assert_eq!(sockets.snapshot().reaped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_timeout_ends_the_reader() {
    let sockets = sockets();
    let (Accepted { socket, .. }, mut client) = connect_through(&sockets, 64).await;
    let (mut send, mut receive) = socket.split();
    let reader = tokio::spawn(async move { while let Some(Ok(_)) = receive.next().await {} });
    let writer = tokio::spawn(async move { send.send(Message::text("x".repeat(1_000))).await.is_err() });
    tokio::time::sleep(10 * SECOND).await;
    // So the reader considers the peer alive for longer.
    client.send("still here".into()).await.unwrap();
    let start = Instant::now();
    assert!(writer.await.unwrap());
    assert_eq!(start.elapsed(), 20 * SECOND);
    reader.await.unwrap();
    assert!(start.elapsed() <= KEEPALIVE.interval + KEEPALIVE.timeout);
    assert_eq!(sockets.snapshot().reaped, 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_keepalive_no_peer_is_pinged_or_reaped() {
    let sockets = unlimited().keepalive(None).build().unwrap();
    let (accepted, mut client) = connect(&sockets).await;
    tokio::spawn(echo(accepted));
    assert!(timeout(100_000 * SECOND, client.next()).await.is_err());
    assert_eq!(sockets.active(), 1);
}
