//! A server that stores each message, and acknowledges it if configured to.

use std::io;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use stagger_ws::{Ack, AckedClient, Acks, ClientBuilder, Message};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;

use super::scripted_server::ScriptedServer;

/// Parses the number at the start of a message.
fn number(message: &Message) -> Option<u64> {
    message.to_text().ok()?.split(' ').next()?.parse().ok()
}

pub(super) fn numbered(n: u64) -> Message {
    Message::text(n.to_string())
}

/// Returns the numbers of these messages.
pub(super) fn numbers(messages: &[Message]) -> Vec<u64> {
    messages.iter().filter_map(number).collect()
}

/// Parses "up to 7" and "one 7".
fn ack(message: &Message) -> Option<Ack<u64>> {
    let text = message.to_text().ok()?;
    let last = text.strip_prefix("up to ").and_then(|last| last.parse().ok()).map(Ack::UpTo);
    last.or_else(|| text.strip_prefix("one ")?.parse().ok().map(Ack::One))
}

pub(super) fn acks() -> Acks<u64> {
    Acks::new(|message| number(message).unwrap(), ack)
}

/// A command to the server.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Send(String),
    /// Drops the connection, with everything unread.
    Drop,
}

/// What the server does when a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckMode {
    /// Acknowledges the message and all before it.
    Acknowledge,
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct AckingServer(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    ack_mode: AckMode,
    /// The messages received, per connection.
    received: Vec<Vec<u64>>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    is_available: bool,
}

impl AckingServer {
    pub(super) fn new(ack_mode: AckMode) -> Self {
        Self(Arc::new(Mutex::new(Inner { ack_mode, received: Vec::new(), commands: None, is_available: true })))
    }

    /// Returns a builder of a client that connects to this server over pipes with a buffer of `bytes`.
    pub(super) fn over_pipes(&self, bytes: usize) -> ClientBuilder {
        let server = self.clone();
        ScriptedServer::new([]).over_pipes().connector(move |_| {
            let pipe = server.pipe(bytes);
            async move { pipe.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) }
        })
    }

    pub(super) fn client(&self) -> AckedClient<u64> {
        self.over_pipes(64 << 10).acked(acks())
    }

    fn pipe(&self, bytes: usize) -> Option<DuplexStream> {
        let (ours, theirs) = duplex(bytes);
        let (commands, obeys) = mpsc::unbounded_channel();
        let mut inner = self.0.lock().unwrap();
        if !inner.is_available {
            return None;
        }
        inner.commands = Some(commands);
        inner.received.push(Vec::new());
        tokio::spawn(self.clone().serve(theirs, obeys));
        Some(ours)
    }

    async fn serve(self, io: DuplexStream, mut commands: mpsc::UnboundedReceiver<Command>) {
        let Ok(mut socket) = accept_async(io).await else { return };
        loop {
            let reply = tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Command::Send(text)) => text,
                    Some(Command::Drop) | None => return,
                },
                message = socket.next() => {
                    let Some(Ok(message)) = message else { return };
                    let Some(n) = number(&message) else { continue };
                    let mut inner = self.0.lock().unwrap();
                    inner.received.last_mut().unwrap().push(n);
                    if inner.ack_mode == AckMode::Nothing {
                        continue;
                    }
                    format!("up to {n}")
                }
            };
            if socket.send(Message::text(reply)).await.is_err() {
                return;
            }
        }
    }

    pub(super) fn command(&self, command: Command) {
        if let Some(commands) = &self.0.lock().unwrap().commands {
            let _ = commands.send(command);
        }
    }

    pub(super) fn send(&self, text: impl Into<String>) {
        self.command(Command::Send(text.into()));
    }

    /// Sets whether the server accepts connections.
    pub(super) fn set_available(&self, is_available: bool) {
        self.0.lock().unwrap().is_available = is_available;
    }

    pub(super) fn set_ack_mode(&self, ack_mode: AckMode) {
        self.0.lock().unwrap().ack_mode = ack_mode;
    }

    /// Returns the messages received, per connection.
    pub(super) fn received(&self) -> Vec<Vec<u64>> {
        self.0.lock().unwrap().received.clone()
    }
}
