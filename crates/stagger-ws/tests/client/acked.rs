//! At least once: what is not acknowledged is sent again.

use core::future::ready;

use futures_util::{FutureExt, SinkExt, StreamExt};
use stagger_ws::{Ack, AckedClient, ConnectionState, Event, Message, SendErrorKind, WebSocketConfig};
use tokio::time::{Instant, sleep, timeout};

use super::acking_server::{AckMode, AckingServer, Command, acks, numbered, numbers};
use super::events::word;
use super::peer::Step::{Hang, Upgrade, Wait};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Sends these, and lets them arrive.
async fn send(client: &AckedClient<u64>, all: impl IntoIterator<Item = u64>) {
    for n in all {
        client.send(numbered(n)).await.unwrap();
    }
    sleep(ms(10)).await;
}

/// What has happened.
async fn words(client: &mut AckedClient<u64>) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(Some(Ok(event))) = timeout(ms(1), client.next()).await {
        words.push(word(&event));
    }
    words
}

/// How many messages each connection was said to begin with.
async fn resent(client: &mut AckedClient<u64>) -> Vec<usize> {
    let mut resent = Vec::new();
    while let Ok(Some(Ok(event))) = timeout(ms(1), client.next()).await {
        if let Event::Open(opened) = event {
            resent.push(opened.resent);
        }
    }
    resent
}

