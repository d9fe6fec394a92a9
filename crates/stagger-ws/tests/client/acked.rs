//! At-least-once delivery: unacknowledged messages are sent again.

use core::future::ready;

use futures_util::{FutureExt, SinkExt, StreamExt};
use stagger_ws::{Ack, AckedClient, ConnectionState, Event, Message, SendErrorKind, WebSocketConfig};
use tokio::time::{Instant, sleep, timeout};

use super::acking_server::{AckMode, AckingServer, Command, acks, numbered, numbers};
use super::events::word;
use super::peer::Step::{Hang, Upgrade, Wait};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Sends messages and waits until they have arrived.
async fn send(client: &AckedClient<u64>, all: impl IntoIterator<Item = u64>) {
    for n in all {
        client.send(numbered(n)).await.unwrap();
    }
    sleep(ms(10)).await;
}

/// Returns the events so far, abbreviated.
async fn event_words(client: &mut AckedClient<u64>) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(Some(Ok(event))) = timeout(ms(1), client.next()).await {
        words.push(word(&event));
    }
    words
}

/// Returns the number of resent messages of each connection so far.
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
async fn exactly_the_unacknowledged_messages_are_resent_first_and_in_order() {
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
async fn messages_acknowledged_between_two_connections_are_not_resent() {
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

// They were unread in the connection when it ended.
#[tokio::test(start_paused = true)]
async fn acknowledgements_received_before_the_connection_ended_count() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    server.send("up to 2");
    server.command(Command::Drop);
    sleep(secs(60)).await;
    assert_eq!(server.received(), [vec![1, 2, 3], vec![3]]);
}

#[tokio::test(start_paused = true)]
async fn unsent_messages_cannot_be_acknowledged() {
    let server = AckingServer::new(AckMode::Nothing);
    server.set_available(false);
    let client = server.client();
    send(&client, 1..=2).await;
    client.handle().acknowledge(&Ack::UpTo(2));
    client.handle().acknowledge(&Ack::One(1));
    assert_eq!(numbers(&client.handle().unacked()), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn duplicate_acknowledgements_change_nothing() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, 1..=3).await;
    for ack in ["up to 2", "up to 1", "one 2", "up to 2"] {
        server.send(ack);
    }
    sleep(ms(10)).await;
    assert_eq!(numbers(&client.handle().unacked()), [3]);
}

#[tokio::test(start_paused = true)]
async fn send_waits_while_the_window_is_full() {
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
async fn a_message_longer_than_the_window_is_rejected_and_returned() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.over_pipes(64 << 10).acked(acks().max_bytes(3));
    let error = client.send(numbered(1000)).await.unwrap_err();
    assert_eq!((error.kind(), error.into_message()), (SendErrorKind::TooLong, Some(numbered(1000))));
}

#[tokio::test(start_paused = true)]
async fn the_sink_waits_for_room() {
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

// Wherever it is cancelled, a call loses no message that has been accepted.
#[tokio::test(start_paused = true)]
async fn cancelling_loses_no_message() {
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
async fn close_returns_unacknowledged_and_unsent_messages() {
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

// The close is requested before they are read.
#[tokio::test(start_paused = true)]
async fn acknowledgements_received_while_closing_count() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, [1]).await;
    server.send("up to 1");
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn flushed_waits_for_the_last_acknowledgement_and_fails_if_none_can_arrive() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    assert_eq!(client.flushed().now_or_never(), Some(Ok(())));
    send(&client, 1..=2).await;
    let before = Instant::now();
    let (flushed, ()) = tokio::join!(client.flushed(), async {
        sleep(secs(1)).await;
        server.send("one 2");
        sleep(secs(1)).await;
        server.send("one 1");
    });
    assert_eq!((flushed, before.elapsed()), (Ok(()), secs(2)));
    send(&client, [3]).await;
    let (flushed, _) = tokio::join!(client.flushed(), client.close());
    assert_eq!(flushed, Err(SendErrorKind::Closed));
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_the_window_is_kept_and_reconnect_now_resends_it() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.over_pipes(64 << 10).retrier(DOUBLING.max_attempts(1).build().unwrap()).acked(acks());
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
async fn a_connection_without_acknowledgements_is_lost_after_the_ack_timeout() {
    let server = AckingServer::new(AckMode::Nothing);
    let mut client = server.over_pipes(64 << 10).acked(acks().ack_timeout(secs(30)));
    client.connected().await.unwrap();
    sleep(secs(100)).await;
    send(&client, [1]).await;
    sleep(secs(20)).await;
    // No acknowledgement is overdue by more than this one.
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
async fn without_an_ack_timeout_a_slow_server_keeps_its_connection() {
    let server = AckingServer::new(AckMode::Nothing);
    let client = server.client();
    send(&client, [1]).await;
    sleep(secs(86_400)).await;
    assert_eq!(server.received(), [vec![1]]);
    assert!(matches!(*client.handle().client().state().borrow(), ConnectionState::Open));
}

// The stream is not read, and there are more acknowledgements than the inbox holds.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_sends_does_not_have_to_read() {
    let server = AckingServer::new(AckMode::Acknowledge);
    let client = server.over_pipes(64 << 10).inbox(1).acked(acks().window(4));
    for n in 0..1_000 {
        timeout(secs(60), client.send(numbered(n))).await.expect("in time").unwrap();
    }
    client.flushed().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_are_yielded_if_they_pass_through() {
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
async fn resent_messages_precede_messages_without_acknowledgement() {
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

// The peer does not read, and the pipe holds 64 KiB.
#[tokio::test(start_paused = true)]
async fn messages_being_written_are_kept_when_the_connection_is_lost() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1))], vec![Upgrade, Hang]]);
    let mut client = server.over_pipes().acked(acks());
    client.send(Message::text(format!("1 {}", "x".repeat(100_000)))).await.unwrap();
    sleep(secs(60)).await;
    assert_eq!(event_words(&mut client).await, ["open 1", "lost Some(1)", "open 2"]);
    assert_eq!(numbers(&client.handle().unacked()), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_write_buffer_is_dropped_and_reported() {
    let server = AckingServer::new(AckMode::Acknowledge);
    let limits = WebSocketConfig::default().write_buffer_size(1 << 10).max_write_buffer_size(8 << 10);
    let mut client = server.over_pipes(64 << 10).websocket_config(limits).acked(acks());
    client.send(Message::text(format!("1 {}", "x".repeat(100_000)))).await.unwrap();
    client.send(numbered(2)).await.unwrap();
    client.flushed().await.unwrap();
    assert_eq!(server.received(), [[2]]);
    assert_eq!(event_words(&mut client).await, ["open 1", "dropped 1"]);
}

#[tokio::test(start_paused = true)]
async fn close_leaves_no_task_and_no_timer() {
    let server = ScriptedServer::new([vec![Upgrade, Hang]]);
    let client = server.over_pipes().close_timeout(ms(1)).acked(acks().ack_timeout(secs(30)));
    send(&client, [1]).await;
    drop(client.close().await);
    sleep(secs(86_400)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_ack_timeout_of_zero_is_one_of_a_millisecond() {
    let server = ScriptedServer::new([vec![Upgrade, Hang]]);
    let mut client = server.over_pipes().acked(acks().ack_timeout(secs(0)));
    client.connected().await.unwrap();
    client.send(numbered(1)).await.unwrap();
    let before = Instant::now();
    while !matches!(client.next().await, Some(Ok(Event::Closed(_)))) {}
    assert_eq!(before.elapsed(), ms(1));
}
