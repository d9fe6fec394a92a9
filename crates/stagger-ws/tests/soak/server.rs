//! The server: plain tungstenite, in its own process.

use core::time::Duration;
use std::collections::HashMap;
use std::env;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use stagger_kit::Program;
use stagger_ws::Message;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use super::plan::Plan;
use super::store::Store;

const PORT: &str = "SOAK_SERVER_PORT";
const STORE: &str = "SOAK_SERVER_STORE";
/// Printed when the server accepts connections.
pub(crate) const READY: &str = "the server is listening";

/// Returns the program that serves on this port with this store.
pub(crate) fn program(port: u16, store: &std::path::Path) -> Program {
    let program = Program::this_test("soak::server::serves_when_configured").expect("this test");
    program.env(PORT, port.to_string()).env(STORE, store)
}

/// State shared by all connections.
struct Shared {
    store: Store,
    /// The number of open connections per client.
    present: HashMap<String, u32>,
}

// Not a test, but the entry point of the server process.
#[test]
#[ignore = "entry point of the server process"]
fn serves_when_configured() {
    let (Ok(port), Ok(path)) = (env::var(PORT), env::var(STORE)) else { return };
    let store = Store::open(path.as_ref()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(listen(port.parse().unwrap(), store));
}

async fn listen(port: u16, store: Store) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], port).into()).unwrap();
    // All clients connect at once. Connections beyond the backlog would wait for seconds, for the kernel's own retries.
    let listener = socket.listen(4096).unwrap();
    println!("{READY}");
    let shared = Arc::new(Mutex::new(Shared { store, present: HashMap::new() }));
    let every = Plan::from_env().every;
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared), every));
    }
}

/// Stores and acknowledges messages, and sends a message of its own at each tick.
#[expect(clippy::result_large_err, reason = "it is the callback's type")]
async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>, every: Duration) {
    let mut client = String::new();
    let path = |request: &Request, response: Response| {
        client = request.uri().path().trim_start_matches('/').to_owned();
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, path).await else { return };
    {
        let mut shared = shared.lock().unwrap();
        let count = shared.present.entry(client.clone()).or_default();
        *count += 1;
        if *count > 1 {
            shared.store.violation(&format!("{client}:twice")).unwrap();
        }
    }
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let reply = tokio::select! {
            _ = ticks.tick() => String::from("tick"),
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let number = text.parse().unwrap();
                    shared.lock().unwrap().store.put(&client, number).unwrap();
                    format!("ack {number}")
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => break,
            },
        };
        if socket.send(Message::text(reply)).await.is_err() {
            break;
        }
    }
    if let Some(count) = shared.lock().unwrap().present.get_mut(&client) {
        *count -= 1;
    }
}