#[tokio::test(start_paused = true)]
async fn exactly_what_is_not_acknowledged_is_sent_again_at_the_head_and_in_order() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.client();
    send(&client, 1..=5).await;
    server.send("one 2");
    server.send("one 4");
    sleep(ms(10)).await;
    server.command(Command::Drop);
    server.set_available(false);
    sleep(ms(10)).await;
    send(&client, 6..=7).await;
    server.set_available(true);
    sleep(secs(60)).await;
    assert_eq!(server.received(), [vec![1, 2, 3, 4, 5], vec![1, 3, 5, 6, 7]]);
    assert_eq!(resent(&mut client).await, [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn what_is_acknowledged_between_two_connections_is_not_sent_again() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    server.command(Command::Drop);
    server.set_available(false);
    sleep(ms(10)).await;
    client.handle().acknowledge(&Ack::UpTo(2));
    server.set_available(true);
    sleep(secs(60)).await;
    assert_eq!(server.received(), [vec![1, 2, 3], vec![3]]);
}

/// They lay unread in the connection when it ended.
#[tokio::test(start_paused = true)]
async fn acknowledgements_that_came_before_the_end_of_the_connection_count() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    server.send("up to 2");
    server.command(Command::Drop);
    sleep(secs(60)).await;
    assert_eq!(server.received(), [vec![1, 2, 3], vec![3]]);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_sent_cannot_be_acknowledged() {
    let server = AckingServer::new(AckMode::Nothing);
    server.set_available(false);
    let client = server.client();
    send(&client, 1..=2).await;
    client.handle().acknowledge(&Ack::UpTo(2));
    client.handle().acknowledge(&Ack::One(1));
    assert_eq!(numbers(&client.handle().unacked()), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_comes_twice_changes_nothing() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    for say in ["up to 2", "up to 1", "one 2", "up to 2"] {
        server.send(say);
    }
    sleep(ms(10)).await;
    assert_eq!(numbers(&client.handle().unacked()), [3]);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_window_whoever_sends_waits_for_an_acknowledgement() {
    for (window, bytes) in [(2, usize::MAX), (9, 2)] {
        let server = AckingServer::new(AckMode::Nothing);
        let client = server.over_pipes(64 << 10).acked(acks().window(window).max_bytes(bytes));
        send(&client, 1..=2).await;
        assert_eq!(client.handle().try_send(numbered(3)).unwrap_err().kind(), SendErrorKind::Full);
        let before = Instant::now();
        let (sent, ()) = tokio::join!(client.send(numbered(3)), async {
            sleep(secs(5)).await;
            server.send("one 1");
        });
        sent.unwrap();
        assert_eq!(before.elapsed(), secs(5));
        assert_eq!(numbers(&client.handle().unacked()), [2, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_longer_than_the_window_is_refused_and_given_back() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.over_pipes(64 << 10).acked(acks().max_bytes(3));
    let error = client.send(numbered(1000)).await.unwrap_err();
    assert_eq!((error.kind(), error.into_message()), (SendErrorKind::TooLong, Some(numbered(1000))));
}

#[tokio::test(start_paused = true)]
async fn the_sink_waits_for_room_too() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.over_pipes(64 << 10).acked(acks().window(2));
    SinkExt::send(&mut client, numbered(1)).await.unwrap();
    SinkExt::send(&mut client, numbered(2)).await.unwrap();
    assert!(SinkExt::send(&mut client, numbered(3)).now_or_never().is_none());
    client.connected().await.unwrap();
    sleep(ms(10)).await;
    server.send("up to 2");
    SinkExt::send(&mut client, numbered(4)).await.unwrap();
    assert_eq!(numbers(&client.handle().unacked()), [4]);
}

/// Cut off wherever it may be, a call takes no message with it that had been taken charge of.
#[tokio::test(start_paused = true)]
async fn cancelling_loses_nothing() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.over_pipes(64 << 10).acked(acks().window(2));
    send(&client, 1..=2).await;
    assert!(timeout(ms(1), client.send(numbered(3))).await.is_err());
    assert!(timeout(ms(1), client.flushed()).await.is_err());
    assert_eq!(numbers(&client.handle().unacked()), [1, 2]);
    assert!(client.close().now_or_never().is_none());
    assert_eq!(numbers(&client.close().await), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn close_gives_back_what_was_never_acknowledged_and_what_was_never_sent() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    server.send("one 1");
    server.command(Command::Drop);
    server.set_available(false);
    sleep(ms(10)).await;
    send(&client, 4..=5).await;
    assert_eq!(numbers(&client.close().await), [2, 3, 4, 5]);
    assert!(client.close().await.is_empty());
    assert_eq!(client.send(numbered(6)).await.unwrap_err().kind(), SendErrorKind::Closed);
}

/// The close is asked for before they are read.
#[tokio::test(start_paused = true)]
async fn acknowledgements_that_come_while_it_closes_count() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, [1]).await;
    server.send("up to 1");
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn settled_waits_for_the_last_acknowledgement_and_says_when_none_can_come() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    assert_eq!(client.flushed().now_or_never(), Some(Ok(())));
    send(&client, 1..=2).await;
    let before = Instant::now();
    let (settled, ()) = tokio::join!(client.flushed(), async {
        sleep(secs(1)).await;
        server.send("one 2");
        sleep(secs(1)).await;
        server.send("one 1");
    });
    assert_eq!((settled, before.elapsed()), (Ok(()), secs(2)));
    send(&client, [3]).await;
    let (settled, _) = tokio::join!(client.flushed(), client.close());
    assert_eq!(settled, Err(SendErrorKind::Closed));
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_the_window_is_whole_and_reconnect_now_sends_it_again() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.over_pipes(64 << 10).policy(DOUBLING.max_attempts(1).build().unwrap()).acked(acks());
    send(&client, 1..=3).await;
    server.send("one 1");
    server.command(Command::Drop);
    server.set_available(false);
    assert_eq!(client.flushed().await, Err(SendErrorKind::GaveUp));
    let error = client.send(numbered(4)).await.unwrap_err();
    assert_eq!((error.kind(), error.into_message()), (SendErrorKind::GaveUp, Some(numbered(4))));
    assert_eq!(SinkExt::send(&mut client, numbered(4)).await.unwrap_err().kind(), SendErrorKind::GaveUp);
    assert_eq!(numbers(&client.handle().unacked()), [2, 3]);

    server.set_available(true);
    server.set_ack_mode(AckMode::Acknowledge);
    client.handle().client().reconnect_now();
    client.connected().await.unwrap();
    client.send(numbered(4)).await.unwrap();
    client.flushed().await.unwrap();
    assert_eq!(server.received(), [vec![1, 2, 3], vec![2, 3, 4]]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_acknowledges_nothing_is_lost_after_the_timeout() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.over_pipes(64 << 10).acked(acks().ack_timeout(secs(30)));
    client.connected().await.unwrap();
    sleep(secs(100)).await;
    send(&client, [1]).await;
    sleep(secs(20)).await;
    // Nothing is missing for longer than this one.
    send(&client, [2]).await;
    server.send("one 1");
    sleep(secs(29)).await;
    assert_eq!(server.received().len(), 1);
    sleep(ms(2_000)).await;
    assert_eq!(server.received(), [vec![1, 2], vec![2]]);
    let causes: Vec<_> = core::iter::from_fn(|| client.next().now_or_never())
        .filter_map(|event| match event?.unwrap() {
            Event::Closed(closed) => Some(closed.cause.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(causes, ["no acknowledgement for 30 s"]);
}

#[tokio::test(start_paused = true)]
async fn without_an_ack_timeout_a_slow_peer_is_waited_for() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, [1]).await;
    sleep(secs(86_400)).await;
    assert_eq!(server.received(), [vec![1]]);
    assert!(matches!(*client.handle().client().state().borrow(), ConnectionState::Open));
}

/// Nobody reads the stream, and there are many more acknowledgements than the inbox has room for.
#[tokio::test(start_paused = true)]
async fn whoever_only_sends_does_not_have_to_read() {
    let server = AckingServer::new(AckMode::Acknowledge);
    let client = server.over_pipes(64 << 10).inbox(1).acked(acks().window(4));
    for n in 0..1_000 {
        timeout(secs(60), client.send(numbered(n))).await.expect("in time").unwrap();
    }
    client.flushed().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_are_shown_if_they_are_asked_for() {
    for (acks, want) in [(acks(), &["hello"][..]), (acks().pass_through(), &["hello", "up to 1"])] {
        let server = AckingServer::new(AckMode::Nothing);
        let client = server.over_pipes(64 << 10).acked(acks);
        send(&client, [1]).await;
        server.send("hello");
        server.send("up to 1");
        sleep(ms(10)).await;
        drop(client.close().await);
        let texts: Vec<_> = client
            .filter_map(|event| ready(if let Ok(Event::Message(text)) = event { Some(text.to_string()) } else { None }))
            .collect()
            .await;
        assert_eq!(texts, want);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_goes_before_what_nobody_acknowledges() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=2).await;
    server.set_available(false);
    server.command(Command::Drop);
    sleep(ms(10)).await;
    client.handle().client().try_send(Message::text("99 plain")).unwrap();
    send(&client, [3]).await;
    server.set_available(true);
    sleep(secs(60)).await;
    assert_eq!(server.received()[1], [1, 2, 3, 99]);
    assert_eq!(numbers(&client.handle().unacked()), [1, 2, 3]);
}

/// Nobody reads, and the pipe takes 64 KiB.
#[tokio::test(start_paused = true)]
async fn what_was_being_written_is_not_dropped_with_the_connection() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1))], vec![Upgrade, Hang]]);
    let mut client = server.over_pipes().acked(acks());
    client.send(Message::text(format!("1 {}", "x".repeat(100_000)))).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(words(&mut client).await, ["open 1", "lost Some(1)", "open 2"]);
    assert_eq!(numbers(&client.handle().unacked()), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_no_connection_can_take_is_dropped_and_said_to_be() {
    let server = AckingServer::new(AckMode::Acknowledge);
    let limits = WebSocketConfig::default().write_buffer_size(1 << 10).max_write_buffer_size(8 << 10);
    let mut client = server.over_pipes(64 << 10).websocket_config(limits).acked(acks());
    client.send(Message::text(format!("1 {}", "x".repeat(100_000)))).await.unwrap();
    client.send(numbered(2)).await.unwrap();
    client.flushed().await.unwrap();
    assert_eq!(server.received(), [[2]]);
    assert_eq!(words(&mut client).await, ["open 1", "dropped 1"]);
}

#[tokio::test(start_paused = true)]
async fn no_task_and_no_timer_is_left_after_close() {
    let server = ScriptedServer::new([vec![Upgrade, Hang]]);
    let client = server.over_pipes().close_timeout(ms(1)).acked(acks().ack_timeout(secs(30)));
    send(&client, [1]).await;
    drop(client.close().await);
    sleep(secs(86_400)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}
