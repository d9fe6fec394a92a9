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
