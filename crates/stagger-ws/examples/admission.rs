//! Admission control over sockets on loopback: 600 clients connect at the same moment to a server that admits 300 per
//! second. Each client that is rejected gets a reservation and connects a second time. Then the server drains, and each
//! client is told when to reconnect.
//!
//! ```sh
//! cargo run --release -p stagger-ws --example admission --features server
//! ```

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::{Admission, random_secret};
use stagger_http::header::RESERVATION_TOKEN;
use stagger_http::hint::reservation;
use stagger_ws::ReconnectAdvice;
use stagger_ws::server::{Accepted, Drain, Sockets, listen};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

const CLIENTS: usize = 600;
const PER_SECOND: u32 = 300;

type Client = WebSocketStream<TcpStream>;

/// Echoes text messages: the application.
async fn echo(Accepted { mut socket, .. }: Accepted<TcpStream>) {
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() && socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Connects at the reserved times until admitted. Returns the client and the number of attempts. `stagger_ws::Client`
/// does this and more.
async fn connect(address: SocketAddr) -> Result<(Client, u32), tungstenite::Error> {
    let mut request = "ws://localhost/".into_client_request()?;
    for attempt in 1.. {
        let stream = TcpStream::connect(address).await?;
        match client_async_with_config(request.clone(), stream, Some(small())).await {
            Ok((client, _)) => return Ok((client, attempt)),
            Err(tungstenite::Error::Http(response)) if reservation(response.headers()).is_some() => {
                let Some(reservation) = reservation(response.headers()) else { break };
                request.headers_mut().insert(RESERVATION_TOKEN, reservation.token.to_string().parse()?);
                sleep(reservation.after).await;
            }
            Err(error) => return Err(error),
        }
    }
    Err(tungstenite::Error::ConnectionClosed)
}

/// Sends a message and stays until the server closes the connection.
async fn stay(mut client: Client) -> Result<Option<ReconnectAdvice>, tungstenite::Error> {
    client.send("hello".into()).await?;
    let mut advice = None;
    while let Some(message) = client.next().await {
        if let Message::Close(Some(frame)) = message? {
            advice = ReconnectAdvice::from_reason(&frame.reason);
        }
    }
    Ok(advice)
}

/// Returns a configuration with small buffers. By default, each connection has a buffer of 128 KiB.
fn small() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(4096)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let admission = Admission::per_second(PER_SECOND).build(random_secret())?;
    let sockets = Sockets::builder(admission).max_connections(10_000).websocket_config(small()).build()?;
    let listener = listen(([127, 0, 0, 1], 0).into(), 4096)?;
    let address = listener.local_addr()?;
    let serving = sockets.clone();
    let server = tokio::spawn(async move { serving.serve(listener, echo).await });

    let (start, mut connecting) = (Instant::now(), JoinSet::new());
    (0..CLIENTS).for_each(|_| drop(connecting.spawn(connect(address))));
    let (mut clients, mut attempts, mut most) = (JoinSet::new(), 0, 0);
    while let Some(connected) = connecting.join_next().await {
        let (client, times) = connected??;
        (attempts, most) = (attempts + times, most.max(times));
        clients.spawn(stay(client));
    }
    let (seen, limit) = (sockets.snapshot(), CLIENTS as f64 / f64::from(PER_SECOND));
    println!("{CLIENTS} clients at once, admitted at {PER_SECOND}/s: takes at least {limit:.1} s");
    println!("  all admitted after {:.1} s", start.elapsed().as_secs_f64());
    println!(
        "  {} got a reservation; attempts per client: {:.2} on average, {most} at most",
        seen.rejected.rate_limited,
        f64::from(attempts) / CLIENTS as f64
    );

    let (start, draining) = (Instant::now(), sockets.drain(Drain::over(Duration::from_secs(1))));
    let progress = draining.done().await;
    server.await?;
    let advised = clients.join_all().await.into_iter().filter(|left| matches!(left, Ok(Some(_)))).count();
    println!(
        "the server drains: {} clients closed in {:.1} s, {advised} of them with advice",
        progress.notified,
        start.elapsed().as_secs_f64()
    );
    println!("  closed, by code: {:?}", sockets.snapshot().closed);
    Ok(())
}
