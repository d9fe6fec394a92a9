//! Rejections that browsers can read: the WebSocket is accepted and closed.

use core::net::SocketAddr;
use core::time::Duration;

use axum::Router;
use axum::response::Response;
use axum::routing::any;
use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::{Admission, Reservation, Secret};
use stagger_ws::ReconnectAdvice;
use stagger_ws::server::{AcceptError, AdmittedUpgrade, Drain, RejectBy, Sockets, SocketsBuilder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::support::{
    SECOND, connect, dial, echo, eventually, on_loopback, rejection_headers, request_rejected, small, unlimited,
};

/// Returns a server that admits one client per second and closes browsers.
pub(crate) fn strict() -> SocketsBuilder {
    let admission =
        Admission::per_second(1).burst(1).tolerance(Duration::ZERO, 60 * SECOND).build(Secret::new([1; 16])).unwrap();
    Sockets::builder(admission).websocket_config(small()).reject_by(RejectBy::browser)
}

/// Returns the request of a page, with the headers that Chromium 150 sends.
fn of_chromium(target: &str, protocols: &str) -> String {
    let protocols =
        if protocols.is_empty() { String::new() } else { format!("Sec-WebSocket-Protocol: {protocols}\r\n") };
    format!(
        "GET {target} HTTP/1.1\r\nHost: feed.example\r\nConnection: Upgrade\r\nPragma: no-cache\r\n\
         Cache-Control: no-cache\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/150.0.0.0 Safari/537.36\r\nUpgrade: websocket\r\nOrigin: https://chat.example\r\n\
         Sec-WebSocket-Version: 13\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{protocols}\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    )
}

/// Starts a server, by tungstenite or by axum.
pub(crate) fn serve(sockets: &Sockets, by_axum: bool) -> (SocketAddr, JoinSet<()>) {
    let (listener, address) = on_loopback();
    let (server, mut tasks) = (sockets.clone(), JoinSet::new());
    if by_axum {
        let handler = |upgrade: AdmittedUpgrade| async {
            let upgrade: Response =
                upgrade.map(|upgrade| upgrade.protocols(["chat"])).on_upgrade(async |mut socket| {
                    while let Some(Ok(message)) = socket.next().await {
                        _ = socket.send(message).await;
                    }
                });
            upgrade
        };
        let app = Router::new().route("/feed", any(handler)).with_state(server);
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
    } else {
        tasks.spawn(async move { server.serve(listener, echo).await });
    }
    (address, tasks)
}

/// Sends a page's request, and returns the connection behind the head of the response, and the head.
async fn page(address: SocketAddr, target: &str, protocols: &str) -> (TcpStream, String) {
    page_from("127.0.0.1", address, target, protocols).await
}

/// Sends a page's request from this address.
async fn page_from(from: &str, address: SocketAddr, target: &str, protocols: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(of_chromium(target, protocols).as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(20 * SECOND, stream.read_u8()).await.expect("in time").unwrap());
    }
    (stream, String::from_utf8(head).unwrap().to_lowercase())
}

/// Reads a close frame as bytes: code and reason.
async fn close_frame(stream: &mut TcpStream) -> (u16, String) {
    let mut header = [0; 2];
    timeout(20 * SECOND, stream.read_exact(&mut header)).await.expect("in time").unwrap();
    assert_eq!(header[0], 0x88, "a close frame, and nothing before it");
    let mut payload = vec![0; usize::from(header[1])];
    stream.read_exact(&mut payload).await.unwrap();
    let reason = payload.split_off(2);
    (u16::from_be_bytes([payload[0], payload[1]]), String::from_utf8(reason).unwrap())
}

/// Opens the connection of a page that is rejected, and returns its reservation.
pub(crate) async fn rejected(address: SocketAddr, target: &str, protocols: &str) -> (TcpStream, Reservation) {
    let (mut stream, head) = page(address, target, protocols).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    let (code, reason) = close_frame(&mut stream).await;
    assert_eq!(code, 1013, "{reason}");
    (stream, ReconnectAdvice::reservation(&reason).expect("a reservation"))
}

/// Rejects a page, and admits it by its reservation.
pub(crate) async fn returns_by_its_reservation(sockets: &Sockets, address: SocketAddr, target: &str) {
    let (_first, head) = page(address, target, "").await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    let (mut stream, Reservation { after, token }) = rejected(address, target, "").await;
    stream.write_all(&REPLY).await.unwrap();
    ended(&mut stream).await;
    // The time of the next client is already reserved, so without the token this one would be rejected again.
    let _next = rejected(address, target, "chat").await;
    sleep(after).await;
    let (_second, head) = page(address, target, &format!("stagger-reservation.{token}")).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    eventually("the page is admitted", || sockets.snapshot().accepted == 2).await;
}

/// A masked close frame with code 1013, as the reply of a browser.
const REPLY: [u8; 8] = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xf5];

