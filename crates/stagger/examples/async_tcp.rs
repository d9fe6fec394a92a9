//! Async code: a service that starts late.
//!
//! ```sh
//! cargo run -p stagger --example async_tcp
//! ```

use core::net::SocketAddr;
use core::time::Duration;
use std::io;

use stagger::{Policy, policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const POLICY: Policy = policy!(exponential(ms(5), ms(50)).max_attempts(20));

/// Sends one request. Refused connections, resets and truncated responses are transient by default.
async fn request(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"how are you?\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Runs a service that starts after 50 ms and drops its first connection.
async fn serve_late(address: SocketAddr) -> io::Result<()> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    let listener = TcpListener::bind(address).await?;
    let (dropped, _) = listener.accept().await?;
    drop(dropped);
    let (mut stream, _) = listener.accept().await?;
    let mut request = [0; 13];
    stream.read_exact(&mut request).await?;
    stream.write_all(b"fine, thank you").await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    // A free port, with no listener yet.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let server = tokio::spawn(serve_late(address));

    let report = stagger::retry(&POLICY, || request(address))
        // A connection that closes before the response looks like an empty response.
        .validate(|answer| if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) })
        .timeout(Duration::from_secs(1))
        .with_report()
        .await;

    println!("{} attempts in {:?}", report.attempts, report.elapsed);
    let answer = report.result.map_err(stagger::Error::into_inner)?;
    println!("{answer}");
    assert!(report.attempts > 2);
    assert_eq!(answer, "fine, thank you");
    server.await?
}
