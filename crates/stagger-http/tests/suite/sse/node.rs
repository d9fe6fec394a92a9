//! A server of Node that breaks its connections, and is killed.

use core::time::Duration;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::rt::TokioExecutor;
use stagger::{Policy, policy};
use stagger_http::sse::{Client, Event};
use stagger_kit::{Port, Program, Ready, Server, Stream};
use tokio::time::timeout;

use super::{ms, secs};

const QUICK: Policy = policy!(constant(ms(1)).jitter(Jitter::None).unlimited_attempts());
/// What the server asks for; much longer than the policy waits.
const RETRY: Duration = ms(40);
const LAST: u32 = 30;

#[tokio::test]
async fn every_event_of_a_node_server_that_breaks_its_connections_is_received_once() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let notes = directory.path().join("notes");
    let program = Program::find("node")
        .unwrap()
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/sse/numbers.js"))
        .env("PORT", port.number().to_string())
        .env("NOTES", &notes)
        .env("LAST", LAST.to_string())
        .env("RETRY_MS", RETRY.as_millis().to_string());
    let mut server = Server::start(program, Ready::Line(Stream::Stdout, "listening".into()), secs(60)).unwrap();
    let network: Hyper<_, Empty<Bytes>> = Hyper::builder(TokioExecutor::new()).build_http();
    let url = format!("http://{}/numbers", port.address());
    let mut client = Client::with_service(network).url(url).retrier(QUICK).connect();
    let (mut received, mut waits) = (Vec::new(), Vec::new());
    while let Some(event) = timeout(secs(60), client.next()).await.expect("an event within 60 s") {
        match event.unwrap() {
            Event::Message(message) => {
                received.push(message.last_event_id.parse::<u32>().unwrap());
                assert_eq!(received.last().copied(), u32::try_from(received.len()).ok(), "{received:?}");
                assert_eq!(message.data, format!("number\n{}", message.last_event_id));
                if received.len() == 13 {
                    server.kill();
                    server.restart().unwrap();
                }
            }
            Event::Closed(closed) => waits.extend(closed.retry_in),
            _ => {}
        }
    }
    assert_eq!(received.last(), Some(&LAST));
    assert!(waits.len() >= 10 && waits.iter().all(|&wait| wait >= RETRY), "{waits:?}");
    // Each request names the last event that was received before it. While the server was down, none arrived.
    let requests = fs::read_to_string(&notes).unwrap();
    let mut requests: Vec<_> = requests.lines().collect();
    assert_eq!(requests.remove(0), "GET none");
    let after = requests.iter().map(|request| request.strip_prefix("GET ").unwrap().parse().unwrap());
    let after: Vec<u32> = after.collect();
    assert!(after.is_sorted() && after.last() == Some(&LAST), "{requests:?}");
    assert!(after.iter().all(|last| received.contains(last)), "{requests:?}");
}
