//! The high-level client: a stream of events and a sink of messages.

use futures_util::{SinkExt, StreamExt};
use stagger::StopReason;
use stagger_ws::{Client, ConnectionState, Event, Message};
use tokio::time::{Instant, sleep, timeout};

use super::peer::Step::{Echo, Hang, Upgrade, Wait};
use super::peer::{close, rejection, text};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Abbreviates an event.
pub(super) fn word(event: &Event) -> String {
    match event {
        Event::Open(open) => format!("open {}", open.attempt),
        Event::Message(message) => message.to_string(),
        Event::Closed(closed) => format!("{} {:?}", closed.cause.name(), closed.retry_in.map(|wait| wait.as_secs())),
        Event::Unreachable(it) => format!("unreachable {} {}", it.attempts, it.lasted.as_secs()),
        Event::Dropped { messages } => format!("dropped {messages}"),
        _ => String::from("?"),
    }
}

/// Collects events until the stream ends or fails, or nothing happens for an hour.
pub(super) async fn events(client: &mut Client) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(Some(event)) = timeout(secs(3600), client.next()).await {
        match event {
            Ok(event) => words.push(word(&event)),
            Err(fatal) => {
                words.push(format!("fatal {}", fatal.stop_reason().name()));
                break;
            }
        }
    }
    words
}

