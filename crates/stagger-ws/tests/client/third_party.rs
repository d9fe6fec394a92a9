//! Third-party servers: `ws` for Node and `websockets` for Python.

use core::time::Duration;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use stagger::{Jitter, Policy, StopReason};
use stagger_kit::{Port, Program, Ready, Server, Stream};
use stagger_ws::{Client, Closed, Event, Message};
use tokio::time::{Instant, interval, sleep, timeout};

use super::scripted_server::{ms, secs};

/// Returns a directory into which `cargo xtask ci --only packages` has unpacked packages that are not installed.
fn unpacked(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages").join(directory)
}

/// Returns the search path for libraries, extended by the installed and the unpacked package.
fn library_path(variable: &str, installed: &str) -> OsString {
    let usual = env::var_os(variable).unwrap_or_default();
    let directories = [unpacked(installed.trim_start_matches('/')), installed.into()];
    env::join_paths(env::split_paths(&usual).chain(directories)).unwrap()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/third_party").join(name)
}

/// A client and a server that is killed in between.
struct Session {
    client: Client,
    server: Server,
    notes: PathBuf,
    /// The next number to send.
    next: u32,
    /// The numbers that were echoed.
    echoed: Vec<u32>,
    opened: usize,
    closed: Vec<Closed>,
    _directory: tempfile::TempDir,
    _port: Port,
}

impl Session {
    fn start(program: Program) -> Self {
        let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
        let notes = directory.path().join("notes");
        let program = program.env("PORT", port.number().to_string()).env("NOTES", &notes);
        let ready = Ready::Line(Stream::Stdout, "listening".into());
        let server = Server::start(program, ready, secs(60)).unwrap();
        let policy = Policy::exponential(ms(5), ms(100)).jitter(Jitter::Full).spread(ms(50)).max_attempts(1_000);
        let url = format!("ws://{}/feed", port.address());
        let client = Client::builder().url(url).retrier(policy.build().unwrap()).connect();
        let (echoed, closed) = (Vec::new(), Vec::new());
        Self { client, server, notes, next: 0, echoed, opened: 0, closed, _directory: directory, _port: port }
    }

    /// Returns the messages that the server has received, in order. They are written to a file before they are echoed,
    /// and outlive the server.
    fn received_lines(&self) -> Vec<String> {
        fs::read_to_string(&self.notes).unwrap().lines().map(str::to_owned).collect()
    }

    fn count_received(&self, line: &str) -> usize {
        self.received_lines().iter().filter(|received| *received == line).count()
    }

    /// Returns the numbers that the server has received.
    fn received_numbers(&self) -> Vec<u32> {
        self.received_lines().iter().filter_map(|line| line.strip_prefix("say ")?.parse().ok()).collect()
    }

    fn send(&self, text: &str) {
        self.client.handle().try_send(Message::text(text)).unwrap();
    }

    /// Handles the next event, and subscribes after each new connection. Returns `false` at the end of the stream.
    async fn handle_event(&mut self) -> bool {
        match timeout(secs(60), self.client.next()).await.expect("an event within 60 s") {
            Some(Ok(Event::Open(_))) => {
                self.opened += 1;
                self.send("subscribe");
            }
            Some(Ok(Event::Message(message))) => {
                let text = message.into_text().unwrap();
                self.echoed.extend(text.strip_prefix("say ").map(|number| number.parse::<u32>().unwrap()));
            }
            Some(Ok(Event::Closed(closed))) => self.closed.push(closed),
            Some(Ok(_)) => {}
            Some(Err(fatal)) => assert_eq!(fatal.stop_reason(), StopReason::Permanent),
            None => return false,
        }
        true
    }

    /// Sends one number after another until the condition holds.
    async fn send_until(&mut self, condition: impl Fn(&Self) -> bool) {
        let mut ticks = interval(ms(2));
        while !condition(self) {
            tokio::select! {
                // A cancelled wait loses no event: the client keeps it.
                continues = self.handle_event() => assert!(continues, "the stream ended"),
                _ = ticks.tick() => {}
            }
            // Without a connection, messages wait until the outbox is full.
            let number = Message::text(format!("say {}", self.next));
            self.next += u32::from(self.client.handle().try_send(number).is_ok());
        }
    }

    /// Makes the server close the connection. Returns the event, and the time without a connection unless the client
    /// stopped.
    async fn request_close(&mut self, code: u16, reason: &str) -> (Closed, Option<Duration>) {
        let (opened, closed, since) = (self.opened, self.closed.len(), Instant::now());
        self.send(&format!("leave {code} {reason}"));
        while self.opened == opened {
            if !self.handle_event().await {
                return (self.closed[closed].clone(), None);
            }
        }
        (self.closed[closed].clone(), Some(since.elapsed()))
    }
}

fn is_strictly_increasing(numbers: &[u32]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

async fn a_client_reconnects_sends_nothing_twice_and_honors_a_close(program: Program) {
    let mut session = Session::start(program);
    session.send_until(|session| session.echoed.len() >= 100).await;
    session.server.kill();
    session.send_until(|session| session.closed.len() > 1).await;
    session.server.restart().unwrap();
    let before = session.echoed.len();
    session.send_until(|session| session.echoed.len() >= before + 100).await;

    assert_eq!((session.opened, session.count_received("open"), session.count_received("subscribe")), (2, 2, 2));
    let received = session.received_numbers();
    assert!(
        is_strictly_increasing(&received) && is_strictly_increasing(&session.echoed),
        "{received:?} {:?}",
        session.echoed
    );
    assert!(session.echoed.iter().all(|number| received.binary_search(number).is_ok()));

    let (closed, down) = session.request_close(1012, r#"{"retry_after_ms":300,"spread_ms":200}"#).await;
    assert_eq!(closed.cause.close_code(), Some(1012), "{closed:?}");
    assert!((ms(250)..=ms(500)).contains(&closed.retry_in.unwrap()), "{closed:?}");
    assert!(down.unwrap() >= ms(300), "{down:?}");

    let (closed, down) = session.request_close(1008, "not you").await;
    assert_eq!((closed.cause.close_code(), closed.retry_in, down), (Some(1008), None, None), "{closed:?}");
    // Ten times the longest wait.
    sleep(secs(1)).await;
    assert_eq!(session.count_received("open"), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_node_ws_reconnects_sends_nothing_twice_and_honors_a_close() {
    let program = Program::find("node").unwrap().arg(script("node.js"));
    let program = program.env("NODE_PATH", library_path("NODE_PATH", "/usr/share/nodejs"));
    a_client_reconnects_sends_nothing_twice_and_honors_a_close(program).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_python_websockets_reconnects_sends_nothing_twice_and_honors_a_close() {
    let program = Program::find("python3").unwrap().arg(script("python.py"));
    let program = program.env("PYTHONPATH", library_path("PYTHONPATH", "/usr/lib/python3/dist-packages"));
    a_client_reconnects_sends_nothing_twice_and_honors_a_close(program).await;
}