/// Waits until the server closes this connection. Returns how long that took.
async fn ended(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    let mut rest = [0; 64];
    let read = timeout(20 * SECOND, stream.read(&mut rest)).await.expect("closed by the server");
    assert!(read.as_ref().map_or(true, |&read| read == 0), "{read:?}");
    start.elapsed()
}

#[tokio::test]
async fn a_browser_gets_a_close_and_any_other_client_a_503_with_successive_reservations() {
    for by_axum in [false, true] {
        let sockets = strict().build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let target = |stream| async move {
            client_async_with_config("ws://feed.example/feed", stream, Some(small())).await.map(|(socket, _)| socket)
        };
        let _first = target(TcpStream::connect(address).await.unwrap()).await.unwrap();
        let (mut stream, by_close) = rejected(address, "/feed", "").await;
        let headers = rejection_headers(target(TcpStream::connect(address).await.unwrap()).await.unwrap_err());
        let by_response = stagger_http::hint::reservation(&headers).unwrap();
        // One queue: a second each.
        let between = by_response.after.abs_diff(by_close.after);
        assert!(by_close.after <= SECOND && by_response.after > by_close.after, "{by_close:?} {by_response:?}");
        assert!(between <= SECOND + Duration::from_millis(1), "{between:?}");
        stream.write_all(&REPLY).await.unwrap();
        ended(&mut stream).await;
        let seen = sockets.snapshot();
        assert_eq!((seen.rejected.rate_limited, seen.rejected_by_close, seen.accepted), (2, 1, 1));
        assert_eq!((seen.closed.len(), sockets.active()), (0, 1), "the close is no connection");
    }
}

// Chromium drops a connection without a message if it offers subprotocols and none is selected.
#[tokio::test]
async fn a_reservation_returns_in_the_subprotocol_or_in_the_query_once() {
    for (by_axum, in_query) in [(false, false), (false, true), (true, false), (true, true)] {
        let sockets = strict().build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, head) = page(address, "/feed", "").await;
        assert!(head.starts_with("http/1.1 101 ") && !head.contains("sec-websocket-protocol"), "{head}");
        let (_, Reservation { after, token }) = rejected(address, "/feed", "").await;
        // The time of the next client is already reserved, so without the token this one would be rejected again.
        let _next = rejected(address, "/feed", "chat").await;
        sleep(after).await;
        let (target, protocol) = match in_query {
            true => (format!("/feed?a=b&stagger-reservation={token}"), String::new()),
            false => ("/feed".to_owned(), format!("stagger-reservation.{token}")),
        };
        let (_second, head) = page(address, &target, &protocol).await;
        assert_eq!(head.contains(&format!("sec-websocket-protocol: {protocol}\r\n")), !in_query, "{head}");
        eventually("the page is admitted", || sockets.snapshot().accepted == 2).await;
        let (mut again, head) = page(address, &target, &protocol).await;
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert_eq!(close_frame(&mut again).await.0, 1013, "a token is valid once");
    }
}

