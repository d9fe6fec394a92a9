//! A server that stores each message and then acknowledges it, when it is told to.

use std::io;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use stagger_ws::{Ack, AckedClient, Acks, ClientBuilder, Message};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;

use super::bench::Bench;

/// "7" and whatever follows it.
fn number(message: &Message) -> Option<u64> {
    message.to_text().ok()?.split(' ').next()?.parse().ok()
}

pub(super) fn numbered(n: u64) -> Message {
    Message::text(n.to_string())
}

/// Which messages these are.
pub(super) fn numbers(messages: &[Message]) -> Vec<u64> {
    messages.iter().filter_map(number).collect()
}

/// "up to 7" and "one 7".
fn ack(message: &Message) -> Option<Ack<u64>> {
    let text = message.to_text().ok()?;
    let last = text.strip_prefix("up to ").and_then(|last| last.parse().ok()).map(Ack::UpTo);
    last.or_else(|| text.strip_prefix("one ")?.parse().ok().map(Ack::One))
}

pub(super) fn acks() -> Acks<u64> {
    Acks::new(|message| number(message).unwrap(), ack)
}

/// What the server is told to do.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Say(String),
    /// Lets go of the connection, with what it has not read.
    Drop,
}

/// What it does by itself when a message comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// Acknowledges it, and with it all before.
    Acknowledge,
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct Store(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    habit: Habit,
    /// What came, of each connection.
    came: Vec<Vec<u64>>,
    orders: Option<mpsc::UnboundedSender<Order>>,
    is_up: bool,
}

impl Store {
    pub(super) fn new(habit: Habit) -> Self {
        Self(Arc::new(Mutex::new(Inner { habit, came: Vec::new(), orders: None, is_up: true })))
    }

    /// A client that meets it over pipes which hold so many bytes.
    pub(super) fn piped(&self, bytes: usize) -> ClientBuilder {
        let store = self.clone();
        Bench::new([]).piped().connector(move |_| {
            let pipe = store.pipe(bytes);
            async move { pipe.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) }
        })
    }

    pub(super) fn client(&self) -> AckedClient<u64> {
        self.piped(64 << 10).acked(acks())
    }

    fn pipe(&self, bytes: usize) -> Option<DuplexStream> {
        let (ours, theirs) = duplex(bytes);
        let (orders, obeys) = mpsc::unbounded_channel();
        let mut inner = self.0.lock().unwrap();
        if !inner.is_up {
            return None;
        }
        inner.orders = Some(orders);
        inner.came.push(Vec::new());
        tokio::spawn(self.clone().serve(theirs, obeys));
        Some(ours)
    }

    async fn serve(self, io: DuplexStream, mut orders: mpsc::UnboundedReceiver<Order>) {
        let Ok(mut socket) = accept_async(io).await else { return };
        loop {
            let say = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::Say(text)) => text,
                    Some(Order::Drop) | None => return,
                },
                message = socket.next() => {
                    let Some(Ok(message)) = message else { return };
                    let Some(n) = number(&message) else { continue };
                    let mut inner = self.0.lock().unwrap();
                    inner.came.last_mut().unwrap().push(n);
                    if inner.habit == Habit::Nothing {
                        continue;
                    }
                    format!("up to {n}")
                }
            };
            if socket.send(Message::text(say)).await.is_err() {
                return;
            }
        }
    }

    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.0.lock().unwrap().orders {
            let _ = orders.send(order);
        }
    }

    pub(super) fn say(&self, text: impl Into<String>) {
        self.order(Order::Say(text.into()));
    }

    /// Whether it lets anybody in.
    pub(super) fn set_up(&self, is_up: bool) {
        self.0.lock().unwrap().is_up = is_up;
    }

    pub(super) fn set_habit(&self, habit: Habit) {
        self.0.lock().unwrap().habit = habit;
    }

    /// What came, of each connection.
    pub(super) fn came(&self) -> Vec<Vec<u64>> {
        self.0.lock().unwrap().came.clone()
    }
}
