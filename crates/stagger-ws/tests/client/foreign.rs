//! Servers that other people have made: `ws` on Node, and `websockets` on Python.

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

use super::bench::{ms, secs};

/// A directory where `cargo xtask ci --only packages` has put what is not installed.
fn unpacked(directory: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages").join(directory)
}

/// Where the program looks for libraries: where it would anyway, and where this one may be.
fn places(variable: &str, installed: &str) -> OsString {
    let usual = env::var_os(variable).unwrap_or_default();
    let places = [unpacked(installed.trim_start_matches('/')), installed.into()];
    env::join_paths(env::split_paths(&usual).chain(places)).unwrap()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/foreign").join(name)
}

/// A client that talks to a server which is killed in the middle.
struct Talk {
    client: Client,
    server: Server,
    notes: PathBuf,
    /// The next number to be said.
    next: u32,
    /// The numbers that came back.
    heard: Vec<u32>,
    opened: usize,
    closed: Vec<Closed>,
    _directory: tempfile::TempDir,
    _port: Port,
}

impl Talk {
    fn begin(program: Program) -> Self {
        let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
        let notes = directory.path().join("notes");
        let program = program.env("PORT", port.number().to_string()).env("NOTES", &notes);
        let ready = Ready::Line(Stream::Stdout, "listening".into());
        let server = Server::start(program, ready, secs(60)).unwrap();
        let policy = Policy::exponential(ms(5), ms(100)).jitter(Jitter::Full).spread(ms(50)).max_attempts(1_000);
        let url = format!("ws://{}/feed", port.address());
        let client = Client::builder().url(url).policy(policy.build().unwrap()).connect();
        let (heard, closed) = (Vec::new(), Vec::new());
        Self { client, server, notes, next: 0, heard, opened: 0, closed, _directory: directory, _port: port }
    }

    /// What has come to the server, in order: it is written down before it is answered, and outlives it.
    fn noted(&self) -> Vec<String> {
        fs::read_to_string(&self.notes).unwrap().lines().map(str::to_owned).collect()
    }

    fn noted_times(&self, line: &str) -> usize {
        self.noted().iter().filter(|noted| *noted == line).count()
    }

    /// The numbers that have come to the server.
    fn said(&self) -> Vec<u32> {
        self.noted().iter().filter_map(|line| line.strip_prefix("say ")?.parse().ok()).collect()
    }

    fn say(&self, text: &str) {
        self.client.handle().try_send(Message::text(text)).unwrap();
    }

    /// What happens next; subscribes whenever there is a new connection. `false` at the end.
    async fn happens(&mut self) -> bool {
        match timeout(secs(60), self.client.next()).await.expect("something happens") {
            Some(Ok(Event::Open(_))) => {
                self.opened += 1;
                self.say("subscribe");
            }
            Some(Ok(Event::Message(message))) => {
                let text = message.into_text().unwrap();
                self.heard.extend(text.strip_prefix("say ").map(|number| number.parse::<u32>().unwrap()));
            }
            Some(Ok(Event::Closed(closed))) => self.closed.push(closed),
            Some(Ok(_)) => {}
            Some(Err(fatal)) => assert_eq!(fatal.stop(), StopReason::Permanent),
            None => return false,
        }
        true
    }

    /// Says one number after the other, until this is so.
    async fn talk_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let mut ticks = interval(ms(2));
        while !is_so(self) {
            tokio::select! {
                // What has not happened yet is not lost with it: the client keeps it.
                going = self.happens() => assert!(going, "the end"),
                _ = ticks.tick() => {}
            }
            // While there is no connection they wait, until there is no more room.
            let number = Message::text(format!("say {}", self.next));
            self.next += u32::from(self.client.handle().try_send(number).is_ok());
        }
    }

    /// Has the server close; how it was told, and for how long there was no connection, or none any more.
    async fn leave(&mut self, code: u16, reason: &str) -> (Closed, Option<Duration>) {
        let (opened, closed, since) = (self.opened, self.closed.len(), Instant::now());
        self.say(&format!("leave {code} {reason}"));
        while self.opened == opened {
            if !self.happens().await {
                return (self.closed[closed].clone(), None);
            }
        }
        (self.closed[closed].clone(), Some(since.elapsed()))
    }
}

fn each_is_larger(numbers: &[u32]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

async fn a_client_comes_back_and_says_nothing_twice_and_heeds_a_close(program: Program) {
    let mut talk = Talk::begin(program);
    talk.talk_until(|talk| talk.heard.len() >= 100).await;
    talk.server.kill();
    talk.talk_until(|talk| talk.closed.len() > 1).await;
    talk.server.restart().unwrap();
    let before = talk.heard.len();
    talk.talk_until(|talk| talk.heard.len() >= before + 100).await;

    assert_eq!((talk.opened, talk.noted_times("open"), talk.noted_times("subscribe")), (2, 2, 2));
    let said = talk.said();
    assert!(each_is_larger(&said) && each_is_larger(&talk.heard), "{said:?} {:?}", talk.heard);
    assert!(talk.heard.iter().all(|number| said.binary_search(number).is_ok()));

    let (closed, down) = talk.leave(1012, r#"{"retry_after_ms":300,"spread_ms":200}"#).await;
    assert_eq!(closed.cause.code(), Some(1012), "{closed:?}");
    assert!((ms(250)..=ms(500)).contains(&closed.retry_in.unwrap()), "{closed:?}");
    assert!(down.unwrap() >= ms(300), "{down:?}");

    let (closed, down) = talk.leave(1008, "not you").await;
    assert_eq!((closed.cause.code(), closed.retry_in, down), (Some(1008), None, None), "{closed:?}");
    // Ten times what it waits otherwise.
    sleep(secs(1)).await;
    assert_eq!(talk.noted_times("open"), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_node_s_ws_comes_back_and_says_nothing_twice_and_heeds_a_close() {
    let program = Program::find("node").unwrap().arg(script("node.js"));
    let program = program.env("NODE_PATH", places("NODE_PATH", "/usr/share/nodejs"));
    a_client_comes_back_and_says_nothing_twice_and_heeds_a_close(program).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_python_s_websockets_comes_back_and_says_nothing_twice_and_heeds_a_close() {
    let program = Program::find("python3").unwrap().arg(script("python.py"));
    let program = program.env("PYTHONPATH", places("PYTHONPATH", "/usr/lib/python3/dist-packages"));
    a_client_comes_back_and_says_nothing_twice_and_heeds_a_close(program).await;
}
