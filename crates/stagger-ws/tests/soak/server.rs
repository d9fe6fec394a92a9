//! The server, in a process of its own: plain tungstenite.

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
/// It has written this when it accepts connections.
pub(super) const READY: &str = "the server listens";

/// The program that serves at this port, with this store.
pub(super) fn program(port: u16, store: &std::path::Path) -> Program {
    let program = Program::this_test("soak::server::serves_when_it_is_told_to").expect("this test");
    program.env(PORT, port.to_string()).env(STORE, store)
}

/// What all connections share.
struct Shared {
    store: Store,
    /// The connections that each client has.
    present: HashMap<String, u32>,
}

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "the process that is killed"]
fn serves_when_it_is_told_to() {
    let (Ok(port), Ok(path)) = (env::var(PORT), env::var(STORE)) else { return };
    let store = Store::open(path.as_ref()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(listen(port.parse().unwrap(), store));
}

async fn listen(port: u16, store: Store) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], port).into()).unwrap();
    // Of everybody at once: what does not fit waits for seconds, by the kernel's own retries.
    let listener = socket.listen(4096).unwrap();
    println!("{READY}");
    let shared = Arc::new(Mutex::new(Shared { store, present: HashMap::new() }));
    let every = Plan::from_env().every;
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared), every));
    }
}

/// Stores and acknowledges what comes, and says something by itself now and then.
#[expect(clippy::result_large_err, reason = "it is the callback's type")]
async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>, every: Duration) {
    let mut who = String::new();
    let path = |request: &Request, response: Response| {
        who = request.uri().path().trim_start_matches('/').to_owned();
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, path).await else { return };
    {
        let mut shared = shared.lock().unwrap();
        let count = shared.present.entry(who.clone()).or_default();
        *count += 1;
        if *count > 1 {
            shared.store.wrong(&format!("{who}:twice")).unwrap();
        }
    }
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let say = tokio::select! {
            _ = ticks.tick() => String::from("tick"),
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let number = text.parse().unwrap();
                    shared.lock().unwrap().store.put(&who, number).unwrap();
                    format!("ack {number}")
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => break,
            },
        };
        if socket.send(Message::text(say)).await.is_err() {
            break;
        }
    }
    if let Some(count) = shared.lock().unwrap().present.get_mut(&who) {
        *count -= 1;
    }
}