#[tokio::test]
async fn a_rejected_page_gets_one_of_its_subprotocols_and_no_token_if_it_has_another() {
    let token = "00000000000000010123456789abcdef";
    for by_axum in [false, true] {
        let sockets = strict().build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let offered = format!("stagger-reservation.{token}, mail, chat");
        for (offered, want) in [(&*offered, "mail"), ("chat", "chat")] {
            let (_stream, head) = page(address, "/feed", offered).await;
            assert!(head.contains(&format!("sec-websocket-protocol: {want}\r\n")), "{head}");
        }
    }
}

#[tokio::test]
async fn what_a_page_sends_before_its_close_is_ignored() {
    for by_axum in [false, true] {
        let sockets = strict().rejection_timeout(60 * SECOND).build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let (mut stream, _) = rejected(address, "/feed", "").await;
        // A subscription of 300 bytes, in two pieces, then a ping.
        let text = [&[0x81, 0xfe, 1, 44, 0, 0, 0, 0][..], &[b'x'; 300]].concat();
        stream.write_all(&text[..100]).await.unwrap();
        stream.write_all(&text[100..]).await.unwrap();
        stream.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await.unwrap();
        // Half of the reply, and the rest.
        stream.write_all(&REPLY[..3]).await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(&REPLY[3..]).await.unwrap();
        assert!(ended(&mut stream).await < 20 * SECOND);
    }
}

#[tokio::test]
async fn a_page_that_never_closes_is_dropped_after_the_timeout() {
    for by_axum in [false, true] {
        let limit = SECOND / 5;
        let sockets = strict().rejection_timeout(limit).build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let start = Instant::now();
        let (mut silent, _) = rejected(address, "/feed", "").await;
        let (mut half, _) = rejected(address, "/feed", "").await;
        half.write_all(&REPLY[..5]).await.unwrap();
        ended(&mut silent).await;
        ended(&mut half).await;
        assert!(start.elapsed() >= limit, "{:?}", start.elapsed());
    }
}

// If the first page held the only handshake, the second one would wait for an hour.
#[tokio::test]
async fn a_page_that_is_being_closed_is_no_handshake() {
    let hour = 3600 * SECOND;
    let sockets = strict().rejection_timeout(hour).max_handshakes(1).first_byte_timeout(hour).build().unwrap();
    let (address, _tasks) = serve(&sockets, false);
    let (_first, _) = page(address, "/feed", "").await;
    let _silent = rejected(address, "/feed", "").await;
    rejected(address, "/feed", "").await;
}

#[tokio::test]
async fn a_flood_is_cut_off_after_64_kib() {
    // What the buffers of the kernel hold beyond the server's limit.
    const MAX_SENT: usize = 32 << 20;
    // The header of a message of 2^62 bytes, of which the rest never comes to an end, and messages of 1,000 bytes.
    let giant = [&[0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4][..], &vec![0x88; 64 << 10]].concat();
    let small = [&[0x82, 0xfe, 0x03, 0xe8, 0, 0, 0, 0][..], &[0x88; 1_000]].concat().repeat(64);
    for (by_axum, flood) in [(false, &giant), (false, &small), (true, &giant), (true, &small)] {
        let sockets = strict().rejection_timeout(3600 * SECOND).build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let (mut stream, _) = rejected(address, "/feed", "").await;
        let mut sent = 0;
        while stream.write_all(flood).await.is_ok() {
            sent += flood.len();
            assert!(sent < MAX_SENT, "the server still reads");
        }
    }
}

