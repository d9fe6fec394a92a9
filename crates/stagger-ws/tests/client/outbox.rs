//! Messages that cannot be sent yet.

use futures_util::{FutureExt, SinkExt, StreamExt};
use stagger_ws::{Event, Handle, Message, Outbox, SendErrorKind};
use tokio::time::{Instant, sleep, timeout};

use super::events::events;
use super::peer::Step::{Echo, Upgrade, Wait};
use super::peer::close;
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Refuses the first connection, and accepts the second after a second.
fn available_at_second_attempt() -> ScriptedServer {
    ScriptedServer::new([vec![], vec![Upgrade, Echo]])
}

fn put(handle: &Handle, texts: &[&str]) -> Vec<Option<SendErrorKind>> {
    texts.iter().map(|text| handle.try_send(Message::text(*text)).err().map(|error| error.kind())).collect()
}

#[tokio::test(start_paused = true)]
async fn every_overflow_policy_respects_its_limits() {
    for (outbox, refused, sent, dropped) in [
        (Outbox::fail_fast(), [Some(SendErrorKind::NotConnected); 4], &[][..], 0),
        (Outbox::backpressure(2), [None, None, Some(SendErrorKind::Full), Some(SendErrorKind::Full)], &["a", "b"], 0),
        (Outbox::drop_newest(2), [None, None, Some(SendErrorKind::Full), Some(SendErrorKind::Full)], &["a", "b"], 0),
        (Outbox::drop_oldest(2), [None; 4], &["cc", "d"], 2),
        (Outbox::backpressure(9).max_bytes(3), [None, None, Some(SendErrorKind::Full), None], &["a", "b", "d"], 0),
        (Outbox::drop_oldest(9).max_bytes(3), [None; 4], &["cc", "d"], 2),
        (Outbox::drop_oldest(9).max_bytes(1), [None, None, Some(SendErrorKind::TooLong), None], &["d"], 2),
    ] {
        let server = available_at_second_attempt();
        let mut client = server.over_pipes().outbox(outbox).connect();
        assert_eq!(put(&client.handle(), &["a", "b", "cc", "d"]), refused, "{outbox:?}");
        let mut want = Vec::from_iter((dropped > 0).then(|| format!("dropped {dropped}")));
        want.extend(["lost Some(1)", "open 2"].map(String::from));
        want.extend(sent.iter().map(ToString::to_string));
        assert_eq!(events(&mut client).await, want, "{outbox:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn backpressure_makes_senders_wait_and_preserves_order() {
    let server = available_at_second_attempt();
    let mut client = server.over_pipes().outbox(Outbox::backpressure(1)).connect();
    let handle = client.handle();
    let before = Instant::now();
    let sending = async {
        for n in 0..10 {
            handle.send(Message::text(n.to_string())).await.unwrap();
        }
        before.elapsed()
    };
    let (took, words) = tokio::join!(sending, events(&mut client));
    assert_eq!(took, secs(1));
    let want: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(words[2..], want);
}

#[tokio::test(start_paused = true)]
async fn all_waiting_senders_make_progress() {
    let server = available_at_second_attempt();
    let client = server.over_pipes().outbox(Outbox::backpressure(2).max_bytes(3)).connect();
    let handle = client.handle();
    let senders = (0..50).map(|n| {
        let handle = handle.clone();
        async move { handle.send(Message::text("x".repeat(1 + n % 3))).await }
    });
    let reading = tokio::spawn(client.for_each(|_| core::future::ready(())));
    let sent = timeout(secs(60), futures_util::future::join_all(senders)).await.unwrap();
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn an_expired_message_is_dropped_on_time_and_its_sender_notified() {
    let server = ScriptedServer::new([]);
    let policy = DOUBLING.base(secs(3600)).cap(secs(3600)).build().unwrap();
    let mut client = server.over_pipes().retrier(policy).outbox(Outbox::backpressure(2).ttl(secs(30))).connect();
    let handle = client.handle();
    let before = Instant::now();
    let error = handle.send(Message::text("old news")).await.unwrap_err();
    assert_eq!((error.kind(), before.elapsed()), (SendErrorKind::Expired, secs(30)));
    assert_eq!(error.into_message(), Some(Message::text("old news")));
    assert_eq!(client.send(Message::text("again")).await.unwrap_err().kind(), SendErrorKind::Expired);
    assert!(matches!(client.next().await, Some(Ok(Event::Closed(_)))));
    for _ in 0..2 {
        assert!(matches!(client.next().await, Some(Ok(Event::Dropped { messages: 1 }))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_send_withdraws_its_message_and_makes_room() {
    let server = available_at_second_attempt();
    let mut client = server.over_pipes().outbox(Outbox::backpressure(1)).connect();
    let handle = client.handle();
    assert!(timeout(ms(1), handle.send(Message::text("cancelled"))).await.is_err());
    handle.try_send(Message::text("instead")).unwrap();
    assert_eq!(events(&mut client).await, ["lost Some(1)", "open 2", "instead"]);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_message_is_never_sent() {
    let server = available_at_second_attempt();
    let mut client = server.over_pipes().connect();
    assert!(timeout(ms(1), client.handle().send(Message::text("cancelled"))).await.is_err());
    assert_eq!(events(&mut client).await, ["lost Some(1)", "open 2"]);
}

// Removing one long message makes room for several short ones.
#[tokio::test(start_paused = true)]
async fn room_for_several_messages_wakes_several_senders() {
    let server = ScriptedServer::new([]);
    let policy = DOUBLING.base(secs(3600)).cap(secs(3600)).build().unwrap();
    let outbox = Outbox::backpressure(9).max_bytes(3).ttl(secs(30));
    let client = server.over_pipes().retrier(policy).outbox(outbox).connect();
    let handle = client.handle();
    handle.try_send(Message::text("long")).unwrap_err();
    handle.try_send(Message::text("is")).unwrap();
    handle.try_send(Message::text("3")).unwrap();
    let before = Instant::now();
    let waiting = (0..3).map(|n| handle.send(Message::text(n.to_string())));
    for sent in futures_util::future::join_all(waiting).await {
        assert_eq!(sent.unwrap_err().kind(), SendErrorKind::Expired);
    }
    assert_eq!(before.elapsed(), secs(60));
}

#[tokio::test(start_paused = true)]
async fn the_outbox_accepts_messages_again_while_reconnecting() {
    let server = ScriptedServer::new([vec![], vec![Wait(secs(1)), Upgrade, Echo]]);
    let mut client = server.over_pipes().retrier(DOUBLING.max_attempts(1).build().unwrap()).connect();
    let handle = client.handle();
    handle.connected().await.unwrap_err();
    assert_eq!(put(&handle, &["a"]), [Some(SendErrorKind::GaveUp)]);
    handle.reconnect_now();
    sleep(ms(500)).await;
    assert_eq!(put(&handle, &["b"]), [None]);
    assert_eq!(events(&mut client).await, ["lost None", "fatal attempts"]);
    assert_eq!(events(&mut client).await, ["open 1", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_flush_fails_when_the_client_gives_up_and_its_message_is_kept() {
    let server = ScriptedServer::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut client = server.over_pipes().retrier(DOUBLING.max_attempts(2).build().unwrap()).connect();
    assert_eq!(client.send(Message::text("stays")).await.unwrap_err().kind(), SendErrorKind::GaveUp);
    client.handle().reconnect_now();
    client.connected().await.unwrap();
    let events = [events(&mut client).await, events(&mut client).await].concat();
    assert_eq!(events, ["lost Some(1)", "lost None", "fatal attempts", "open 1", "stays"]);
}

#[tokio::test(start_paused = true)]
async fn with_fail_fast_unwritten_messages_fail_with_the_connection() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1)), close(1001, "")]]);
    let client = server.over_pipes().outbox(Outbox::fail_fast()).connect();
    let handle = client.handle();
    client.connected().await.unwrap();
    handle.send(Message::text("now")).await.unwrap();
    // The peer does not read, and the pipe holds 64 KiB: the second message waits for the first.
    let [first, second] = [100_000, 1].map(|length| handle.send(Message::binary(vec![0; length])));
    let (first, second) = timeout(secs(2), async { tokio::join!(first, second) }).await.unwrap();
    assert_eq!(
        [first, second].map(|sent| sent.unwrap_err().kind()),
        [SendErrorKind::Lost, SendErrorKind::NotConnected]
    );
    assert_eq!(handle.send(Message::text("later")).await.unwrap_err().kind(), SendErrorKind::NotConnected);
}

#[tokio::test(start_paused = true)]
async fn a_full_sink_is_not_ready_until_there_is_room() {
    let server = available_at_second_attempt();
    let mut client = server.over_pipes().outbox(Outbox::backpressure(2)).connect();
    for n in 0..2 {
        assert!(client.feed(Message::text(n.to_string())).now_or_never().unwrap().is_ok());
    }
    assert!(client.feed(Message::text("no room")).now_or_never().is_none());
    let before = Instant::now();
    client.feed(Message::text("2")).await.unwrap();
    assert_eq!(before.elapsed(), secs(1));
    assert_eq!(events(&mut client).await[2..], ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_senders_are_notified_when_the_client_gives_up_or_is_closed() {
    let server = ScriptedServer::new([]);
    let mut client = server.over_pipes().retrier(DOUBLING.max_attempts(1).build().unwrap()).connect();
    let handle = client.handle();
    let error = handle.send(Message::text("stays")).await.unwrap_err();
    assert_eq!((error.kind(), error.into_message()), (SendErrorKind::GaveUp, None));
    let error = handle.send(Message::text("is rejected")).await.unwrap_err();
    assert_eq!((error.kind(), error.into_message()), (SendErrorKind::GaveUp, Some(Message::text("is rejected"))));
    assert_eq!(client.send(Message::text("by the sink")).await.unwrap_err().kind(), SendErrorKind::GaveUp);

    client.close().await;
    for error in [handle.send(Message::text("x")).await, client.send(Message::text("x")).await] {
        assert_eq!(error.unwrap_err().kind(), SendErrorKind::Closed);
    }
}

// A message that was being written when the connection broke is not sent twice, and its sender gets an error.
#[tokio::test(start_paused = true)]
async fn messages_being_written_are_lost_with_the_connection_and_reported() {
    // The peer does not read, and the pipe holds 64 KiB.
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1))], vec![Upgrade, Echo]]);
    let mut client = server.over_pipes().connect();
    client.connected().await.unwrap();
    let handle = client.handle();
    let sent = handle.send(Message::binary(vec![0; 100_000])).await;
    assert_eq!(sent.unwrap_err().kind(), SendErrorKind::Lost);
    assert_eq!(events(&mut client).await, ["open 1", "dropped 1", "lost Some(1)", "open 2"]);
}
