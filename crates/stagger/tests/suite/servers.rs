//! Reconnects and retries against a server process that is killed and restarted.

use core::net::SocketAddr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use stagger::reconnect::Reconnect;
use stagger::{Policy, StopReason, policy};
use stagger_kit::{Port, Program, Ready, Server, Stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::ms;

const POLICY: Policy = policy!(exponential(ms(2), ms(10)).spread(ms(10)).unlimited_attempts());
const LIMIT: Duration = Duration::from_secs(20);

fn server(port: &Port) -> Server {
    let program = Program::this_test("suite::servers::child_that_echoes").unwrap();
    let program = program.env("ECHO_AT", port.address().to_string());
    Server::start(program, Ready::Line(Stream::Stdout, String::from("echoing")), LIMIT).unwrap()
}

fn increment(counter: &AtomicU32) {
    counter.fetch_add(1, Relaxed);
}

async fn echo(stream: &mut TcpStream) -> std::io::Result<u8> {
    stream.write_all(b"x").await?;
    stream.read_u8().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_restored_when_its_server_restarts() {
    let port = Port::reserve().unwrap();
    let mut server = server(&port);
    let refused = AtomicU32::new(0);
    let mut connections =
        Reconnect::new(POLICY, async || TcpStream::connect(port.address()).await.inspect_err(|_| increment(&refused)));

    let mut connection = connections.next().await.unwrap();
    assert_eq!(echo(&mut connection).await.unwrap(), b'x');
    for _ in 0..2 {
        server.kill();
        echo(&mut connection).await.unwrap_err();
        refused.store(0, Relaxed);
        // While the server is down, `next` keeps trying. Each future dropped here is resumed by the next one.
        while refused.load(Relaxed) < 3 {
            tokio::time::timeout(ms(5), connections.next()).await.unwrap_err();
        }
        server.restart().unwrap();
        connection = tokio::time::timeout(LIMIT, connections.next()).await.unwrap().unwrap();
        assert_eq!(echo(&mut connection).await.unwrap(), b'x');
    }

    server.kill();
    let limited = POLICY.to_builder().max_attempts(3).build().unwrap();
    let mut connections = Reconnect::new(limited, async || TcpStream::connect(port.address()).await);
    let error = connections.next().await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 3));
    assert_eq!(error.error().map(std::io::Error::kind), Some(std::io::ErrorKind::ConnectionRefused));
    server.restart().unwrap();
    connections.next().await.unwrap();
}

#[tokio::test]
async fn a_call_succeeds_after_its_server_restarts() {
    let port = Port::reserve().unwrap();
    let mut server = server(&port);
    server.kill();
    let refused = AtomicU32::new(0);
    let call = stagger::retry(&POLICY, async || {
        let stream = TcpStream::connect(port.address()).await;
        let mut stream = stream.inspect_err(|_| increment(&refused))?;
        echo(&mut stream).await
    });
    let restart = async {
        while refused.load(Relaxed) < 2 {
            tokio::time::sleep(ms(1)).await;
        }
        server.restart().unwrap();
    };
    let (answer, ()) = tokio::join!(call.with_report(), restart);
    assert!(answer.attempts > 2, "{answer:?}");
    assert_eq!(answer.result.unwrap(), b'x');
}

#[test]
#[ignore = "the child of another test"]
fn child_that_echoes() {
    let Some(address) = std::env::var("ECHO_AT").ok().and_then(|at| at.parse::<SocketAddr>().ok()) else { return };
    let listener = TcpListener::bind(address).unwrap();
    println!("\nechoing");
    // Runs until it is killed.
    for stream in listener.incoming() {
        std::thread::spawn(move || {
            let (mut stream, mut byte) = (stream.unwrap(), [0]);
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        });
    }
}