#[tokio::test]
async fn peers_that_never_close_take_at_most_max_closing_and_others_get_a_503() {
    for by_axum in [false, true] {
        let sockets = strict().max_closing(3).rejection_timeout(60 * SECOND).build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let mut closing = Vec::new();
        for _ in 0..3 {
            closing.push(rejected(address, "/feed", "").await.0);
        }
        for _ in 0..5 {
            let (_, head) = page(address, "/feed", "").await;
            assert!(head.starts_with("http/1.1 503 ") && head.contains("stagger-reservation: "), "{head}");
        }
        let seen = sockets.snapshot();
        assert_eq!((seen.rejected.rate_limited, seen.rejected_by_close), (8, 3));
        // Each that ends makes room.
        closing[0].write_all(&REPLY).await.unwrap();
        ended(&mut closing[0]).await;
        let mut by_close = false;
        for _ in 0..200 {
            let (_, head) = page(address, "/feed", "").await;
            by_close = head.starts_with("http/1.1 101 ");
            if by_close {
                break;
            }
        }
        assert!(by_close, "a page gets a close again");
    }
}

// macOS has only one address on loopback.
#[cfg(not(target_os = "macos"))]
#[tokio::test]
async fn one_address_takes_at_most_its_share_of_the_closes() {
    for by_axum in [false, true] {
        let settings = strict().max_closing(3).max_closing_per_peer(2).rejection_timeout(60 * SECOND);
        let sockets = settings.build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let (_first, _) = page(address, "/feed", "").await;
        let mut closing = Vec::new();
        for _ in 0..2 {
            closing.push(rejected(address, "/feed", "").await.0);
        }
        let (_, head) = page(address, "/feed", "").await;
        assert!(head.starts_with("http/1.1 503 "), "{head}");
        // All of 127.0.0.0/8 is this machine.
        let other = page_from("127.0.0.2", address, "/feed", "").await;
        assert!(other.1.starts_with("http/1.1 101 "), "{}", other.1);
        // Two by a close each from the first address, and one from the other.
        assert_eq!(sockets.snapshot().rejected_by_close, 3);
    }
}

