//! Keeping one connection open to a server that goes down and comes back.
//!
//! ```sh
//! cargo run -p stagger --example reconnect_tcp
//! ```

use core::net::SocketAddr;
use core::time::Duration;

use stagger::reconnect::Reconnect;
use stagger::{Error, Policy, policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// After a loss the clients spread over 50 ms before any of them reconnects; then the backoff begins. A connection that
/// lasted 100 ms counts as healthy, and the next loss starts over.
const POLICY: Policy = policy!(exponential(ms(5), ms(50)).spread(ms(50)).stable_after(ms(100)).unlimited_attempts());

/// Sends a number every millisecond to a client, stops after 20 of them, and restarts after 30 ms.
async fn serve(address: SocketAddr) -> std::io::Result<()> {
    loop {
        let listener = TcpListener::bind(address).await?;
        let (mut stream, _) = listener.accept().await?;
        for number in 0..20 {
            stream.write_u8(number).await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop((listener, stream));
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let server = tokio::spawn(serve(address));

    let mut reconnect = Reconnect::new(POLICY, || TcpStream::connect(address));
    let mut received = 0;
    for connection in 1..=3 {
        // The first connection is made immediately, each later one after its wait.
        let mut stream = reconnect.next().await?;
        // Use it until it is lost.
        while stream.read_u8().await.is_ok() {
            received += 1;
        }
        println!("lost connection {connection} after {received} numbers in total");
    }
    assert_eq!(received, 60);

    // The server is gone for good, and this policy gives up.
    server.abort();
    let impatient = POLICY.to_builder().max_attempts(3).build()?;
    let mut reconnect = Reconnect::new(impatient, || TcpStream::connect(address));
    let error: Error<std::io::Error> = match reconnect.next().await {
        Ok(_) => return Err("another process has taken the port".into()),
        Err(error) => error,
    };
    println!("{error:#}");
    assert_eq!(error.attempts(), 3);
    Ok(())
}
