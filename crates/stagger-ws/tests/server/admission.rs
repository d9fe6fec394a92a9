//! Who comes in when, and what the others are told.

use core::future::ready;
use core::time::Duration;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use stagger::admission::Admission;
use stagger_http::hint::server_hint;
use stagger_ws::server::{AcceptError, Keepalive, SettingsError, Sockets};
use tokio::io::{AsyncWriteExt as _, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{SECOND, come_until_let_in, connect, dial, echo, knock, on_loopback, open_to_all, small};

const CLIENTS: u32 = 1_000;
const PER_SECOND: u32 = 200;

/// One at a time and to the tick.
fn strict() -> Sockets {
    let admission = Admission::per_second(PER_SECOND).burst(1).tolerance(Duration::ZERO, SECOND).build().unwrap();
    Sockets::builder(admission).websocket(small()).build().unwrap()
}

/// The most that lie within a second of each other, wherever that second begins.
fn in_busiest_second(times: &[Instant]) -> usize {
    let within = |from: Instant| times.iter().filter(|&&time| time >= from && time < from + SECOND).count();
    times.iter().map(|&from| within(from)).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_at_once_no_second_lets_in_more_than_the_rate() {
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
            let (_socket, told) = come_until_let_in(dial).await;
            (Instant::now(), told)
        });
    }
    let (times, told): (Vec<_>, Vec<_>) = clients.join_all().await.into_iter().unzip();
    assert_eq!(in_busiest_second(&times), PER_SECOND as usize);
    // One came in at once, and each of the others has an appointment of its own, 5 ms after the one before.
    let one = SECOND / PER_SECOND;
    let waits: BTreeSet<_> = told.iter().flatten().map(|appointment| appointment.after).collect();
    assert!(waits.iter().copied().eq((1..CLIENTS).map(|n| one * n)), "{waits:?}");
    assert!(told.iter().all(|told| told.len() <= 1), "nobody came more than twice");
    assert_eq!(start.elapsed(), one * (CLIENTS - 1));
    let seen = sockets.snapshot();
    assert_eq!((seen.accepted, seen.refused.rate), (u64::from(CLIENTS), u64::from(CLIENTS - 1)));
}