#[tokio::test]
async fn a_subprotocol_of_the_server_is_selected_in_every_answer() {
    for by_axum in [false, true] {
        let sockets = strict().subprotocols(["chat.v2", "chat.v1"]).build().unwrap();
        let (address, _tasks) = serve(&sockets, by_axum);
        let selected = |head: &str| {
            let lines = head.lines().filter_map(|line| line.strip_prefix("sec-websocket-protocol: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let (_first, head) = page(address, "/feed", "mail, chat.v1, chat.v2").await;
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert_eq!(selected(&head), ["chat.v2"]);
        // Rejected by a close.
        let (_, head) = page(address, "/feed", "mail, chat.v1").await;
        assert_eq!(selected(&head), ["chat.v1"]);
        let (_, head) = page(address, "/feed", "").await;
        assert_eq!(selected(&head), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_knows_the_subprotocol_and_unknown_ones_are_not_selected() {
    let sockets = unlimited().subprotocols(["chat"]).build().unwrap();
    for (offered, want) in [(Some("mail, chat"), Some("chat")), (Some("mail"), None), (None, None)] {
        let (ours, theirs) = duplex(4096);
        let mut request = "ws://feed.example/".into_client_request().unwrap();
        if let Some(offered) = offered {
            request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
        }
        let (accepted, answered) = tokio::join!(sockets.accept(ours), client_async_with_config(request, theirs, None));
        assert_eq!(accepted.unwrap().subprotocol.as_deref(), want, "{offered:?}");
        match answered {
            Ok((_, response)) => {
                let selected = response.headers().get("sec-websocket-protocol").map(|name| name.to_str().unwrap());
                assert_eq!(selected, want);
            }
            // As a browser does.
            Err(error) => assert!(offered == Some("mail"), "{error}"),
        }
    }
}

#[test]
fn settings_that_close_nobody_or_name_no_subprotocol_are_rejected() {
    let error = |settings: SocketsBuilder| settings.build().unwrap_err().to_string();
    assert_eq!(
        error(unlimited().max_closing_per_peer(0)),
        "max_closing_per_peer is 0, which closes no client; use 1 or more, or max_closing(0) to reject by a response"
    );
    assert_eq!(
        error(unlimited().subprotocols(["chat", "two words"])),
        "subprotocol 1 is not a token; use letters, digits and any of !#$%&'*+-.^_`|~"
    );
}

/// Sends the request of a page over a pipe, and reads its close.
async fn close_over_pipe(sockets: &Sockets) -> (AcceptError, CloseFrame) {
    let (ours, theirs) = duplex(4096);
    let mut request = "ws://feed.example/".into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://chat.example".parse().unwrap());
    let client = async {
        let (mut socket, _): (WebSocketStream<_>, _) =
            client_async_with_config(request, theirs, Some(small())).await.unwrap();
        let Some(Ok(Message::Close(Some(frame)))) = socket.next().await else { panic!("no close") };
        assert!(matches!(socket.next().await, None | Some(Err(Error::ConnectionClosed))));
        frame
    };
    let (accepted, frame) = tokio::join!(sockets.accept(ours), client);
    (accepted.map(drop).unwrap_err(), frame)
}

#[tokio::test(start_paused = true)]
async fn without_a_reservation_the_close_has_a_spread() {
    let at_capacity = unlimited().max_connections(1).reject_by(RejectBy::browser).build().unwrap();
    let _first = connect(&at_capacity).await;
    let (error, frame) = close_over_pipe(&at_capacity).await;
    assert!(matches!(error, AcceptError::Rejected(_)), "{error}");
    assert_eq!((u16::from(frame.code), &*frame.reason), (1013, r#"{"retry_after_ms":10000,"spread_ms":5000}"#));
    assert_eq!(at_capacity.snapshot().rejected.at_capacity, 1);
    // No client is told to come back at once, even if the next server is idle.
    let draining = unlimited().reject_by(RejectBy::browser).build().unwrap();
    let _drain = draining.drain(Drain::per_second(10));
    let (_, frame) = close_over_pipe(&draining).await;
    assert_eq!(&*frame.reason, r#"{"retry_after_ms":0,"spread_ms":1000}"#);
    assert_eq!((draining.snapshot().rejected.draining, draining.snapshot().rejected_by_close), (1, 1));
    assert_eq!(request_rejected(&draining).await["retry-after"], "1");
}

#[tokio::test]
async fn a_closure_chooses_by_path_and_the_default_is_a_response() {
    let by_path = |uri: &http::Uri, _: &http::HeaderMap| match uri.path() {
        "/close" => RejectBy::Close,
        _ => RejectBy::Response,
    };
    let sockets = strict().reject_by(by_path).build().unwrap();
    let (address, _tasks) = serve(&sockets, false);
    let _first = dial(address).await.unwrap();
    assert!(page(address, "/close", "").await.1.starts_with("http/1.1 101 "));
    assert!(page(address, "/feed", "").await.1.starts_with("http/1.1 503 "));
    let sockets = unlimited().max_connections(0).build().unwrap();
    let (address, _tasks) = serve(&sockets, false);
    assert!(page(address, "/feed", "").await.1.starts_with("http/1.1 503 "));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_takes_156_bytes_by_a_503_and_205_by_a_close() {
    for (reject_by, want) in [(RejectBy::Response, 156), (RejectBy::Close, 205)] {
        let sockets = strict().reject_by(move |_, _| reject_by).build().unwrap();
        let _first = connect(&sockets).await;
        let (ours, mut theirs) = duplex(4096);
        let client = async {
            theirs.write_all(of_chromium("/feed", "").as_bytes()).await.unwrap();
            let (mut answer, mut length) = ([0; 512], 0);
            // The end of the head, or of the reason.
            while !answer[..length].ends_with(b"close\r\n\r\n") && !answer[..length].ends_with(b"}") {
                length += theirs.read(&mut answer[length..]).await.unwrap();
            }
            let _ = theirs.write_all(&REPLY).await;
            assert_eq!(theirs.read(&mut answer).await.unwrap(), 0, "nothing follows");
            length
        };
        let (rejected, length) = tokio::join!(sockets.accept(ours), client);
        assert!(matches!(rejected, Err(AcceptError::Rejected(_))), "{rejected:?}");
        assert_eq!(length, want, "{reject_by:?}");
    }
}
