use core::fmt;
use core::time::Duration;

use stagger_core::Policy;

/// The contents of a log. Complete: it can be built from other sources than [`read`](super::read), too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The delays, in line order.
    pub entries: Vec<LogEntry>,
    /// The policies recorded in the log, without duplicates, in line order.
    pub policies: Vec<Policy>,
    /// Number of valid JSON lines that contain no delay.
    pub other_lines: usize,
    /// Number of delays skipped because a server or the command requested them.
    pub skipped_hints: usize,
}

/// A measured delay. Complete: it can be built from other sources than [`read`](super::read), too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The line number, from 1.
    pub line: usize,
    /// The delay.
    pub delay: Duration,
    /// The client.
    pub client: Option<String>,
    /// The retry that followed the delay, counted from 1 within the call.
    pub retry: Option<u32>,
    /// The time of that retry, relative to a reference that the whole log shares.
    pub time: Option<Duration>,
}

/// The lines of a log that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    pub(super) errors: Vec<LineError>,
}

/// A line that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineError {
    /// The line number, from 1.
    pub line: usize,
    /// The problem, and what was expected.
    pub message: String,
}

impl LineError {
    pub(super) fn new(line: usize, message: &str) -> Self {
        Self { line, message: printable(message) }
    }
}

/// Number of lines to name; further lines are counted.
const NAMED: usize = 3;

impl LogError {
    /// Returns the lines that could not be parsed, in order; at least one.
    #[must_use]
    pub fn errors(&self) -> &[LineError] {
        &self.errors
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line_error) in self.errors.iter().take(NAMED).enumerate() {
            write!(f, "{}line {}: {}", if at == 0 { "" } else { "; " }, line_error.line, line_error.message)?;
        }
        match self.errors.len().saturating_sub(NAMED) {
            0 => Ok(()),
            1 => f.write_str("; and one more line"),
            more => write!(f, "; and {more} more lines"),
        }
    }
}

impl core::error::Error for LogError {}

/// Makes text from a log safe to display: escapes control characters and truncates it.
pub(super) fn printable(text: &str) -> String {
    const LONGEST: usize = 200;
    let (shown, more) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], "..."),
        None => (text, ""),
    };
    let mut out = String::new();
    for c in shown.chars() {
        if c.is_control() { out.extend(c.escape_debug()) } else { out.push(c) }
    }
    out + more
}
