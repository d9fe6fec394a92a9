//! Connections that hold a handshake and send nothing, or little. Over sockets, since only those can be silent: a limit
//! of an hour is one that the test does not wait for.

use core::net::SocketAddr;
use core::time::Duration;

use stagger_ws::server::{RejectionCounts, Sockets, SocketsBuilder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::support::{SECOND, dial, echo, eventually, on_loopback, unlimited};

const HOUR: Duration = Duration::from_secs(3600);

fn serve(settings: SocketsBuilder) -> (Sockets, SocketAddr, JoinSet<()>) {
    let sockets = settings.build().unwrap();
    let (listener, address) = on_loopback();
    let server = sockets.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { server.serve(listener, echo).await });
    (sockets, address, tasks)
}

/// Opens connections that have sent these bytes.
async fn open(address: SocketAddr, number: usize, sent: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..number {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// Waits until the server closes this connection.
async fn closed(stream: &mut TcpStream) {
    let read = timeout(20 * SECOND, stream.read(&mut [0; 64])).await.expect("closed by the server");
    assert!(read.is_err() || read.unwrap() == 0);
}

// 1,024 is the default of `max_handshakes`.
#[tokio::test]
async fn an_honest_client_gets_in_past_1024_silent_connections() {
    let (_sockets, address, _tasks) = serve(unlimited().handshake_timeout(HOUR).first_byte_timeout(HOUR));
    let _silent = open(address, 1_030, b"").await;
    let client = timeout(10 * SECOND, dial(address)).await;
    assert!(client.expect("the client gets in").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_after_the_first_byte_timeout() {
    let (sockets, address, _tasks) = serve(unlimited().handshake_timeout(HOUR).first_byte_timeout(3 * SECOND));
    let start = Instant::now();
    let [mut silent] = <[_; 1]>::try_from(open(address, 1, b"").await).unwrap();
    closed(&mut silent).await;
    assert!(start.elapsed() >= 3 * SECOND, "{:?}", start.elapsed());
    assert_eq!(sockets.snapshot().rejected.handshake_failed, 1);
}

// The first one is older than all silent ones, and keeps its slot while it is not overdue.
#[tokio::test]
async fn the_oldest_silent_connection_makes_room_before_one_that_has_begun() {
    let settings = unlimited().max_handshakes(2).handshake_timeout(HOUR).first_byte_timeout(HOUR);
    let (sockets, address, _tasks) = serve(settings);
    let mut begun = open(address, 1, b"GET / HTTP/1.1\r\nHost: it\r\n").await;
    let mut silent = open(address, 3, b"").await;
    let (last, evicted) = silent.split_last_mut().unwrap();
    for stream in evicted {
        closed(stream).await;
    }
    eventually("two are evicted", || sockets.snapshot().rejected.evicted == 2).await;
    dial(address).await.unwrap();
    closed(last).await;
    assert_eq!(sockets.snapshot().rejected.evicted, 3);
    begun[0].write_all(b"\r\n").await.unwrap();
    let mut answer = [0; 12];
    // It is answered: it was not an upgrade, which tungstenite reports by closing the connection.
    let read = timeout(20 * SECOND, begun[0].read(&mut answer)).await.expect("an end");
    assert!(read.is_ok());
    eventually("the handshake failed", || sockets.snapshot().rejected.handshake_failed == 1).await;
}

// A single byte does not hold a slot for the whole handshake timeout.
#[tokio::test]
async fn requests_that_are_not_completed_make_room_when_they_are_overdue() {
    let settings = unlimited().max_handshakes(16).handshake_timeout(HOUR).first_byte_timeout(SECOND / 50);
    let (sockets, address, _tasks) = serve(settings);
    let _slow = open(address, 40, b"G").await;
    timeout(20 * SECOND, dial(address)).await.expect("the client gets in").unwrap();
    assert!(sockets.snapshot().rejected.evicted >= 25, "{:?}", sockets.snapshot());
}

// All requests are in the kernel's buffers before the server looks at the first one, so no client is silent.
#[tokio::test]
async fn clients_of_a_storm_do_not_evict_each_other() {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: it\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let sockets = unlimited().max_handshakes(4).build().unwrap();
    let (listener, address) = on_loopback();
    let clients = open(address, 400, REQUEST).await;
    let server = sockets.clone();
    let _served = tokio::spawn(async move { server.serve(listener, echo).await });
    for mut client in clients {
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap_or_else(|error| panic!("{error}; {:?}", sockets.snapshot()));
        assert_eq!(&answer, b"HTTP/1.1 101");
    }
    assert_eq!(sockets.snapshot().rejected, RejectionCounts::default());
}

#[tokio::test]
async fn a_peer_is_limited_if_a_limit_is_set() {
    let settings = unlimited().max_handshakes_per_peer(3).handshake_timeout(HOUR).first_byte_timeout(HOUR);
    let (sockets, address, _tasks) = serve(settings);
    let mut silent = open(address, 5, b"").await;
    for stream in &mut silent[3..] {
        closed(stream).await;
    }
    assert_eq!(sockets.snapshot().rejected.peer_limit, 2);
    silent.truncate(2);
    // The third has ended, so there is room for one handshake, and open connections do not count.
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = dial(address).await;
        while client.is_err() {
            client = dial(address).await;
        }
        clients.push(client);
    }
    assert_eq!((sockets.active(), sockets.snapshot().rejected.evicted), (3, 0));
}
