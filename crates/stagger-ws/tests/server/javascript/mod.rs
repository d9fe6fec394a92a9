//! The client in JavaScript, `clients/js`, with a server that is killed.

use core::time::Duration;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use stagger_kit::{Port, Program, Ready, Server, Stream};
use stagger_ws::server::{Accepted, listen};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{SECOND, unlimited};

const PORT: &str = "JAVASCRIPT_SERVER_PORT";
const STORE: &str = "JAVASCRIPT_SERVER_STORE";
pub(crate) const READY: &str = "the server is listening";
/// The program that runs the client, and its arguments, if it is another one than Node: `cargo xtask js-runtimes` sets
/// them.
const RUNTIME: &str = "JAVASCRIPT_RUNTIME";
const RUNTIME_ARGUMENTS: &str = "JAVASCRIPT_RUNTIME_ARGUMENTS";
const MESSAGES: u64 = 400;

/// Returns the program that serves on this port with this store.
pub(crate) fn server(port: u16, store: &Path) -> Program {
    let program = Program::this_test("javascript::serves_when_configured").unwrap();
    program.env(PORT, port.to_string()).env(STORE, store)
}

/// Bundles the client into a directory. Returns its module.
fn bundled(directory: &Path) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/js");
    // `cargo xtask ci --only packages` unpacks the bundler if it is not installed.
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages/usr/bin/esbuild");
    let bundler = if unpacked.is_file() {
        Program::at(unpacked)
    } else {
        Program::find("esbuild").expect("esbuild: run `cargo xtask ci --only packages`")
    };
    let module = directory.join("client.mjs");
    let bundler = bundler.arg(package.join("src/index.ts")).args(["--bundle", "--format=esm", "--target=es2022"]);
    let bundled = bundler.arg(format!("--outfile={}", module.display())).run(60 * SECOND).unwrap();
    assert_eq!(bundled.code(), Some(0), "{}", bundled.stderr_text());
    module
}

/// Returns the command that runs a module.
fn runtime() -> Program {
    match env::var_os(RUNTIME) {
        Some(path) => Program::at(path).args(env::var(RUNTIME_ARGUMENTS).unwrap_or_default().split_ascii_whitespace()),
        // Node has a WebSocket of its own since version 22; before, behind this flag.
        None => Program::find("node").unwrap().arg("--experimental-websocket"),
    }
}

/// The numbers that were received, in a file that outlives the server: a message is written before it is acknowledged.
struct Store {
    path: PathBuf,
    stored: watch::Sender<u64>,
    lock: Mutex<()>,
}

impl Store {
    /// Stores a message, unless it is already stored.
    fn put(&self, number: u64) {
        let _one_at_a_time = self.lock.lock().unwrap();
        let last = *self.stored.borrow();
        if number > last {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
            // One write, so that after a kill a line is either complete or missing.
            file.write_all(format!("{number}\n").as_bytes()).unwrap();
            self.stored.send_replace(number);
        }
    }
}

pub(crate) fn read(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

// Not a test, but the entry point of the server process.
#[tokio::test]
#[ignore = "entry point of the server process"]
async fn serves_when_configured() {
    let (Ok(port), Ok(path)) = (env::var(PORT), env::var(STORE)) else { return };
    let stored = watch::Sender::new(read(path.as_ref()).last().copied().unwrap_or(0));
    let store = Arc::new(Store { path: path.into(), stored, lock: Mutex::default() });
    let listener = listen(([127, 0, 0, 1], port.parse().unwrap()).into(), 64).unwrap();
    println!("{READY}");
    let sockets = unlimited().build().unwrap();
    sockets.serve(listener, move |accepted| serve(accepted, Arc::clone(&store))).await;
}

/// Stores and acknowledges numbers, and sends all that are stored from the client's position on.
async fn serve(Accepted { mut socket, request, .. }: Accepted<TcpStream>, store: Arc<Store>) {
    let query = request.uri().query().unwrap_or_default();
    let mut sent: u64 = query.strip_prefix("after=").and_then(|after| after.parse().ok()).unwrap_or(0);
    let mut stored = store.stored.subscribe();
    let mut reply = String::from(if sent > 0 { "resumed" } else { "fresh" });
    loop {
        if !reply.is_empty() && socket.send(Message::text(reply)).await.is_err() {
            return;
        }
        reply = String::new();
        let newest = *stored.borrow_and_update();
        if sent < newest {
            sent += 1;
            reply = format!("say {sent}");
            continue;
        }
        tokio::select! {
            _ = stored.changed() => {}
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) if text == "ping" => reply = String::from("pong"),
                Some(Ok(Message::Text(text))) => {
                    let number = text.parse().unwrap();
                    store.put(number);
                    // Slow enough for a kill to happen between storing and acknowledging.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    reply = format!("ack {number}");
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
}

#[test]
fn a_client_in_javascript_loses_and_doubles_nothing_over_kills_of_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let client = bundled(directory.path());
    let (store, port) = (directory.path().join("store"), Port::reserve().unwrap());
    let ready = Ready::Line(Stream::Stdout, READY.into());
    let mut server = Server::start(server(port.number(), &store), ready, 30 * SECOND).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/javascript/page.mjs");
    let page = runtime().arg(script).env("CLIENT", client).env("ADDRESS", port.address().to_string());
    let page = page.env("MESSAGES", MESSAGES.to_string()).spawn().unwrap();
    let mut kills = 0;
    while page.is_running() && kills < 20 {
        // The client is connected again when its next message is stored.
        let before = read(&store).len();
        while page.is_running() && read(&store).len() == before {
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(40));
        server.kill();
        server.restart().unwrap();
        kills += 1;
    }
    let finished = page.wait(60 * SECOND).unwrap();
    let (output, errors) = (finished.stdout_text(), finished.stderr_text());
    let seen: Value = serde_json::from_str(output.trim()).unwrap_or_else(|error| panic!("{error}: {output} {errors}"));
    let all: Vec<u64> = (1..=MESSAGES).collect();
    assert_eq!(read(&store), all, "stored once and in order");
    assert_eq!(seen["received"], Value::from(all), "received once and in order");
    assert_eq!(seen["left"], 0);
    let count = |name: &str| seen[name].as_u64().unwrap();
    println!("{kills} kills: {} opened, {} resumed, {} pongs", count("opened"), count("resumed"), count("pongs"));
    // A message takes the server a millisecond, so there is time for ten kills, and more than enough for these.
    assert!(kills >= 3 && count("resumed") >= 2 && count("pongs") >= 3, "{kills} kills: {output}");
}
