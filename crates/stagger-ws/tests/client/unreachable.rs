//! A client without a limit does not give up, but tells.

use futures_util::StreamExt;
use stagger::profile::WEB_SOCKET;
use stagger::{Jitter, Retrier, Seed, StopReason};
use stagger_ws::{ConnectionState, Event};
use tokio::time::timeout;

use super::events::events;
use super::peer::Step::{Echo, Hang, Upgrade, Wait};
use super::peer::{close, rejection};
use super::scripted_server::{DOUBLING, ScriptedServer, ms, secs, seeded};

/// After two minutes, an outage is not over.
#[tokio::test(start_paused = true)]
async fn the_default_client_outlasts_an_outage_of_an_hour() {
    let mut script = vec![vec![Upgrade, Wait(secs(60))]];
    script.extend(vec![rejection(503, ""); 200]);
    script.push(vec![Upgrade, close(1000, ""), Hang]);
    let server = ScriptedServer::new(script);
    let retrier = Retrier::new(WEB_SOCKET.policy()).seed(Seed::new(1));
    let seen = events(&mut server.over_pipes().retrier(retrier).connect()).await;
    assert_eq!(seen.last().map(String::as_str), Some("closed None"), "{seen:?}");
    assert!(server.times()[201] > secs(1_800), "{:?}", server.times()[201]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_an_event_after_ten_failed_attempts_and_when_it_has_lasted_twice_as_long() {
    let mut script = vec![rejection(503, ""); 24];
    script.push(vec![Upgrade, close(1000, ""), Hang]);
    let server = ScriptedServer::new(script);
    let policy = DOUBLING.cap(secs(1)).jitter(Jitter::None).unlimited_attempts();
    let seen = events(&mut server.over_pipes().retrier(seeded(policy, 7)).connect()).await;
    let reports: Vec<_> = seen.iter().filter(|word| word.starts_with("unreachable")).collect();
    assert_eq!(reports, ["unreachable 10 9", "unreachable 19 18"]);
    let tenth = seen.iter().position(|word| word == "unreachable 10 9").unwrap();
    assert_eq!(tenth, 10, "it comes after the tenth failure: {seen:?}");
    assert_eq!(&seen[26..], ["open 25", "closed None"]);
}

/// For a banner that is shown until a connection is open.
#[tokio::test(start_paused = true)]
async fn the_state_and_each_failure_say_unreachable_until_a_connection_opens() {
    let mut script = vec![rejection(503, ""); 12];
    script.push(vec![Wait(secs(1)), Upgrade, Echo]);
    let server = ScriptedServer::new(script);
    let policy = DOUBLING.cap(secs(1)).jitter(Jitter::None).unlimited_attempts();
    let mut client = server.over_pipes().retrier(seeded(policy, 7)).connect();
    let mut failures = Vec::new();
    let state = client.handle().state();
    while let Some(Ok(event)) = timeout(secs(60), client.next()).await.unwrap() {
        let shown = match &*state.borrow() {
            ConnectionState::Waiting { unreachable, .. } | ConnectionState::Connecting { unreachable } => *unreachable,
            _ => None,
        };
        match event {
            Event::Closed(closed) => {
                assert_eq!(closed.unreachable, shown);
                failures.push(closed.unreachable.map(|it| it.attempts));
            }
            Event::Open(_) => {
                assert_eq!(shown, None);
                break;
            }
            _ => {}
        }
    }
    assert_eq!(failures, [&[None; 9][..], &[Some(10), Some(11), Some(12)]].concat());
}

#[tokio::test(start_paused = true)]
async fn with_max_attempts_the_client_gives_up_as_before() {
    let server = ScriptedServer::new(vec![rejection(503, ""); 20]);
    let policy = DOUBLING.cap(ms(1_000)).max_attempts(10).build().unwrap();
    let mut reconnect = server.over_pipes().retrier(policy).reconnect_loop();
    let fatal = reconnect.next_connection().await.unwrap_err();
    assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Attempts, 10));
}

/// An endpoint that says that it is gone is not asked again, with or without a limit.
#[tokio::test(start_paused = true)]
async fn gone_stops_at_once() {
    for (script, reason) in [
        (vec![rejection(410, "")], StopReason::Permanent),
        (vec![vec![Upgrade, close(1008, "policy"), Hang]], StopReason::Permanent),
    ] {
        let server = ScriptedServer::new(script);
        let mut reconnect = server.over_pipes().retrier(WEB_SOCKET.policy()).reconnect_loop();
        let fatal = super::reconnect_loop::run(&mut reconnect).await.unwrap_err();
        assert_eq!(fatal.stop_reason(), reason);
        assert_eq!(server.times().len(), 1);
    }
}
