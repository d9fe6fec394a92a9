//! Checks the two tables of the page about WebSockets against the client.

use std::io;

use core::time::Duration;
use stagger::{Jitter, Policy, StopReason};
use stagger_ws::ReconnectLoop;
use stagger_ws::codes::{CloseAction, rfc6455};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::tables::{numbers, table};

const PAGE: &str = include_str!("../../../../docs/guide/websocket.md");

#[test]
fn every_close_code_has_the_effect_in_the_page() {
    let rows = table(PAGE, "the server closes with");
    for code in 1000..=4999 {
        let named = rows.iter().find(|(named, _)| numbers(named).contains(&code));
        let (_, then) = named.or_else(|| rows.iter().find(|(named, _)| named.contains("not named"))).expect("a row");
        let meaning = match rfc6455().action(code, "") {
            CloseAction::End => "the stream ends without an error".to_owned(),
            CloseAction::Fatal => "stop: the same bytes would fail again".to_owned(),
            CloseAction::Reconnect => "reconnect".to_owned(),
            CloseAction::ReconnectUnhealthy => "reconnect, and the connection does not count as healthy".to_owned(),
            CloseAction::Reauthenticate => "fresh credentials, once".to_owned(),
            CloseAction::ReconnectWithin { from, to } => {
                format!("reconnect after {} to {} s, or as the reason advises", from.as_secs(), to.as_secs())
            }
            other => panic!("{code}: {other:?} is not on the page"),
        };
        assert_eq!(*then, meaning, "{code}");
    }
}

/// Returns how many of three allowed attempts a client makes if the server always answers with `status`, and why it stops.
async fn attempts(status: u16) -> (u32, StopReason) {
    let policy = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(3).build().unwrap();
    let mut links = ReconnectLoop::builder()
        .url("ws://server.test/")
        .retrier(policy)
        .connector(move |_| async move {
            let (ours, mut theirs) = duplex(4096);
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(theirs.read_u8().await.unwrap());
                }
                let answer = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n");
                theirs.write_all(answer.as_bytes()).await.unwrap();
            });
            io::Result::Ok(ours)
        })
        .reconnect_loop();
    let fatal = links.next_connection().await.unwrap_err();
    (fatal.attempts(), fatal.stop_reason())
}

#[tokio::test(start_paused = true)]
async fn every_rejection_has_the_effect_in_the_page() {
    let rows = table(PAGE, "the server answers the upgrade with");
    for status in 300..=599 {
        let class = format!("{}xx", status / 100);
        let row = rows.iter().find(|(named, _)| numbers(named).contains(&status) || *named == class);
        let (_, then) = row.expect("a row");
        let want = match then.as_str() {
            "stop" => (1, StopReason::Permanent),
            "fresh credentials, once" => (2, StopReason::Permanent),
            "backoff" => (3, StopReason::Attempts),
            other => panic!("{other}: not a reaction of the client"),
        };
        assert_eq!(attempts(status).await, want, "{status}: {then}");
    }
}
