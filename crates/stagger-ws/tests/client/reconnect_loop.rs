//! The low-level client: one connection at a time.

use core::task::{Context, Waker};
use core::time::Duration;

use futures_util::{SinkExt, StreamExt};
use stagger::{Policy, Retrier, Seed, StopReason};
use stagger_ws::{Client, Connection, ConnectionState, Message, ReconnectLoop};
use tokio::time::{Instant, advance, sleep, timeout};

use super::peer::Step::{Echo, Hang, Record, Upgrade, Wait};
use super::peer::{close, frame, rejection, text};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs, seeded};

/// Reads a connection until it ends.
pub(super) async fn exhaust(mut connection: Connection<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(Ok(message)) = connection.next().await {
        texts.push(message.to_string());
    }
    texts
}

/// Reads connections until there are no more.
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
async fn the_longest_lengths_do_not_panic() {
    let server = ScriptedServer::new([vec![Upgrade, Echo]]);
    let longest = Duration::MAX;
    let mut reconnect = server
        .over_pipes()
        .keepalive(longest, longest)
        .connect_timeout(longest)
        .close_timeout(longest)
        .reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    connection.send(Message::text("hello")).await.unwrap();
    assert_eq!(connection.next().await.unwrap().unwrap(), Message::text("hello"));
    connection.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_loss_of_a_healthy_connection_spreads_and_further_failures_back_off() {
    let server = ScriptedServer::new([
        vec![Upgrade, Wait(secs(60))],
        rejection(503, ""),
        rejection(503, ""),
        vec![Upgrade, close(1000, "")],
    ]);
    let mut reconnect = server.over_pipes().retrier(DOUBLING.spread(secs(10)).build().unwrap()).reconnect_loop();
    run(&mut reconnect).await.unwrap();
    let at = server.times();
    let spread = at[1] - secs(60);
    assert!(spread <= ms(10_001), "{spread:?}");
    assert_eq!([at[2] - at[1], at[3] - at[2]], [secs(1), secs(2)]);
}

/// A server that dies again soon after its restart must not meet all clients at once.
#[tokio::test(start_paused = true)]
async fn the_loss_of_a_young_connection_is_spread_as_well() {
    let mut waits = Vec::new();
    for seed in 0..40 {
        let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1))], vec![Upgrade, close(1000, "")]]);
        let policy = DOUBLING.base(ms(100)).cap(secs(10)).spread(secs(4)).build().unwrap();
        let retrier = Retrier::new(policy).seed(Seed::new(seed));
        let mut reconnect = server.over_pipes().retrier(retrier).reconnect_loop();
        run(&mut reconnect).await.unwrap();
        waits.push(server.times()[1] - secs(1));
    }
    let early = waits.iter().filter(|&&wait| wait < secs(2)).count();
    // Half of them are expected in each half of the spread; a standard deviation is 3.
    assert!((8..=32).contains(&early) && waits.iter().max() > Some(&secs(3)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_backoff_grows_while_the_server_accepts_and_drops() {
    let server = ScriptedServer::new(vec![vec![Upgrade]; 6]);
    let fatal = run(&mut server.over_pipes().reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Attempts, 6));
    assert_eq!(server.times(), [0, 1, 3, 7, 15, 31].map(secs));
}

#[tokio::test(start_paused = true)]
async fn a_normal_close_ends_the_loop_without_an_error() {
    let server = ScriptedServer::new([vec![Upgrade, close(1000, "done"), Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    assert!(run(&mut reconnect).await.is_ok());
    assert!(reconnect.next_connection().await.unwrap().is_none());
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_only_reconnect_now_starts_again() {
    let server = ScriptedServer::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut reconnect = server.over_pipes().retrier(DOUBLING.max_attempts(2).build().unwrap()).reconnect_loop();
    for _ in 0..3 {
        assert_eq!(reconnect.next_connection().await.unwrap_err().stop_reason(), StopReason::Attempts);
    }
    assert_eq!(server.arrivals().len(), 2);
    reconnect.reconnect_now();
    assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_continues_with_the_same_wait_and_attempt() {
    let server = ScriptedServer::new([rejection(503, ""), vec![Wait(secs(3)), Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    // The rejection is immediate, the second attempt comes after 1 s, and its upgrade 3 s later.
    for _ in 0..39 {
        assert!(timeout(ms(100), reconnect.next_connection()).await.is_err());
    }
    let before = Instant::now();
    assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), 2);
    assert_eq!(before.elapsed(), ms(100));
    assert_eq!(server.times(), [secs(0), secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_ends_a_wait() {
    let server = ScriptedServer::new([vec![], vec![Upgrade, Hang]]);
    let mut reconnect =
        server.over_pipes().retrier(DOUBLING.base(secs(3600)).cap(secs(3600)).build().unwrap()).reconnect_loop();
    assert!(timeout(secs(5), reconnect.next_connection()).await.is_err());
    reconnect.reconnect_now();
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn close_cancels_the_wait_and_is_permanent() {
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
async fn an_unanswered_handshake_ends_with_the_connect_timeout() {
    let server = ScriptedServer::new([vec![Hang], vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().connect_timeout(secs(4)).reconnect_loop();
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.waits(), [("connect_timeout", Some(secs(1)))]);
    assert_eq!(server.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_request_provider_ends_with_the_connect_timeout() {
    let server = ScriptedServer::new([]);
    let mut reconnect = server
        .over_pipes()
        .request(|_| core::future::pending())
        .retrier(DOUBLING.max_attempts(1).build().unwrap())
        .connect_timeout(secs(4))
        .reconnect_loop();
    let before = Instant::now();
    assert_eq!(reconnect.next_connection().await.unwrap_err().cause().name(), "connect_timeout");
    assert_eq!(before.elapsed(), secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_detected_after_interval_and_timeout() {
    let silent_from = secs(33);
    // Frames of any kind arrive until then: unsolicited pongs.
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
async fn a_connection_stays_up_with_pongs_or_without_a_keepalive() {
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
async fn the_keepalive_wakes_the_task_that_polled_last() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1)), text("early"), Hang]]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    let before = Instant::now();
    // A task that polls with this waker is never woken.
    assert!(connection.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    sleep(secs(2)).await;
    timeout(secs(60), exhaust(connection)).await.expect("the peer is detected");
    assert_eq!(before.elapsed(), secs(2 + 20 + 5));
}

// Frames that were not read do not count as silence of the peer.
#[tokio::test(start_paused = true)]
async fn a_peer_is_alive_after_a_long_pause_in_reading() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1)), text("early"), Echo]]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    sleep(secs(3600)).await;
    assert_eq!(connection.next().await.unwrap().unwrap(), Message::text("early"));
    assert!(timeout(secs(3600), connection.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn close_completes_the_handshake_within_the_close_timeout() {
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
async fn a_close_by_the_server_is_replied_to() {
    let server = ScriptedServer::new([vec![Upgrade, close(1000, ""), Record]]);
    run(&mut server.over_pipes().reconnect_loop()).await.unwrap();
    sleep(secs(1)).await;
    // A masked close frame of two bytes.
    assert!(server.arrivals()[0].head.starts_with("[88, 82, "), "{:?}", server.arrivals());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_is_replaced_according_to_the_policy() {
    let server = ScriptedServer::new(vec![vec![Upgrade, Hang]; 3]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    for attempt in 1..=3 {
        assert_eq!(reconnect.next_connection().await.unwrap().unwrap().attempt(), attempt);
    }
    assert_eq!(server.times(), [0, 1, 3].map(secs));
    assert_eq!(server.waits(), [("closed_locally", Some(secs(1))), ("closed_locally", Some(secs(2)))]);
}

#[tokio::test(start_paused = true)]
async fn wait_and_uptime_are_measured_at_the_loss_and_not_at_the_next_call() {
    let brief = vec![Upgrade, Wait(secs(1))];
    let server = ScriptedServer::new([brief.clone(), brief, vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    for _ in 0..2 {
        exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
        // Longer than any wait, and longer than the uptime of a healthy connection.
        sleep(secs(100)).await;
    }
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.times(), [0, 101, 202].map(secs));
    // The second loss is the second failure, since an uptime of one second is not healthy.
    let closed = server.closed();
    assert_eq!(closed.iter().map(|closed| closed.attempt).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_late_call_waits_only_for_the_rest_of_the_delay() {
    let server = ScriptedServer::new([vec![Upgrade, Wait(secs(1))], vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().reconnect_loop();
    exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
    sleep(ms(400)).await;
    reconnect.next_connection().await.unwrap().unwrap();
    assert_eq!(server.waits(), [("lost", Some(ms(600)))]);
    assert_eq!(server.times(), [secs(0), secs(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_was_pinged_late_gets_the_whole_timeout() {
    let server = ScriptedServer::new([vec![Upgrade, Echo]]);
    let mut reconnect = server.over_pipes().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut connection = reconnect.next_connection().await.unwrap().unwrap();
    sleep(secs(3600)).await;
    assert!(timeout(secs(3600), connection.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_keepalive_of_zero_is_one_of_a_millisecond() {
    let server = ScriptedServer::new([vec![Upgrade, Hang]]);
    let mut reconnect = server.over_pipes().keepalive(secs(0), secs(0)).reconnect_loop();
    let before = Instant::now();
    exhaust(reconnect.next_connection().await.unwrap().unwrap()).await;
    assert_eq!(before.elapsed(), ms(2));
}

#[tokio::test(start_paused = true)]
async fn the_default_connect_timeout_is_ten_seconds() {
    let server = ScriptedServer::new([vec![Hang], vec![Upgrade, Hang]]);
    server.over_pipes().reconnect_loop().next_connection().await.unwrap().unwrap();
    assert_eq!(server.times(), [secs(0), secs(11)]);
}

// The machine sleeps for an hour, right after a server restart has disconnected its clients.
#[tokio::test(start_paused = true)]
async fn clients_of_a_machine_that_slept_come_back_within_a_spread_and_not_at_once() {
    let policy = Policy::exponential(ms(500), secs(30)).spread(secs(10)).unlimited_attempts().stable_after(secs(10));
    let mut clients = Vec::new();
    for seed in 0..50 {
        let server = ScriptedServer::new([vec![Upgrade, close(1001, "")], vec![Upgrade, Hang]]);
        let client = server.over_pipes().retrier(seeded(policy, seed)).connect();
        clients.push((server, client));
    }
    sleep(ms(1)).await;
    advance(secs(3600)).await;
    sleep(ms(1)).await;
    let woken = Instant::now();
    let is_waiting = |client: &Client| match *client.handle().state().borrow() {
        ConnectionState::Waiting { until, .. } => until >= woken && until <= woken + secs(10),
        _ => false,
    };
    let waiting = clients.iter().filter(|(_, client)| is_waiting(client)).count();
    assert!(waiting >= 45, "{waiting} of 50 wait");
    sleep(secs(10)).await;
    let mut in_second = [0; 11];
    for (server, _) in &clients {
        let times = server.times();
        assert_eq!(times.len(), 2, "{times:?}");
        in_second[usize::try_from((times[1] - secs(3600)).as_secs()).unwrap()] += 1;
    }
    assert!(in_second.iter().all(|number| *number <= 12), "{in_second:?}");
}
