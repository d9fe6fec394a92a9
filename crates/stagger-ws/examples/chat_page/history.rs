//! What was said, in a file that outlives the server if there is one.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use stagger_ws::BoxError;

/// How many lines are kept. A line that a browser sends again is recognized as long as a line of this browser is.
const KEPT: usize = 1_000;
/// How many lines a browser is sent that joins.
const REMEMBERED: usize = 100;

/// A line that was said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) said: Said,
}

/// What a browser sends: its own name for the page, and the number of the message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    page: String,
    pub(crate) n: u64,
    name: String,
    text: String,
}

/// The lines and the file, which begins with the run: lines of another file begin with 1 again.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) run: u64,
    lines: VecDeque<Line>,
    /// The last number of each page that has a line.
    last: HashMap<String, u64>,
    file: Option<File>,
}

impl History {
    /// Reads what was said before, and keeps the last lines of it.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has something else in it.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, BoxError> {
        let begun = u64::try_from(UNIX_EPOCH.elapsed().unwrap_or_default().as_millis()).unwrap_or(0);
        let mut history = Self { run: begun, lines: VecDeque::new(), last: HashMap::new(), file: None };
        let Some(path) = path else { return Ok(history) };
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        // A server that was killed may have left the beginning of a line, which was not acknowledged.
        let mut complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let wrong = |error| format!("{}: {error}; name a file of this example, or a new one", path.display());
        if let Some(run) = complete.next() {
            history.run = serde_json::from_str(run).map_err(wrong)?;
        }
        for line in complete {
            history.keep(serde_json::from_str(line).map_err(wrong)?);
        }
        let kept = [history.run.to_string()].into_iter().chain(history.lines.iter().map(text_of));
        let fresh = path.with_extension("new");
        fs::write(&fresh, kept.map(|line| line + "\n").collect::<String>())?;
        fs::rename(&fresh, path)?;
        history.file = Some(OpenOptions::new().append(true).open(path)?);
        Ok(history)
    }

    /// Stores a message, and returns its line unless it is already stored. It may be acknowledged then.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn put(&mut self, said: Said) -> Result<Option<Line>, Error> {
        if self.last.get(&said.page).is_some_and(|last| said.n <= *last) {
            return Ok(None);
        }
        let line = Line { id: self.lines.back().map_or(1, |line| line.id + 1), said };
        if let Some(file) = &mut self.file {
            // One write, so that after a kill a line is either complete or the last one.
            file.write_all((text_of(&line) + "\n").as_bytes())?;
        }
        self.keep(line.clone());
        Ok(Some(line))
    }

    /// Returns the last lines after this one.
    pub(crate) fn since(&self, after: u64) -> Vec<Line> {
        let first = self.lines.len().saturating_sub(REMEMBERED);
        self.lines.iter().skip(first).filter(|line| line.id > after).cloned().collect()
    }

    fn keep(&mut self, line: Line) {
        self.last.insert(line.said.page.clone(), line.said.n);
        self.lines.push_back(line);
        if self.lines.len() > KEPT {
            let old = self.lines.pop_front().map(|line| line.said);
            // Another line of the page may be left.
            if let Some(old) = old.filter(|old| self.last.get(&old.page) == Some(&old.n)) {
                self.last.remove(&old.page);
            }
        }
    }
}

/// Returns a line as browsers and the file have it.
pub(crate) fn text_of(line: &Line) -> String {
    serde_json::to_string(line).expect("a line has numbers and strings")
}