/// The same over sockets, where a machine may be late, but nothing is early.
#[tokio::test]
async fn over_sockets_a_thousand_come_in_one_line() {
    stagger_kit::raise_descriptor_limit(2 * u64::from(CLIENTS)).unwrap();
    let rate = 500;
    let admission = Admission::per_second(rate).burst(1).tolerance(Duration::ZERO, 60 * SECOND).build().unwrap();
    let sockets = Sockets::builder(admission).websocket(small()).build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    let _served = tokio::spawn(async move { server.serve(listener, echo).await });
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..CLIENTS {
        clients.spawn(come_until_let_in(move || async move { TcpStream::connect(address).await.unwrap() }));
    }
    let came = clients.join_all().await;
    let took = start.elapsed();
    assert!(took >= SECOND / rate * (CLIENTS - 1), "{took:?}");
    // Whoever came while there was room was let in without one; nobody has the appointment of another.
    let given: Vec<_> = came.iter().flat_map(|(_, told)| told).map(|appointment| appointment.token).collect();
    let different: HashSet<_> = given.iter().collect();
    assert!(
        given.len() > CLIENTS as usize / 2 && different.len() == given.len(),
        "{} of {}",
        different.len(),
        given.len()
    );
    assert_eq!(sockets.active(), CLIENTS as usize);
    assert_eq!(sockets.snapshot().upgrades, u64::from(CLIENTS));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_answer_with_everything_that_a_client_reads() {
    let sockets = strict();
    let _first = connect(&sockets).await;
    let headers = knock(&sockets).await;
    assert_eq!(["retry-after", "content-length", "connection"].map(|name| &headers[name]), ["1", "0", "close"]);
    assert_eq!(server_hint(&headers, || unreachable!()), Some(stagger::ServerHint::Reserved(Duration::from_millis(5))));
}

#[tokio::test(start_paused = true)]
async fn without_a_place_the_wait_is_told_in_seconds_and_in_milliseconds() {
    let sockets = open_to_all().most(1).full_wait(Duration::from_millis(2_500)).build().unwrap();
    let first = connect(&sockets).await;
    let headers = knock(&sockets).await;
    assert_eq!(
        (&headers["retry-after"], &headers["retry-after-ms"]),
        (&"3".parse().unwrap(), &"2500".parse().unwrap())
    );
    assert_eq!(sockets.snapshot().refused.connections, 1);
    drop(first);
    connect(&sockets).await;
}

/// Before there is a request nobody has a place, and there is not for ever to send one.
#[tokio::test(start_paused = true)]
async fn what_is_no_upgrade_takes_no_place_and_not_for_ever() {
    let sockets = open_to_all().most(1).handshake_timeout(3 * SECOND).build().unwrap();
    for (text, wants) in [("GET / HTTP/1.1\r\nHost: it\r\n\r\n", Duration::ZERO), ("GET / HTT", 3 * SECOND)] {
        let (ours, mut theirs) = duplex(4096);
        theirs.write_all(text.as_bytes()).await.unwrap();
        let start = Instant::now();
        let error = sockets.accept(ours).await.unwrap_err();
        assert_eq!(start.elapsed(), wants, "{text:?}: {error}");
        assert_eq!(matches!(error, AcceptError::TimedOut), !wants.is_zero(), "{error}");
    }
    let seen = sockets.snapshot();
    assert_eq!((seen.accepted, seen.refused.handshake, seen.closed.len()), (0, 2, 0));
    connect(&sockets).await;
}

/// A token is in the query of many a WebSocket.
#[tokio::test(start_paused = true)]
async fn the_request_is_there_and_its_query_is_not_in_what_is_logged() {
    let (accepted, _client) = connect(&open_to_all().build().unwrap()).await;
    assert_eq!(accepted.request.uri().query(), Some("token=secret"));
    assert!(!format!("{accepted:?}").contains("secret"));
}

/// Those beyond wait in the kernel, and lose nothing by it.
#[tokio::test]
async fn handshakes_that_hang_hold_up_only_as_many_as_there_are_places_for() {
    let sockets = open_to_all().handshakes(2).handshake_timeout(SECOND / 5).build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    let served = tokio::spawn(async move { server.serve(listener, echo).await });
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let start = Instant::now();
    let client = dial(address).await;
    assert!(client.is_ok());
    assert!(start.elapsed() >= SECOND / 5, "it came in past those who hung: {:?}", start.elapsed());
    // Whoever is in holds up nobody.
    let (_second, _third) = (dial(address).await.unwrap(), dial(address).await.unwrap());
    served.abort();
}

#[test]
fn settings_that_make_no_sense_are_refused_with_the_way_out() {
    let every = Keepalive { every: Duration::ZERO, ..Keepalive::default() };
    let dead_after = Keepalive { dead_after: Duration::ZERO, ..Keepalive::default() };
    for (settings, want) in [
        (open_to_all().keepalive(every), SettingsError::Keepalive),
        (open_to_all().keepalive(dead_after), SettingsError::Keepalive),
        (open_to_all().handshakes(0), SettingsError::Handshakes),
    ] {
        assert_eq!(settings.build().err(), Some(want));
    }
    assert!(SettingsError::Keepalive.to_string().contains("use None"));
}

/// Whether a client is refused or let in is one decision for all clones, and for an admission that others have, too.
#[tokio::test(start_paused = true)]
async fn an_admission_can_be_shared() {
    let admission = Arc::new(Admission::per_second(1).burst(1).build().unwrap());
    let [one, other] = [(); 2].map(|()| Sockets::builder(Arc::clone(&admission)).build().unwrap());
    let _first = connect(&one).await;
    knock(&other.clone()).await;
    assert_eq!((one.snapshot().refused.rate, other.snapshot().refused.rate), (0, 1));
}
