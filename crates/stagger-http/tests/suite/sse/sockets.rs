//! The client on sockets, over hyper-util's client and reqwest's.

use core::net::SocketAddr;
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::rt::TokioExecutor;
use stagger::{Policy, StopReason, policy};
use stagger_http::sse::{Client, ConnectionError, Event};
use stagger_kit::{Port, Program, Ready, Server, Stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::scripted_server::{run, take};
use super::{ms, secs};

const QUICK: Policy = policy!(constant(ms(1)).jitter(Jitter::None).unlimited_attempts());
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The heads of the requests that have arrived.
type Arrived = Arc<Mutex<Vec<String>>>;

/// Accepts connections, and answers the n-th with the n-th of these pieces, each in a write of its own; then closes it.
async fn serve(answers: Vec<Vec<String>>) -> (SocketAddr, Arrived) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, arrived) = (listener.local_addr().unwrap(), Arrived::default());
    let heads = Arc::clone(&arrived);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_head(&mut stream).await;
            heads.lock().unwrap().push(head);
            stream.set_nodelay(true).unwrap();
            for piece in answer {
                stream.write_all(piece.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    (address, arrived)
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn over_hyper(url: &str) -> Client {
    let client: Hyper<_, Empty<Bytes>> = Hyper::builder(TokioExecutor::new()).build_http();
    Client::with_service(client).url(url).retrier(QUICK).connect()
}

/// Returns a client over each HTTP client.
fn clients(url: &str) -> Vec<(&'static str, Client)> {
    vec![
        ("hyper-util", over_hyper(url)),
        #[cfg(feature = "reqwest-middleware")]
        ("reqwest", Client::with_reqwest(reqwest::Client::new()).url(url).retrier(QUICK).connect()),
        #[cfg(feature = "reqwest-middleware")]
        ("reqwest with middleware", {
            let retry = stagger_http::reqwest::RetryMiddleware::new(QUICK);
            let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(retry).build();
            Client::with_reqwest(client).url(url).retrier(QUICK).connect()
        }),
    ]
}

#[tokio::test]
async fn a_stream_is_continued_over_every_http_client() {
    for n in 0..clients("http://x").len() {
        let killed = vec![
            HEAD.to_owned(),
            chunk("\u{FEFF}id: 1\r"),
            chunk("\ndata: a\r"),
            chunk("\n\r"),
            chunk("\nid: 2\ndata: b"),
            // The chunk is not complete when the connection ends.
            "ff\r\n\n\n".to_owned(),
        ];
        let ended = vec![HEAD.to_owned(), chunk("data: c\n\n"), "0\r\n\r\n".to_owned()];
        let no_content = vec!["HTTP/1.1 204 No Content\r\n\r\n".to_owned()];
        let unavailable =
            vec!["HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned()];
        let (address, arrived) = serve(vec![killed, unavailable, ended, no_content]).await;
        let (name, client) = clients(&format!("http://{address}/events")).remove(n);
        let (told, fatal) = run(client).await;
        let data: Vec<_> = told.iter().map(String::as_str).filter(|event| event.starts_with("message")).collect();
        assert_eq!((data, fatal.is_none()), (vec!["message: a", "message: b", "message: c"], true), "{name}: {told:?}");
        let heads = arrived.lock().unwrap();
        assert_eq!(heads.len(), 4, "{name}: one request for each attempt: {told:?}");
        assert!(heads.iter().all(|head| head.starts_with("GET /events HTTP/1.1\r\n")), "{name}");
        let ids: Vec<_> =
            heads.iter().map(|head| head.lines().find(|line| line.starts_with("last-event-id"))).collect();
        assert_eq!(ids, [None, Some("last-event-id: 2"), Some("last-event-id: 2"), Some("last-event-id: 2")], "{name}");
    }
}

#[tokio::test]
async fn no_part_of_a_url_is_in_an_error() {
    let broken = vec![HEAD.to_owned(), "zz\r\n".to_owned()];
    let (address, _) = serve(vec![broken.clone(), broken.clone(), broken]).await;
    let refused = Port::reserve().unwrap();
    for address in [address, refused.address()] {
        for (name, mut client) in clients(&format!("http://user:secret@{address}/secret?token=secret")) {
            let closed = loop {
                if let Event::Closed(closed) = client.next().await.unwrap().unwrap() {
                    break closed;
                }
            };
            assert!(matches!(closed.cause, ConnectionError::Http(_)), "{name}: {closed:?}");
            let text = format!("{closed:?} {}", closed.cause);
            assert!(!text.contains("secret"), "{name}: {text}");
        }
    }
}

#[cfg(feature = "reqwest-middleware")]
#[tokio::test]
async fn a_request_that_reqwest_can_never_send_stops_the_client() {
    let few = QUICK.to_builder().max_attempts(3).build().unwrap();
    let client = Client::with_reqwest(reqwest::Client::new()).url("ftp://server.test/?token=secret").retrier(few);
    let (events, fatal) = run(client.connect()).await;
    let fatal = fatal.unwrap();
    assert_eq!((events.len(), fatal.stop_reason(), fatal.attempts()), (1, StopReason::Permanent, 1));
    assert!(!format!("{fatal:?} {fatal}").contains("secret"), "{fatal:?}");
}

#[tokio::test]
async fn a_line_without_an_end_is_cut_at_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = over_hyper(&format!("http://{}", listener.local_addr().unwrap()));
    let hostile = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(HEAD.as_bytes()).await.unwrap();
        let piece = chunk(&"x".repeat(1 << 16));
        let mut written = 0_usize;
        while stream.write_all(piece.as_bytes()).await.is_ok() {
            written += piece.len();
        }
        written
    });
    take(&mut client, 1).await;
    let (told, fatal) = run(client).await;
    assert_eq!(told, ["closed: a line is longer than an event of 1048576 bytes; raise max_event_bytes"]);
    assert_eq!(fatal.map(|fatal| fatal.stop_reason()), Some(StopReason::Permanent));
    // What the sockets buffer is added to the limit.
    let written = hostile.await.unwrap();
    assert!((1 << 20..32 << 20).contains(&written), "{written} bytes");
}

