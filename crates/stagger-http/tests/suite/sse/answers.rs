//! What the responses mean; on tokio's paused clock.

use core::time::Duration;

use stagger::{Policy, StopReason, policy};
use stagger_http::sse::ConnectionError;

use super::scripted_server::{Reply, Server, open, run, send, status, stream, take};
use super::{ms, secs};

const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());

#[tokio::test(start_paused = true)]
async fn a_204_ends_the_stream_for_good_and_without_an_error() {
    let server = Server::new([stream("data: x\n\n"), status(204)]);
    let (told, fatal) = run(server.client().retrier(EXACT).connect()).await;
    let last = "closed: the server ended the stream for good, with 204 No Content";
    assert_eq!((told.last().map(String::as_str), fatal.is_none()), (Some(last), true));
    assert_eq!(server.times(), [0, 1].map(secs));
}

// The Web Platform Tests `request-status-error`, with the statuses that a browser does not retry and this client does.
#[tokio::test(start_paused = true)]
async fn a_status_is_permanent_or_retried() {
    for code in [201, 205, 206, 210, 226, 299, 300, 301, 302, 304, 307, 400, 404, 405, 410, 451, 501, 505] {
        let server = Server::always(status(code));
        let (_, fatal) = run(server.client().retrier(EXACT).connect()).await;
        assert_eq!(fatal.map(|fatal| fatal.stop_reason()), Some(StopReason::Permanent), "{code}");
        assert_eq!(server.times().len(), 1, "{code}");
    }
    for code in [408, 425, 429, 500, 502, 503, 504, 520] {
        let server = Server::new([status(code)]);
        let mut client = server.client().retrier(EXACT).connect();
        assert_eq!(take(&mut client, 2).await[1], "open by attempt 2", "{code}");
        assert_eq!(server.times(), [0, 1].map(secs), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_a_minimum() {
    let busy = Reply::Head(503, vec![("retry-after", "30".to_owned())]);
    let server = Server::new([busy]);
    take(&mut server.client().retrier(EXACT).connect(), 2).await;
    let wait = server.times()[1];
    assert!((secs(30)..=secs(45)).contains(&wait), "{wait:?}");
}

// The Web Platform Tests `format-mime-bogus`, `format-mime-trailing-semicolon` and `format-mime-valid-bogus`.
#[tokio::test(start_paused = true)]
async fn a_response_that_is_no_event_stream_is_permanent() {
    let long = "x".repeat(5000);
    let shown = format!("the response is {:?}; expected text/event-stream", "x".repeat(128));
    let cases = [
        ("text/event-stream", None),
        ("text/event-stream;", None),
        ("text/event-stream;x=bogus", None),
        ("text/event-stream ; charset=windows-1252", None),
        ("Text/Event-Stream", None),
        ("x bogus", Some("the response is \"x bogus\"; expected text/event-stream")),
        ("text/event-stream-too", Some("the response is \"text/event-stream-too\"; expected text/event-stream")),
        ("application/json", Some("the response is \"application/json\"; expected text/event-stream")),
        ("", Some("the response has no content type; expected text/event-stream")),
        (&long, Some(&*shown)),
    ];
    for (content_type, want) in cases {
        let server = Server::always(Reply::Head(200, vec![("content-type", content_type.to_owned())]));
        let mut client = server.client().retrier(EXACT).connect();
        let first = take(&mut client, 1).await.remove(0);
        match want {
            None => assert_eq!(first, "open by attempt 1", "{content_type:?}"),
            Some(want) => {
                assert_eq!(first, format!("closed: {want}"));
                assert!(
                    matches!(client.next().await, Some(Err(fatal)) if fatal.stop_reason() == StopReason::Permanent)
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_exceeds_a_limit_is_permanent_and_the_error_says_which() {
    let endless = vec![send(&"x".repeat(1000)); 3000];
    let cases = [
        (Reply::Stream(endless), "a line is longer than an event of 1048576 bytes; raise max_event_bytes"),
        (
            Reply::Stream(vec![send(&format!("data: {}\n", "x".repeat(1000))); 1100]),
            "an event is longer than 1048576 bytes; raise max_event_bytes",
        ),
        (stream(&format!("id: {}\n", "x".repeat(5000))), "the id of an event is longer than 4096 bytes"),
    ];
    for (reply, want) in cases {
        let server = Server::always(reply);
        let (told, fatal) = run(server.client().retrier(EXACT).connect()).await;
        assert_eq!(told.last().unwrap(), &format!("closed: {want}"));
        let fatal = fatal.unwrap();
        assert_eq!(fatal.stop_reason(), StopReason::Permanent);
        assert!(matches!(fatal.cause(), ConnectionError::TooLong(_)));
        assert_eq!(server.times(), [Duration::ZERO]);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_client_are_transient_unless_nothing_can_be_connected_to() {
    use std::io::ErrorKind::{ConnectionRefused, InvalidData, InvalidInput, NotFound, PermissionDenied, UnexpectedEof};
    for kind in [ConnectionRefused, InvalidData, NotFound, PermissionDenied, UnexpectedEof] {
        let server = Server::new([Reply::Fails(kind), open("")]);
        assert_eq!(take(&mut server.client().retrier(EXACT).connect(), 2).await[1], "open by attempt 2", "{kind:?}");
    }
    let server = Server::always(Reply::Fails(InvalidInput));
    let (_, fatal) = run(server.client().retrier(EXACT).connect()).await;
    assert_eq!(fatal.map(|fatal| fatal.stop_reason()), Some(StopReason::Permanent));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_is_a_timeout() {
    let server = Server::new([Reply::Silence, Reply::Silence, open("")]);
    let mut client = server.client().retrier(EXACT).connect();
    let told = take(&mut client, 3).await;
    assert_eq!(told[..2], ["closed: connect timeout after 30 s"; 2]);
    assert_eq!(server.times(), [secs(0), secs(31), secs(62)]);

    let server = Server::new([Reply::Silence, open("")]);
    take(&mut server.client().retrier(EXACT).connect_timeout(ms(500)).connect(), 2).await;
    assert_eq!(server.times(), [ms(0), ms(1500)]);
    // The longest time is no time limit.
    let server = Server::new([]);
    take(&mut server.client().connect_timeout(Duration::MAX).connect(), 1).await;
}
