//! A chat client that survives restarts of its server: unacknowledged messages are sent again.
//!
//! ```sh
//! cargo run -p stagger-ws --example chat
//! ```

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use stagger::{Policy, policy};
use stagger_ws::{Ack, AckedClient, Acks, BoxError, Client, Event, Message};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// For a server with a single client. With thousands of clients, the spread keeps a restart from becoming an outage: it
/// should be at least the time that the server needs to accept all of them.
const POLICY: Policy = policy!(exponential(ms(20), ms(200)).spread(ms(50)).max_attempts(100));

/// The lines of the chat by number. It outlives the server, like a database.
type History = Arc<Mutex<BTreeMap<u64, String>>>;

/// Parses "7 hello": the number that the server acknowledges, and the line.
fn parse(message: &Message) -> Option<(u64, String)> {
    let (number, line) = message.to_text().ok()?.split_once(' ')?;
    Some((number.parse().ok()?, line.to_owned()))
}

/// Stores each line once, then acknowledges it.
async fn serve(stream: TcpStream, history: History) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        let Some((number, line)) = parse(&message) else { continue };
        history.lock().expect("no panic").entry(number).or_insert(line);
        // Slow enough for a restart to happen between storing and acknowledging.
        sleep(Duration::from_millis(10)).await;
        if socket.send(Message::text(format!("ack {number}"))).await.is_err() {
            break;
        }
    }
}

/// Accepts connections. Dropping the future drops all of them.
async fn listen(address: SocketAddr, history: History) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(serve(stream, Arc::clone(&history)));
    }
}

/// Restarts the server repeatedly.
async fn restart(address: SocketAddr, history: History) {
    loop {
        let server = tokio::spawn(listen(address, Arc::clone(&history)));
        sleep(Duration::from_millis(300)).await;
        server.abort();
        println!("-- the server is down");
        sleep(Duration::from_millis(100)).await;
        println!("-- the server is back");
    }
}

/// Prints events. Returns the number of connections and of resent lines.
async fn watch(mut chat: AckedClient<u64>) -> Result<(usize, usize), BoxError> {
    let (mut connections, mut resent) = (0, 0);
    while let Some(event) = chat.next().await {
        match event? {
            Event::Open(opened) => {
                println!("open at attempt {}, {} lines are sent again", opened.attempt, opened.resent);
                connections += 1;
                resent += opened.resent;
            }
            Event::Closed(closed) => println!("{}; next attempt in {:?}", closed.cause, closed.retry_in),
            _ => {}
        }
    }
    Ok((connections, resent))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // A port that is currently free.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let history = History::default();
    let server = tokio::spawn(restart(address, Arc::clone(&history)));

    let acks = Acks::new(
        |message| parse(message).map_or(0, |(number, _)| number),
        |message| message.to_text().ok()?.strip_prefix("ack ")?.parse().ok().map(Ack::UpTo),
    );
    let chat = Client::builder().url(format!("ws://{address}/room")).retrier(POLICY).acked(acks.window(16));
    let handle = chat.handle();
    let watching = tokio::spawn(watch(chat));
    for number in 1..=60 {
        handle.send(Message::text(format!("{number} this is line {number}"))).await?;
        sleep(Duration::from_millis(20)).await;
    }
    handle.flushed().await?;
    let unacknowledged = handle.close().await;
    let (connections, resent) = watching.await??;
    server.abort();

    let history = history.lock().expect("no panic");
    println!("60 lines over {connections} connections, {resent} of them sent again; {} stored", history.len());
    assert!(history.keys().copied().eq(1..=60) && unacknowledged.is_empty() && connections > 1);
    Ok(())
}
