//! Admission of upgrades.

use core::future::ready;
use core::time::Duration;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use stagger::admission::{Admission, Secret};
use stagger_http::hint::server_hint;
use stagger_ws::server::{AcceptError, Keepalive, SettingsError, Sockets};
use tokio::io::{AsyncWriteExt as _, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{SECOND, connect, connect_until_admitted, echo, on_loopback, request_rejected, small, unlimited};

const CLIENTS: u32 = 1_000;
const PER_SECOND: u32 = 200;

/// Returns a server that admits one client at a time, exactly on schedule.
fn strict() -> Sockets {
    let admission = Admission::per_second(PER_SECOND)
        .burst(1)
        .tolerance(Duration::ZERO, SECOND)
        .build(Secret::new([1; 16]))
        .unwrap();
    Sockets::builder(admission).websocket_config(small()).build().unwrap()
}

/// Returns the maximum number of times within any interval of a second.
fn in_busiest_second(times: &[Instant]) -> usize {
    let within = |from: Instant| times.iter().filter(|&&time| time >= from && time < from + SECOND).count();
    times.iter().map(|&from| within(from)).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_simultaneous_clients_are_admitted_at_the_rate() {
    let sockets = strict();
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..CLIENTS {
        let sockets = sockets.clone();
        clients.spawn(async move {
            let dial = || {
                let (ours, theirs) = duplex(4096);
                let sockets = sockets.clone();
                tokio::spawn(async move {
                    if let Ok(accepted) = sockets.accept(ours).await {
                        echo(accepted).await;
                    }
                });
                ready(theirs)
            };
            let (_socket, reservations) = connect_until_admitted(dial).await;
            (Instant::now(), reservations)
        });
    }
    let (times, reservations): (Vec<_>, Vec<_>) = clients.join_all().await.into_iter().unzip();
    assert_eq!(in_busiest_second(&times), PER_SECOND as usize);
    // One client is admitted immediately. Each of the others has its own reservation, 5 ms after the previous one.
    let one = SECOND / PER_SECOND;
    let waits: BTreeSet<_> = reservations.iter().flatten().map(|reservation| reservation.after).collect();
    assert!(waits.iter().copied().eq((1..CLIENTS).map(|n| one * n)), "{waits:?}");
    assert!(reservations.iter().all(|reservations| reservations.len() <= 1), "a client needed more than two attempts");
    assert_eq!(start.elapsed(), one * (CLIENTS - 1));
    let seen = sockets.snapshot();
    assert_eq!((seen.accepted, seen.rejected.rate_limited), (u64::from(CLIENTS), u64::from(CLIENTS - 1)));
}

// The same over sockets, where clients may be late but never early.
#[tokio::test]
async fn over_sockets_a_thousand_clients_have_distinct_reservations() {
    stagger_kit::raise_descriptor_limit(2 * u64::from(CLIENTS)).unwrap();
    let rate = 500;
    let admission = Admission::per_second(rate)
        .burst(1)
        .tolerance(Duration::ZERO, 60 * SECOND)
        .build(Secret::new([1; 16]))
        .unwrap();
    // On a busy machine the clients send their requests late; how long the server waits for them is not tested here.
    let sockets = Sockets::builder(admission)
        .websocket_config(small())
        .first_byte_timeout(60 * SECOND)
        .handshake_timeout(60 * SECOND)
        .build()
        .unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    let _served = tokio::spawn(async move { server.serve(listener, echo).await });
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..CLIENTS {
        clients.spawn(connect_until_admitted(move || async move { TcpStream::connect(address).await.unwrap() }));
    }
    let admitted = clients.join_all().await;
    let took = start.elapsed();
    assert!(took >= SECOND / rate * (CLIENTS - 1), "{took:?}");
    // Clients that arrive while there is room are admitted without a reservation: few on an idle machine, most where
    // they arrive more slowly than they are admitted. No reservation is given twice.
    let tokens: Vec<_> =
        admitted.iter().flat_map(|(_, reservations)| reservations).map(|reservation| reservation.token).collect();
    let distinct: HashSet<_> = tokens.iter().collect();
    assert!(
        tokens.len() > CLIENTS as usize / 20 && distinct.len() == tokens.len(),
        "{} of {}",
        distinct.len(),
        tokens.len()
    );
    assert_eq!(sockets.active(), CLIENTS as usize);
    assert_eq!(sockets.snapshot().upgrades, u64::from(CLIENTS));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_has_all_headers_that_clients_read() {
    let sockets = strict();
    let _first = connect(&sockets).await;
    let headers = request_rejected(&sockets).await;
    assert_eq!(["retry-after", "content-length", "connection"].map(|name| &headers[name]), ["1", "0", "close"]);
    assert_eq!(server_hint(&headers, || unreachable!()), Some(stagger::ServerHint::Reserved(Duration::from_millis(5))));
}

#[tokio::test(start_paused = true)]
async fn at_capacity_the_wait_is_sent_in_seconds_and_in_milliseconds() {
    let sockets = unlimited().max_connections(1).retry_after_when_full(Duration::from_millis(2_500)).build().unwrap();
    let first = connect(&sockets).await;
    let headers = request_rejected(&sockets).await;
    assert_eq!(
        (&headers["retry-after"], &headers["retry-after-ms"]),
        (&"3".parse().unwrap(), &"2500".parse().unwrap())
    );
    assert_eq!(sockets.snapshot().rejected.at_capacity, 1);
    drop(first);
    connect(&sockets).await;
}

// A slot is taken only when the request has arrived, and the time for sending it is limited.
#[tokio::test(start_paused = true)]
async fn incomplete_or_invalid_requests_take_no_slot_and_time_out() {
    let sockets = unlimited().max_connections(1).handshake_timeout(3 * SECOND).build().unwrap();
    for (text, wants) in [("GET / HTTP/1.1\r\nHost: it\r\n\r\n", Duration::ZERO), ("GET / HTT", 3 * SECOND)] {
        let (ours, mut theirs) = duplex(4096);
        theirs.write_all(text.as_bytes()).await.unwrap();
        let start = Instant::now();
        let error = sockets.accept(ours).await.unwrap_err();
        assert_eq!(start.elapsed(), wants, "{text:?}: {error}");
        assert_eq!(matches!(error, AcceptError::TimedOut), !wants.is_zero(), "{error}");
    }
    let seen = sockets.snapshot();
    assert_eq!((seen.accepted, seen.rejected.handshake_failed, seen.closed.len()), (0, 2, 0));
    connect(&sockets).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_once_it_was_admitted_counts_as_closed() {
    let sockets = unlimited().build().unwrap();
    let (ours, mut theirs) = duplex(4096);
    let request = "GET / HTTP/1.1\r\nHost: it\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    theirs.write_all(request.as_bytes()).await.unwrap();
    drop(theirs);
    assert!(matches!(sockets.accept(ours).await, Err(AcceptError::Handshake(_))));
    let seen = sockets.snapshot();
    assert_eq!((seen.active, seen.accepted, seen.closed["1006"], seen.rejected.handshake_failed), (0, 1, 1, 0));
}

// The query often contains a token.
#[tokio::test(start_paused = true)]
async fn accepted_contains_the_request_and_its_debug_output_no_query() {
    let (accepted, _client) = connect(&unlimited().build().unwrap()).await;
    assert_eq!(accepted.request.uri().query(), Some("token=secret"));
    assert!(!format!("{accepted:?}").contains("secret"));
}

#[test]
fn invalid_settings_are_rejected_with_a_suggestion() {
    let every = Keepalive { interval: Duration::ZERO, ..Keepalive::default() };
    let dead_after = Keepalive { timeout: Duration::ZERO, ..Keepalive::default() };
    for (settings, want) in [
        (unlimited().keepalive(every), SettingsError::Keepalive),
        (unlimited().keepalive(dead_after), SettingsError::Keepalive),
        (unlimited().max_handshakes(0), SettingsError::MaxHandshakes),
        (unlimited().max_handshakes_per_peer(0), SettingsError::MaxHandshakesPerPeer),
        (unlimited().first_byte_timeout(Duration::ZERO), SettingsError::FirstByteTimeout),
    ] {
        assert_eq!(settings.build().err(), Some(want));
    }
    assert!(SettingsError::Keepalive.to_string().contains("None to disable"));
}

// All clones, and other users of the same admission, share one state.
#[tokio::test(start_paused = true)]
async fn an_admission_can_be_shared() {
    let admission = Arc::new(Admission::per_second(1).burst(1).build(Secret::new([1; 16])).unwrap());
    let [one, other] = [(); 2].map(|()| Sockets::builder(Arc::clone(&admission)).build().unwrap());
    let _first = connect(&one).await;
    request_rejected(&other.clone()).await;
    assert_eq!((one.snapshot().rejected.rate_limited, other.snapshot().rejected.rate_limited), (0, 1));
}
