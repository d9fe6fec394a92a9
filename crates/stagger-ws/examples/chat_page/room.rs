//! The room: what was said, and who is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use axum::extract::RawQuery;
use axum::extract::ws::Message;
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use stagger_ws::server::AdmittedUpgrade;
use tokio::sync::broadcast::{self, Sender};

/// How many lines a browser is sent that joins.
const REMEMBERED: usize = 100;
/// How many lines a slow browser may be behind, before its connection is closed.
const BEHIND: usize = 64;
/// The longest message in bytes.
const MAX_MESSAGE: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// When the server was started, in milliseconds of the wall clock: the lines of another run begin with 1 again.
    run: u64,
    lines: Arc<Mutex<VecDeque<Line>>>,
    said: Sender<Line>,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    id: u64,
    name: String,
    text: String,
}

/// What a browser sends.
#[derive(Debug, Deserialize)]
struct Said {
    name: String,
    text: String,
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

impl Default for Room {
    fn default() -> Self {
        let begun = UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        Self { run: u64::try_from(begun).unwrap_or(0), lines: Arc::default(), said: broadcast::channel(BEHIND).0 }
    }
}

impl Room {
    /// Sends the lines that the browser does not have, and then each line as it is said.
    pub(crate) async fn join(self, RawQuery(query): RawQuery, upgrade: AdmittedUpgrade) -> Response {
        let known = Known::parse(query.as_deref().unwrap_or_default());
        upgrade.map(|upgrade| upgrade.max_message_size(MAX_MESSAGE)).on_upgrade(async move |mut socket| {
            let (missed, mut said) = self.since(&known);
            let hello = json!({ "run": self.run });
            let first = [hello.to_string()].into_iter().chain(missed.iter().map(text));
            for message in first {
                if socket.send(Message::text(message)).await.is_err() {
                    return;
                }
            }
            loop {
                let sent = tokio::select! {
                    line = said.recv() => match line {
                        Ok(line) => socket.send(Message::text(text(&line))).await,
                        // The browser is too slow: it comes back, and is sent what it has missed.
                        Err(_) => return,
                    },
                    message = socket.next() => match message {
                        Some(Ok(Message::Text(text))) => {
                            self.say(&text);
                            Ok(())
                        }
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

    /// Returns the lines that a browser does not have, and where the next ones come from.
    fn since(&self, known: &Known) -> (Vec<Line>, broadcast::Receiver<Line>) {
        let after = if known.run == Some(self.run) { known.after.unwrap_or(0) } else { 0 };
        let lines = self.lines.lock().expect("nothing panics while it is locked");
        // While it is locked, no line is said.
        (lines.iter().filter(|line| line.id > after).cloned().collect(), self.said.subscribe())
    }

    fn say(&self, message: &str) {
        let Ok(Said { name, text }) = serde_json::from_str(message) else { return };
        if text.trim().is_empty() {
            return;
        }
        let mut lines = self.lines.lock().expect("nothing panics while it is locked");
        let line = Line { id: lines.back().map_or(1, |line| line.id + 1), name, text };
        if lines.len() == REMEMBERED {
            lines.pop_front();
        }
        lines.push_back(line.clone());
        // It fails if nobody is in the room.
        _ = self.said.send(line);
    }
}

fn text(line: &Line) -> String {
    serde_json::to_string(line).expect("a line has a number and two strings")
}