#[tokio::test(start_paused = true)]
async fn open_messages_and_close_are_yielded_in_order() {
    let server = ScriptedServer::new([
        rejection(503, ""),
        vec![Upgrade, text("a"), text("b"), Wait(secs(60)), close(1001, ""), Hang],
        vec![Upgrade, text("c"), close(1000, ""), Hang],
    ]);
    let mut client = server.over_pipes().connect();
    let want = ["rejected Some(1)", "open 2", "a", "b", "closed Some(1)", "open 1", "c", "closed None"];
    assert_eq!(events(&mut client).await, want);
    assert!(client.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_for_a_connection_during_an_outage() {
    let server = ScriptedServer::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut client = server.over_pipes().connect();
    let before = Instant::now();
    client.send(Message::text("hello")).await.unwrap();
    assert_eq!(before.elapsed(), secs(3));
    assert_eq!(events(&mut client).await, ["lost Some(1)", "lost Some(2)", "open 3", "hello"]);
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_the_outbox_is_kept_and_reconnect_now_sends_it() {
    let server = ScriptedServer::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut client = server.over_pipes().retrier(DOUBLING.max_attempts(2).build().unwrap()).connect();
    let handle = client.handle();
    for message in ["one", "two", "three"] {
        handle.try_send(Message::text(message)).unwrap();
    }
    assert_eq!(events(&mut client).await, ["lost Some(1)", "lost None", "fatal attempts"]);
    assert!(client.next().await.is_none());
    let ConnectionState::Closed(Some(fatal)) = handle.state().borrow().clone() else { panic!("it has given up") };
    assert_eq!(fatal.stop_reason(), StopReason::Attempts);
    assert_eq!(handle.connected().await.unwrap_err().attempts(), 2);
    sleep(secs(600)).await;
    assert_eq!(server.arrivals().len(), 2);

    handle.reconnect_now();
    handle.connected().await.unwrap();
    assert_eq!(events(&mut client).await, ["open 1", "one", "two", "three"]);
}

// An unread error does not end a stream that continues.
#[tokio::test(start_paused = true)]
async fn reconnect_now_before_the_error_is_read_continues_the_stream() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, text("a"), Hang]]);
    let mut client = server.over_pipes().retrier(DOUBLING.max_attempts(1).build().unwrap()).connect();
    client.connected().await.unwrap_err();
    client.handle().reconnect_now();
    assert_eq!(events(&mut client).await, ["lost None", "fatal attempts"]);
    assert_eq!(events(&mut client).await, ["open 1", "a"]);
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_replaces_a_connection_that_is_open() {
    let server = ScriptedServer::new([vec![Upgrade, Hang], vec![Upgrade, Hang]]);
    let mut client = server.over_pipes().connect();
    client.connected().await.unwrap();
    sleep(secs(5)).await;
    client.handle().reconnect_now();
    assert_eq!(events(&mut client).await, ["open 1", "closed_locally Some(0)", "open 1"]);
    assert_eq!(server.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn the_state_contains_the_time_of_the_next_attempt() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, Hang]]);
    let client = server.over_pipes().connect();
    let mut state = client.handle().state();
    let begin = Instant::now();
    let waiting = state.wait_for(|state| matches!(state, ConnectionState::Waiting { .. })).await.unwrap().clone();
    assert!(matches!(waiting, ConnectionState::Waiting { until, .. } if until == begin + secs(1)), "{waiting:?}");
    state.wait_for(|state| matches!(state, ConnectionState::Connecting { .. })).await.unwrap();
    assert_eq!(begin.elapsed(), secs(1));
    state.wait_for(|state| matches!(state, ConnectionState::Open)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn close_leaves_no_task_and_no_timer() {
    // During a wait, during a handshake, and while connected.
    for (steps, after) in [(vec![], ms(500)), (vec![Hang], ms(500)), (vec![Upgrade, Echo], ms(500))] {
        let server = ScriptedServer::new([steps, vec![Upgrade, Hang]]);
        let mut client = server.over_pipes().keepalive(secs(1), secs(1)).connect();
        let handle = client.handle();
        sleep(after).await;
        let before = Instant::now();
        handle.close().await;
        assert_eq!(before.elapsed(), secs(0));
        assert!(matches!(*handle.state().borrow(), ConnectionState::Closed(None)));
        while let Some(event) = client.next().await {
            event.unwrap();
        }
        handle.reconnect_now();
        assert!(handle.connected().await.is_err());
        // Without other timers, paused time jumps to the end of this sleep.
        sleep(secs(86_400)).await;
        assert_eq!((server.arrivals().len(), tokio::runtime::Handle::current().metrics().num_alive_tasks()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn close_is_bounded_by_the_close_timeout() {
    let server = ScriptedServer::new([vec![Upgrade, Hang]]);
    let client = server.over_pipes().close_timeout(secs(3)).connect();
    client.connected().await.unwrap();
    let before = Instant::now();
    client.close().await;
    assert_eq!(before.elapsed(), secs(3));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_client_ends_its_task() {
    for steps in [vec![], vec![Upgrade, Hang]] {
        let server = ScriptedServer::new([steps]);
        let client = server.over_pipes().connect();
        let handle = client.handle();
        sleep(ms(500)).await;
        drop(client);
        sleep(secs(1)).await;
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
        assert!(handle.send(Message::text("too late")).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_client_buffers_no_more_than_its_inbox() {
    for (builder_inbox, most) in [(Some(8), 9), (None, 65)] {
        let flood = vec![text("x"); 10_000];
        let server = ScriptedServer::new([[vec![Upgrade], flood, vec![Hang]].concat()]);
        let builder = server.over_pipes();
        let client = match builder_inbox {
            Some(events) => builder.inbox(events),
            None => builder,
        }
        .connect();
        client.connected().await.unwrap();
        sleep(secs(60)).await;
        // Messages of three bytes each. The pipe and the read buffer hold all of them except the inbox; after the close
        // the client has only its inbox.
        client.handle().close().await;
        let is_message = |word: &String| core::future::ready(word == "x");
        let read = client.map(|event| word(&event.unwrap())).filter(is_message).count().await;
        assert!(read <= most, "{read}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_client_buffers_no_more_than_its_inbox_bytes() {
    let flood = vec![text(&"x".repeat(100)); 1_000];
    let server = ScriptedServer::new([[vec![Upgrade], flood, vec![Hang]].concat()]);
    let client = server.over_pipes().inbox_bytes(250).connect();
    client.connected().await.unwrap();
    sleep(secs(60)).await;
    client.handle().close().await;
    let is_message = |event: &Result<Event, _>| core::future::ready(matches!(event, Ok(Event::Message(_))));
    // The third message exceeds the limit.
    assert_eq!(client.filter(is_message).count().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_full_inbox_is_filled_again_when_it_is_read() {
    for bytes in [0, 1, 250] {
        let flood = vec![text(&"x".repeat(100)); 50];
        let server = ScriptedServer::new([[vec![Upgrade], flood, vec![close(1000, "")]].concat()]);
        let messages = server.over_pipes().inbox_bytes(bytes).connect().messages();
        assert_eq!(timeout(secs(60), messages.count()).await.unwrap(), 50);
    }
}

// The client does not read while its message waits to be sent, and the connection is lost meanwhile.
#[tokio::test(start_paused = true)]
async fn sending_without_reading_does_not_deadlock_on_a_full_inbox() {
    let flood = vec![text("x"); 100];
    let server = ScriptedServer::new([
        [vec![Upgrade], flood, vec![Wait(secs(1)), close(1001, "")]].concat(),
        vec![Upgrade, Echo],
    ]);
    let mut client = server.over_pipes().inbox(4).connect();
    client.connected().await.unwrap();
    sleep(secs(2)).await;
    let sent = timeout(secs(60), client.send(Message::text("through"))).await;
    let events = events(&mut client).await;
    assert!(sent.is_ok(), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn unread_losses_are_coalesced() {
    let server = ScriptedServer::new(vec![vec![]; 5].into_iter().chain([vec![Upgrade, text("back"), Hang]]));
    let mut client = server.over_pipes().inbox(0).connect();
    client.connected().await.unwrap();
    sleep(secs(1)).await;
    let events = events(&mut client).await;
    assert_eq!(events[0], "lost Some(1)");
    assert_eq!(events[1..], ["lost Some(16)", "open 6", "back"]);
}

#[tokio::test(start_paused = true)]
async fn an_unread_connection_that_ended_is_not_reported() {
    let server = ScriptedServer::new([vec![Upgrade, Hang], vec![Upgrade, Hang], vec![Wait(secs(5)), Upgrade, Hang]]);
    let mut client = server.over_pipes().inbox(0).connect();
    for _ in 0..2 {
        sleep(secs(1)).await;
        client.handle().reconnect_now();
    }
    sleep(secs(1)).await;
    for want in ["open 1", "closed_locally Some(0)"] {
        assert_eq!(word(&client.next().await.unwrap().unwrap()), want);
    }
    // The second connection has opened and ended; the third is not open yet.
    assert!(timeout(secs(3), client.next()).await.is_err());
    assert_eq!(events(&mut client).await, ["open 1"]);
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_error_is_not_reported_after_a_reconnect() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, text("a"), Hang]]);
    let mut client = server.over_pipes().inbox(0).retrier(DOUBLING.max_attempts(1).build().unwrap()).connect();
    client.connected().await.unwrap_err();
    client.handle().reconnect_now();
    client.connected().await.unwrap();
    assert_eq!(events(&mut client).await, ["lost None", "open 1", "a"]);
}

#[tokio::test(start_paused = true)]
async fn messages_yields_only_messages() {
    let server =
        ScriptedServer::new([vec![Upgrade, text("a"), Wait(secs(1))], vec![Upgrade, text("b"), close(1000, "")]]);
    let messages: Vec<_> =
        server.over_pipes().connect().messages().map(|message| message.unwrap().to_string()).collect().await;
    assert_eq!(messages, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn closing_the_sink_flushes_and_keeps_the_connection() {
    let server = ScriptedServer::new([vec![Upgrade, Echo]]);
    let mut client = server.over_pipes().connect();
    client.feed(Message::text("a")).await.unwrap();
    SinkExt::close(&mut client).await.unwrap();
    assert_eq!(events(&mut client).await, ["open 1", "a"]);
}
