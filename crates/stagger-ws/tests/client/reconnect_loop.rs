//! One connection at a time.

use core::task::{Context, Waker};

use futures_util::{SinkExt, StreamExt};
use stagger::Stop;
use stagger_ws::{Connection, Message, ReconnectLoop};
use tokio::time::{Instant, sleep, timeout};

use super::peer::Step::{Echo, Hang, Record, Upgrade, Wait};
use super::peer::{close, frame, refusal, text};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs};

/// Uses a connection until it is lost.
pub(super) async fn exhaust(mut connection: Connection<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(Ok(message)) = connection.next().await {
        texts.push(message.to_string());
    }
    texts
}

/// Uses connections until there are no more, or so long.
pub(super) async fn run(reconnect: &mut ReconnectLoop) -> Result<(), stagger_ws::Fatal> {
    while let Some(connection) = reconnect.next_connection().await? {
        exhaust(connection).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways() {
    let server = ScriptedServer::new([vec![Upgrade, text("hello"), Echo]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(connection.next().await.unwrap().unwrap(), Message::text("hello"));
    connection.send(Message::text("and back")).await.unwrap();
    assert_eq!(connection.next().await.unwrap().unwrap(), Message::text("and back"));
    assert_eq!((connection.attempt(), connection.downtime()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_drop_after_a_healthy_life_spreads_and_a_failure_after_it_backs_off() {
    let server = ScriptedServer::new([
        vec![Upgrade, Wait(secs(60))],
        refusal(503, ""),
        refusal(503, ""),
        vec![Upgrade, close(1000, "")],
    ]);
    let mut reconnect = server.over_pipes().policy(DOUBLING.spread(secs(10)).build().unwrap()).reconnect_loop();
    run(&mut reconnect).await.unwrap();
    let at = server.times();
    let spread = at[1] - secs(60);
    assert!(spread <= ms(10_001), "{spread:?}");
    assert_eq!([at[2] - at[1], at[3] - at[2]], [secs(1), secs(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_drops_sees_the_backoff_grow() {
    let server = ScriptedServer::new(vec![vec![Upgrade]; 6]);
    let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (Stop::Attempts, 6));
    assert_eq!(server.times(), [0, 1, 3, 7, 15, 31].map(secs));
}

#[tokio::test(start_paused = true)]
async fn the_end_that_the_server_wants_is_no_error_and_the_last() {
    let server = ScriptedServer::new([vec![Upgrade, close(1000, "done"), Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    assert!(run(&mut reconnect).await.is_ok());
    assert!(reconnect.next_connection().await.unwrap().is_none());
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_it_begins_anew_on_demand_only() {
    let server = ScriptedServer::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut reconnect = server.over_pipes().policy(DOUBLING.max_attempts(2).build().unwrap()).reconnect_loop();
    for _ in 0..3 {
        assert_eq!(reconnect.next_connection().await.unwrap_err().stop_reason(), Stop::Attempts);
    }
    assert_eq!(server.arrivals().len(), 2);
    reconnect.reconnect_now();
    assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_cancelled_goes_on_with_the_same_wait_and_the_same_attempt() {
    let server = ScriptedServer::new([refusal(503, ""), vec![Wait(secs(3)), Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    // The refusal comes at once, the second attempt after 1 s, its upgrade 3 s later.
    for _ in 0..39 {
        assert!(timeout(ms(100), reconnect.next_connection()).await.is_err());
    }
    let before = Instant::now();
    assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), 2);
    assert_eq!(before.elapsed(), ms(100));
    assert_eq!(server.times(), [secs(0), secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_cuts_a_wait_short() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, Hang]]);
    let mut reconnect =
        server.over_pipes().policy(DOUBLING.base(secs(3600)).cap(secs(3600)).build().unwrap()).reconnect_loop();
    assert!(timeout(secs(5), reconnect.next_connection()).await.is_err());
    reconnect.reconnect_now();
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn close_drops_the_attempt_and_the_timer_and_there_is_no_more() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    assert!(timeout(ms(500), reconnect.next_connection()).await.is_err());
    assert!(reconnect.next_attempt_at().is_some());
    reconnect.close();
    reconnect.reconnect_now();
    assert!(reconnect.next_connection().await.unwrap().is_none());
    sleep(secs(60)).await;
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_never_answered_ends_with_the_connect_timeout() {
    let server = ScriptedServer::new([vec![Hang], vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().connect_timeout(secs(4)).reconnect_loop();
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.waits(), [("connect_timeout", Some(secs(1)))]);
    assert_eq!(server.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_ends_with_the_connect_timeout_too() {
    let server = ScriptedServer::new([]);
    let mut reconnect = server
        .over_pipes()
        .request(|_| core::future::pending())
        .policy(DOUBLING.max_attempts(1).build().unwrap())
        .connect_timeout(secs(4))
        .reconnect_loop();
    let before = Instant::now();
    assert_eq!(reconnect.next_connection().await.unwrap_err().cause().name(), "connect_timeout");
    assert_eq!(before.elapsed(), secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_falls_silent_is_found_within_every_and_dead_after() {
    let silent_from = secs(33);
    // Frames of any kind come until then: a pong that nobody asked for.
    let mut steps = vec![Upgrade];
    steps.extend((0..33).flat_map(|_| [Wait(secs(1)), frame(0x8a, b"")]));
    steps.push(Hang);
    let server = ScriptedServer::new([steps]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let before = Instant::now();
    exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
    assert_eq!(before.elapsed(), silent_from + secs(20) + secs(5));
    let _ = timeout(ms(1), reconnect.next_connection()).await;
    assert_eq!(server.waits()[0].0, "keepalive_timeout");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_lives_and_without_a_heartbeat_anybody_does() {
    for (steps, beating) in [(vec![Upgrade, Echo], true), (vec![Upgrade, Hang], false)] {
        let server = ScriptedServer::new([steps]);
        let builder = server.over_pipes().keepalive(secs(20), secs(5));
        let builder = if beating { builder } else { builder.no_keepalive() };
        let mut reconnect = builder.reconnect_loop();
        let connection = reconnect.next_connection().await.unwrap().unwrap();
        assert!(timeout(secs(3600), exhaust(connection)).await.is_err(), "{:?}", server.waits());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_a_connection_over_finds_a_silent_peer() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1)), text("early"), Hang]]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    let before = Instant::now();
    // Whoever polls like this is never woken.
    assert!(connection.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    sleep(secs(2)).await;
    timeout(secs(60), exhaust(connection)).await.expect("it is found");
    assert_eq!(before.elapsed(), secs(2 + 20 + 5));
}

/// What nobody reads is no silence of the peer's.
#[tokio::test(start_paused = true)]
async fn whoever_did_not_read_for_long_finds_the_peer_alive() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1)), text("early"), Echo]]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    sleep(secs(3600)).await;
    assert_eq!(connection.next().await.unwrap().unwrap(), Message::text("early"));
    assert!(timeout(secs(3600), connection.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn closing_shakes_hands_and_waits_no_longer_than_it_must() {
    for (last, want) in [(Echo, secs(0)), (Hang, secs(5))] {
        let server = ScriptedServer::new([vec![Upgrade, last]]);
        let mut reconnect = server.over_pipes().close_timeout(secs(5)).reconnect_loop();
        let connection = reconnect.next_connection().await.unwrap().unwrap();
        let before = Instant::now();
        connection.close().await;
        assert_eq!(before.elapsed(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_by_the_server_is_answered() {
    let server = ScriptedServer::new([vec![Upgrade, close(1000, ""), Record]]);
    run(&mut server.over_pipes().reconnect_loop()).await.unwrap();
    sleep(secs(1)).await;
    // A close frame, masked, of two bytes.
    assert!(server.arrivals()[0].head.starts_with("[88, 82, "), "{:?}", server.arrivals());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_let_go_of_is_replaced_by_the_policy() {
    let server = ScriptedServer::new(vec![vec![Upgrade, Hang]; 3]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    for attempt in 1..=3 {
        assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), attempt);
    }
    assert_eq!(server.times(), [0, 1, 3].map(secs));
    assert_eq!(server.waits(), [("closed_locally", Some(secs(1))), ("closed_locally", Some(secs(2)))]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_and_the_life_are_counted_from_the_loss_and_not_from_when_somebody_asks() {
    let brief = vec![Upgrade, Wait(secs(1))];
    let server = ScriptedServer::new([brief.clone(), brief, vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    for _ in 0..2 {
        exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
        // Longer than any wait, and longer than a healthy connection lives.
        sleep(secs(100)).await;
    }
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.times(), [0, 101, 202].map(secs));
    // The second loss is the second failure: one second was not a healthy life.
    let closed = server.closed();
    assert_eq!(closed.iter().map(|closed| closed.attempt).collect::<Vec<_>>(), [1, 2]);
}
