//! Checks the pages about WebSockets and server-sent events against the clients.

use core::num::NonZeroU32;
use core::time::Duration;
use std::io;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::Full;
use stagger::profile::MCP_SDK;
use stagger::{Jitter, Policy, Seed, StopReason};
use stagger_http::sse::{Client, Event};
use stagger_ws::ReconnectLoop;
use stagger_ws::codes::{CloseAction, rfc6455};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

const SSE: &str = include_str!("../../../../docs/guide/sse.md");
const WEBSOCKET: &str = include_str!("../../../../docs/guide/websocket.md");

/// Returns the rows of the table with this header: the condition and the reaction.
fn table(page: &str, head: &str) -> Vec<(String, String)> {
    let (_, rows) = page.split_once(&format!("| {head} | then |\n|---|---|\n")).expect("a table");
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.trim_matches('|').split_once('|').expect("two cells"));
    cells.map(|(named, then)| (named.trim().to_owned(), then.trim().to_owned())).collect()
}

/// Returns the numbers in a text.
fn numbers(text: &str) -> Vec<u16> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn every_close_code_has_the_effect_in_the_page() {
    let rows = table(WEBSOCKET, "the server closes with");
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

/// Returns how many of three allowed attempts a client makes if the server always answers with `status`, and why it
/// stops.
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
    let rows = table(WEBSOCKET, "the server answers the upgrade with");
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

/// Creates a client with three attempts, of a server that always answers with this.
fn client(status: u16, content_type: &'static str, stream: &'static str) -> Client {
    let policy = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(3).build().unwrap();
    let server = tower::service_fn(move |_: Request<Full<Bytes>>| async move {
        let response = Response::builder().status(status).header(CONTENT_TYPE, content_type);
        io::Result::Ok(response.body(Full::<Bytes>::from(stream)).unwrap())
    });
    Client::with_service(server).url("http://server.test/").retrier(policy).connect()
}

#[tokio::test(start_paused = true)]
async fn every_answer_has_the_effect_in_the_page() {
    let rows = table(SSE, "the server answers with");
    for status in 200..=599 {
        let class = format!("{}xx", status / 100);
        let named = rows.iter().find(|(named, _)| numbers(named).contains(&status));
        let row = named.or_else(|| rows.iter().find(|(named, _)| named.contains(&class))).expect("a row");
        let mut client = client(status, "text/event-stream", "");
        let mut opened = false;
        let fatal = loop {
            match client.next().await {
                Some(Ok(Event::Open(_))) => opened = true,
                Some(Ok(_)) => {}
                Some(Err(fatal)) => break Some((fatal.attempts(), fatal.stop_reason())),
                None => break None,
            }
        };
        let want = match row.1.as_str() {
            "the stream is open" => (true, Some((3, StopReason::Attempts))),
            "the stream ends for good, without an error" => (false, None),
            "fresh credentials, once" => (false, Some((2, StopReason::Permanent))),
            "backoff" => (false, Some((3, StopReason::Attempts))),
            "stop" => (false, Some((1, StopReason::Permanent))),
            other => panic!("{other}: not a reaction of the client"),
        };
        assert_eq!((opened, fatal), want, "{status}: {row:?}");
    }
    assert_eq!(rows[1], ("200 and any other type, or none".to_owned(), "stop".to_owned()));
    let mut other = client(200, "text/html", "");
    assert!(matches!(other.next().await, Some(Ok(Event::Closed(closed))) if closed.retry_in.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_very_long_retry_counts_as_five_minutes_and_an_absurd_one_not_at_all() {
    assert!(SSE.contains("| `retry: 86400000` | as if it had sent 5 min (`max_retry`), or the policy's `max_hint`;"));
    assert!(SSE.contains("| `retry: 99999999999`, more than 366 days | ignored"));
    // The second one is ignored, or it would be the one that is reported.
    let mut client = client(200, "text/event-stream", "retry: 86400000\nretry: 99999999999\n");
    let capped = loop {
        if let Event::RetryCapped { asked, used } = client.next().await.unwrap().unwrap() {
            break (asked, used);
        }
    };
    assert_eq!(capped, (Duration::from_secs(86_400), Duration::from_secs(300)));
}

#[test]
fn the_delays_of_the_mcp_sdk_are_those_in_the_page() {
    assert!(SSE.contains("The SDK for TypeScript waits 1 s and 1.5 s, without jitter, and then gives up"));
    let policy = MCP_SDK.policy();
    let delays: Vec<_> = policy.schedule(Seed::new(1)).take(2).collect();
    let attempts = policy.max_attempts().map(NonZeroU32::get);
    assert_eq!((delays, attempts), (vec![Duration::from_secs(1), Duration::from_millis(1500)], Some(3)));
}
