//! The room: what is said, and who is told.

use std::io::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::RawQuery;
use axum::extract::ws::Message;
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use stagger_ws::BoxError;
use stagger_ws::server::AdmittedUpgrade;
use tokio::sync::broadcast::{self, Sender};

use super::history::{History, Line, Said, text_of};

/// How many lines a slow browser may be behind, before its connection is closed.
const BEHIND: usize = 64;
/// The longest message in bytes: 1,000 characters of text and 40 of a name are escaped by six bytes each at most.
const MAX_MESSAGE: usize = 8192;

#[derive(Clone, Debug)]
pub(crate) struct Room {
    history: Arc<Mutex<History>>,
    said: Sender<Line>,
}

/// The last line that a browser has, and the run that it is of.
#[derive(Debug, Default)]
struct Known {
    run: Option<u64>,
    after: Option<u64>,
}

impl Known {
    /// Parses `run=1&after=2`. What it does not know is left out.
    fn parse(query: &str) -> Self {
        let mut known = Self::default();
        for (name, value) in query.split('&').filter_map(|part| part.split_once('=')) {
            match name {
                "run" => known.run = value.parse().ok(),
                "after" => known.after = value.parse().ok(),
                _ => {}
            }
        }
        known
    }
}

impl Room {
    /// Opens a room whose lines are in a file, or only in memory.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has something else in it.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, BoxError> {
        Ok(Self { history: Arc::new(Mutex::new(History::open(path)?)), said: broadcast::channel(BEHIND).0 })
    }

    /// Sends the lines that the browser does not have, and then each line as it is said.
    pub(crate) async fn join(self, RawQuery(query): RawQuery, upgrade: AdmittedUpgrade) -> Response {
        let known = Known::parse(query.as_deref().unwrap_or_default());
        upgrade.map(|upgrade| upgrade.max_message_size(MAX_MESSAGE)).on_upgrade(async move |mut socket| {
            let (run, missed, mut said) = self.since(&known);
            let hello = json!({ "run": run });
            let first = [hello.to_string()].into_iter().chain(missed.iter().map(text_of));
            for message in first {
                if socket.send(Message::text(message)).await.is_err() {
                    return;
                }
            }
            loop {
                let sent = tokio::select! {
                    line = said.recv() => match line {
                        Ok(line) => socket.send(Message::text(text_of(&line))).await,
                        // The browser is too slow: it comes back, and is sent what it has missed.
                        Err(_) => return,
                    },
                    message = socket.next() => match message {
                        Some(Ok(Message::Text(text))) => match self.say(&text) {
                            // What is stored is acknowledged, also if it is received again.
                            Ok(n) => socket.send(Message::text(json!({ "ack": n }).to_string())).await,
                            Err(error) => return eprintln!("not stored: {error}"),
                        },
                        Some(Ok(_)) => Ok(()),
                        Some(Err(_)) | None => return,
                    },
                };
                if sent.is_err() {
                    return;
                }
            }
        })
    }

    /// Returns the run, the lines that a browser does not have, and where the next ones come from.
    fn since(&self, known: &Known) -> (u64, Vec<Line>, broadcast::Receiver<Line>) {
        let history = self.history.lock().expect("nothing panics while it is locked");
        let after = if known.run == Some(history.run) { known.after.unwrap_or(0) } else { 0 };
        // While it is locked, no line is said.
        (history.run, history.since(after), self.said.subscribe())
    }

    /// Stores what is said and tells everyone, once. Returns its number, for the acknowledgement.
    fn say(&self, message: &str) -> Result<u64, Error> {
        let said: Said = serde_json::from_str(message)?;
        let n = said.n;
        let mut history = self.history.lock().expect("nothing panics while it is locked");
        if let Some(line) = history.put(said)? {
            // It fails if nobody is in the room.
            _ = self.said.send(line);
        }
        Ok(n)
    }
}
