//! One connection at a time.

use core::task::{Context, Waker};

use futures_util::{SinkExt, StreamExt};
use stagger::Stop;
use stagger_ws::{Connection, Message, ReconnectLoop};
use tokio::time::{Instant, sleep, timeout};

use super::bench::{Bench, DOUBLING, ms, secs};
use super::peer::Deed::{Echo, Hang, Record, Upgrade, Wait};
use super::peer::{close, frame, refusal, text};

/// Uses a connection until it is lost.
pub(super) async fn exhaust(mut connection: Connection<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(Ok(message)) = connection.next().await {
        texts.push(message.to_string());
    }
    texts
}

/// Uses connections until there are no more, or so long.
pub(super) async fn run(links: &mut ReconnectLoop) -> Result<(), stagger_ws::Fatal> {
    while let Some(connection) = links.next_connection().await? {
        exhaust(connection).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways() {
    let bench = Bench::new([vec![Upgrade, text("hello"), Echo]]);
    let mut links = bench.piped().reconnect_loop();
    let mut link = links.next_connection().await.unwrap().unwrap();
    assert_eq!(link.next().await.unwrap().unwrap(), Message::text("hello"));
    link.send(Message::text("and back")).await.unwrap();
    assert_eq!(link.next().await.unwrap().unwrap(), Message::text("and back"));
    assert_eq!((link.attempt(), link.downtime()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn a_drop_after_a_healthy_life_spreads_and_a_failure_after_it_backs_off() {
    let bench =
        Bench::new([vec![Upgrade, Wait(secs(60))], refusal(503, ""), refusal(503, ""), vec![Upgrade, close(1000, "")]]);
    let mut links = bench.piped().policy(DOUBLING.spread(secs(10)).build().unwrap()).reconnect_loop();
    run(&mut links).await.unwrap();
    let at = bench.times();
    let spread = at[1] - secs(60);
    assert!(spread <= ms(10_001), "{spread:?}");
    assert_eq!([at[2] - at[1], at[3] - at[2]], [secs(1), secs(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_drops_sees_the_backoff_grow() {
    let bench = Bench::new(vec![vec![Upgrade]; 6]);
    let fatal = run(&mut bench.piped().reconnect_loop()).await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (Stop::Attempts, 6));
    assert_eq!(bench.times(), [0, 1, 3, 7, 15, 31].map(secs));
}

#[tokio::test(start_paused = true)]
async fn the_end_that_the_server_wants_is_no_error_and_the_last() {
    let bench = Bench::new([vec![Upgrade, close(1000, "done"), Hang]]);
    let mut links = bench.piped().reconnect_loop();
    assert!(run(&mut links).await.is_ok());
    assert!(links.next_connection().await.unwrap().is_none());
    assert_eq!(bench.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_it_begins_anew_on_demand_only() {
    let bench = Bench::new([vec![], vec![], vec![Upgrade, Echo]]);
    let mut links = bench.piped().policy(DOUBLING.max_attempts(2).build().unwrap()).reconnect_loop();
    for _ in 0..3 {
        assert_eq!(links.next_connection().await.unwrap_err().stop_reason(), Stop::Attempts);
    }
    assert_eq!(bench.arrivals().len(), 2);
    links.reconnect_now();
    assert_eq!(links.next_connection().await.unwrap().unwrap().attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_cancelled_goes_on_with_the_same_wait_and_the_same_attempt() {
    let bench = Bench::new([refusal(503, ""), vec![Wait(secs(3)), Upgrade, Hang]]);
    let mut links = bench.piped().reconnect_loop();
    // The refusal comes at once, the second attempt after 1 s, its upgrade 3 s later.
    for _ in 0..39 {
        assert!(timeout(ms(100), links.next_connection()).await.is_err());
    }
    let before = Instant::now();
    assert_eq!(links.next_connection().await.unwrap().unwrap().attempt(), 2);
    assert_eq!(before.elapsed(), ms(100));
    assert_eq!(bench.times(), [secs(0), secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_cuts_a_wait_short() {
    let bench = Bench::new([vec![], vec![Upgrade, Hang]]);
    let mut links = bench.piped().policy(DOUBLING.base(secs(3600)).cap(secs(3600)).build().unwrap()).reconnect_loop();
    assert!(timeout(secs(5), links.next_connection()).await.is_err());
    links.reconnect_now();
    links.next_connection().await.unwrap().unwrap();
    assert_eq!(bench.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn close_drops_the_attempt_and_the_timer_and_there_is_no_more() {
    let bench = Bench::new([vec![], vec![Upgrade, Hang]]);
    let mut links = bench.piped().reconnect_loop();
    assert!(timeout(ms(500), links.next_connection()).await.is_err());
    assert!(links.next_attempt_at().is_some());
    links.close();
    links.reconnect_now();
    assert!(links.next_connection().await.unwrap().is_none());
    sleep(secs(60)).await;
    assert_eq!(bench.arrivals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_never_answered_ends_with_the_connect_timeout() {
    let bench = Bench::new([vec![Hang], vec![Upgrade, Hang]]);
    let mut links = bench.piped().connect_timeout(secs(4)).reconnect_loop();
    links.next_connection().await.unwrap().unwrap();
    assert_eq!(bench.waits(), [("connect_timeout", Some(secs(1)))]);
    assert_eq!(bench.times(), [secs(0), secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_ends_with_the_connect_timeout_too() {
    let bench = Bench::new([]);
    let mut links = bench
        .piped()
        .request(|_| core::future::pending())
        .policy(DOUBLING.max_attempts(1).build().unwrap())
        .connect_timeout(secs(4))
        .reconnect_loop();
    let before = Instant::now();
    assert_eq!(links.next_connection().await.unwrap_err().cause().name(), "connect_timeout");
    assert_eq!(before.elapsed(), secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_falls_silent_is_found_within_every_and_dead_after() {
    let silent_from = secs(33);
    // Frames of any kind come until then: a pong that nobody asked for.
    let mut deeds = vec![Upgrade];
    deeds.extend((0..33).flat_map(|_| [Wait(secs(1)), frame(0x8a, b"")]));
    deeds.push(Hang);
    let bench = Bench::new([deeds]);
    let mut links = bench.piped().keepalive(secs(20), secs(5)).reconnect_loop();
    let before = Instant::now();
    exhaust(links.next_connection().await.unwrap().unwrap()).await;
    assert_eq!(before.elapsed(), silent_from + secs(20) + secs(5));
    let _ = timeout(ms(1), links.next_connection()).await;
    assert_eq!(bench.waits()[0].0, "keepalive_timeout");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_pings_lives_and_without_a_heartbeat_anybody_does() {
    for (deeds, beating) in [(vec![Upgrade, Echo], true), (vec![Upgrade, Hang], false)] {
        let bench = Bench::new([deeds]);
        let builder = bench.piped().keepalive(secs(20), secs(5));
        let builder = if beating { builder } else { builder.no_keepalive() };
        let mut links = builder.reconnect_loop();
        let link = links.next_connection().await.unwrap().unwrap();
        assert!(timeout(secs(3600), exhaust(link)).await.is_err(), "{:?}", bench.waits());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_a_connection_over_finds_a_silent_peer() {
    let bench = Bench::new([vec![Upgrade, Wait(secs(1)), text("early"), Hang]]);
    let mut links = bench.piped().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut link = links.next_connection().await.unwrap().unwrap();
    let before = Instant::now();
    // Whoever polls like this is never woken.
    assert!(link.poll_next_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
    sleep(secs(2)).await;
    timeout(secs(60), exhaust(link)).await.expect("it is found");
    assert_eq!(before.elapsed(), secs(2 + 20 + 5));
}

/// What nobody reads is no silence of the peer's.
#[tokio::test(start_paused = true)]
async fn whoever_did_not_read_for_long_finds_the_peer_alive() {
    let bench = Bench::new([vec![Upgrade, Wait(secs(1)), text("early"), Echo]]);
    let mut links = bench.piped().keepalive(secs(20), secs(5)).reconnect_loop();
    let mut link = links.next_connection().await.unwrap().unwrap();
    sleep(secs(3600)).await;
    assert_eq!(link.next().await.unwrap().unwrap(), Message::text("early"));
    assert!(timeout(secs(3600), link.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn closing_shakes_hands_and_waits_no_longer_than_it_must() {
    for (last, want) in [(Echo, secs(0)), (Hang, secs(5))] {
        let bench = Bench::new([vec![Upgrade, last]]);
        let mut links = bench.piped().close_timeout(secs(5)).reconnect_loop();
        let link = links.next_connection().await.unwrap().unwrap();
        let before = Instant::now();
        link.close().await;
        assert_eq!(before.elapsed(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_by_the_server_is_answered() {
    let bench = Bench::new([vec![Upgrade, close(1000, ""), Record]]);
    run(&mut bench.piped().reconnect_loop()).await.unwrap();
    sleep(secs(1)).await;
    // A close frame, masked, of two bytes.
    assert!(bench.arrivals()[0].head.starts_with("[88, 82, "), "{:?}", bench.arrivals());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_let_go_of_is_replaced_by_the_policy() {
    let bench = Bench::new(vec![vec![Upgrade, Hang]; 3]);
    let mut links = bench.piped().reconnect_loop();
    for attempt in 1..=3 {
        assert_eq!(links.next_connection().await.unwrap().unwrap().attempt(), attempt);
    }
    assert_eq!(bench.times(), [0, 1, 3].map(secs));
    assert_eq!(bench.waits(), [("closed_locally", Some(secs(1))), ("closed_locally", Some(secs(2)))]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_and_the_life_are_counted_from_the_loss_and_not_from_when_somebody_asks() {
    let brief = vec![Upgrade, Wait(secs(1))];
    let bench = Bench::new([brief.clone(), brief, vec![Upgrade, Hang]]);
    let mut links = bench.piped().reconnect_loop();
    for _ in 0..2 {
        exhaust(links.next_connection().await.unwrap().unwrap()).await;
        // Longer than any wait, and longer than a healthy connection lives.
        sleep(secs(100)).await;
    }
    links.next_connection().await.unwrap().unwrap();
    assert_eq!(bench.times(), [0, 101, 202].map(secs));
    // The second loss is the second failure: one second was not a healthy life.
    let closed = bench.closed();
    assert_eq!(closed.iter().map(|closed| closed.attempt).collect::<Vec<_>>(), [1, 2]);
}
