use core::time::Duration;

use stagger_core::Policy;

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The delays, in the order of the lines.
    pub entries: Vec<LogEntry>,
    /// The policies that the log itself names, each once, in the order of the lines.
    pub policies: Vec<Policy>,
    /// How many lines of JSON were understood and are about something else.
    pub other_lines: usize,
    /// How many delays were left out because a server, or the command, had skipped_hints for them.
    pub skipped_hints: usize,
}

/// A delay that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The line it was read from, from 1.
    pub line: usize,
    /// How long it was.
    pub delay: Duration,
    /// Whose it was.
    pub client: Option<String>,
    /// Which retry of the call came after it, from 1.
    pub retry: Option<u32>,
    /// When that retry was made, since a moment that the whole log has in common.
    pub time: Option<Duration>,
}