#[tokio::test]
async fn dropping_the_client_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = over_hyper(&format!("http://{}", listener.local_addr().unwrap()));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(HEAD.as_bytes()).await.unwrap();
        stream.read(&mut [0; 16]).await
    });
    take(&mut client, 1).await;
    drop(client);
    assert!(matches!(server.await.unwrap(), Ok(0) | Err(_)));
}

#[cfg(feature = "reqwest-middleware")]
#[tokio::test]
async fn a_reservation_of_another_origin_is_not_shown_to_the_first() {
    let reserved = "HTTP/1.1 503 x\r\nstagger-reservation: 1;token=000102030405060708090a0b0c0d0e0f\r\n\
                    content-length: 0\r\nconnection: close\r\n\r\n";
    let (other, _) = serve(vec![vec![reserved.to_owned()]]).await;
    let redirect =
        format!("HTTP/1.1 307 x\r\nlocation: http://{other}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let ok = vec![HEAD.to_owned(), chunk("data\n\n")];
    let (first, arrived) = serve(vec![vec![redirect], vec![reserved.to_owned()], ok]).await;
    let client = Client::with_reqwest(reqwest::Client::new()).url(format!("http://{first}/")).retrier(QUICK);
    assert_eq!(take(&mut client.connect(), 3).await[2], "open by attempt 3");
    let tokens: Vec<_> =
        arrived.lock().unwrap().iter().map(|head| head.contains("stagger-reservation-token")).collect();
    assert_eq!(tokens, [false, false, true]);
}

#[cfg(feature = "reqwest-middleware")]
#[tokio::test]
async fn a_redirect_to_another_origin_stops_a_client_within_its_origin() {
    let ok = || vec![HEAD.to_owned(), chunk("data\n\n")];
    let moved =
        |to: &str| vec![format!("HTTP/1.1 307 x\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")];
    let (other, arrived_there) = serve(vec![ok()]).await;
    for (to, is_followed) in [("/events".to_owned(), true), (format!("http://{other}/"), false)] {
        let (first, arrived) = serve(vec![moved(&to), ok()]).await;
        let request = move |_| {
            let request = http::Request::get(format!("http://{first}/")).header("x-api-key", "secret");
            core::future::ready(request.body(reqwest::Body::default()).map_err(Into::into))
        };
        let http = reqwest::Client::builder().redirect(stagger_http::reqwest::within_origin()).build().unwrap();
        let client = Client::with_reqwest(http).request(request).retrier(QUICK);
        let seen = take(&mut client.connect(), 1).await;
        assert_eq!(seen[0] == "open by attempt 1", is_followed, "{to}: {seen:?}");
        assert_eq!(arrived.lock().unwrap().len(), if is_followed { 2 } else { 1 }, "{to}");
    }
    assert!(arrived_there.lock().unwrap().is_empty());
}

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
