//! Checks the page about server-sent events against the client.

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

use super::tables::{numbers, table};

const PAGE: &str = include_str!("../../../../docs/guide/sse.md");

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
    let rows = table(PAGE, "the server answers with");
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
async fn an_absurd_retry_counts_as_five_minutes() {
    assert!(
        PAGE.contains("| `retry: 99999999999` | as if it had sent 5 min (`max_retry`), or the policy's `max_hint`;")
    );
    let mut client = client(200, "text/event-stream", "retry: 99999999999\n");
    let capped = loop {
        if let Event::RetryCapped { asked, used } = client.next().await.unwrap().unwrap() {
            break (asked, used);
        }
    };
    assert_eq!(capped, (Duration::from_millis(99_999_999_999), Duration::from_secs(300)));
}

#[test]
fn the_delays_of_the_mcp_sdk_are_those_in_the_page() {
    assert!(PAGE.contains("The SDK for TypeScript waits 1 s and 1.5 s, without jitter, and then gives up"));
    let policy = MCP_SDK.policy();
    let delays: Vec<_> = policy.schedule(Seed::new(1)).take(2).collect();
    let attempts = policy.max_attempts().map(NonZeroU32::get);
    assert_eq!((delays, attempts), (vec![Duration::from_secs(1), Duration::from_millis(1500)], Some(3)));
}
