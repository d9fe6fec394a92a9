//! The clients, each with a sending and a reading task.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use futures_util::StreamExt;
use stagger::{Jitter, Policy};
use stagger_ws::{Ack, AckedClient, AckedHandle, Acks, Client, ConnectionState, Event, Message};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

/// Longer than any step of the test.
const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) opened: AtomicU64,
    pub(super) resent: AtomicU64,
    pub(super) ticks: AtomicU64,
}

pub(super) struct Fleet {
    members: Vec<Member>,
    pub(super) seen: Arc<Seen>,
    is_over: Arc<AtomicBool>,
}

struct Member {
    handle: AckedHandle<u64>,
    /// Returns the number of the last message.
    sends: JoinHandle<u64>,
    reads: JoinHandle<()>,
}

impl Fleet {
    pub(super) fn launch(clients: usize, port: u16, every: Duration) -> Self {
        let (seen, is_over) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
        let member = |n: usize| {
            let client = connect(&format!("ws://127.0.0.1:{port}/client-{n}"));
            let handle = client.handle();
            // Clients do not all send in the same instant.
            let lag = every.mul_f64(n as f64 / clients as f64);
            let sends = tokio::spawn(send(handle.clone(), lag, every, Arc::clone(&is_over)));
            let reads = tokio::spawn(read(client, Arc::clone(&seen)));
            Member { handle, sends, reads }
        };
        Self { members: (0..clients).map(member).collect(), seen, is_over }
    }

    /// Waits until every client is connected.
    pub(super) async fn all_connected(&self) {
        for member in &self.members {
            timeout(LONG, member.handle.client().connected()).await.expect("in time").expect("the client reconnects");
        }
    }

    /// Waits until every client has noticed that it is disconnected.
    pub(super) async fn all_disconnected(&self) {
        for member in &self.members {
            let mut state = member.handle.client().state();
            let gone = state.wait_for(|state| !matches!(state, ConnectionState::Open));
            timeout(LONG, gone).await.expect("in time").expect("the client's task is running");
        }
    }

    /// Ends the test when every message is acknowledged. Returns how many messages each client has sent.
    pub(super) async fn finish(self) -> Vec<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut sent = Vec::new();
        for Member { handle, sends, reads } in self.members {
            sent.push(sends.await.unwrap());
            timeout(LONG, handle.flushed()).await.expect("in time").unwrap();
            assert_eq!(handle.close().await, []);
            reads.await.unwrap();
        }
        sent
    }
}

fn connect(url: &str) -> AckedClient<u64> {
    let policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(1))
        .jitter(Jitter::Full)
        .spread(Duration::from_millis(300))
        .max_attempts(10_000)
        .build()
        .unwrap();
    let number = |text: &str| text.parse().unwrap();
    let acks = Acks::new(
        move |message| number(message.to_text().unwrap()),
        move |message| message.to_text().unwrap().strip_prefix("ack ").map(|last| Ack::UpTo(number(last))),
    );
    Client::builder().url(url).retrier(policy).acked(acks.window(32).ack_timeout(LONG))
}

async fn send(handle: AckedHandle<u64>, lag: Duration, every: Duration, is_over: Arc<AtomicBool>) -> u64 {
    tokio::time::sleep(lag).await;
    let (mut number, mut ticks) = (0, interval(every));
    while !is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        number += 1;
        handle.send(Message::text(number.to_string())).await.unwrap();
    }
    number
}

async fn read(mut client: AckedClient<u64>, seen: Arc<Seen>) {
    let mut is_open = false;
    while let Some(event) = client.next().await {
        match event.expect("the client never gives up") {
            Event::Open(opened) => {
                assert!(!core::mem::replace(&mut is_open, true), "opened twice");
                seen.opened.fetch_add(1, Ordering::Relaxed);
                seen.resent.fetch_add(opened.resent as u64, Ordering::Relaxed);
            }
            Event::Message(_) => {
                assert!(is_open, "a message without a connection");
                seen.ticks.fetch_add(1, Ordering::Relaxed);
            }
            Event::Closed(_) => is_open = false,
            _ => {}
        }
    }
}
