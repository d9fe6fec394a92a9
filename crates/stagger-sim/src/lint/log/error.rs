use core::fmt;

/// The lines of a log that were not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    pub(super) errors: Vec<LineError>,
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

impl LineError {
    pub(super) fn new(line: usize, message: &str) -> Self {
        Self { line, message: printable(message) }
    }
}

/// Text from a log as it can be shown: nothing that a terminal would obey, and not more than fits on a few lines.
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

/// Lines that are named; the other_lines are counted.
const NAMED: usize = 3;

impl LogError {
    /// Every such line, in order; at least one.
    #[must_use]
    pub fn errors(&self) -> &[LineError] {
        &self.errors
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.errors.iter().take(NAMED).enumerate() {
            write!(f, "{}line {}: {}", if at == 0 { "" } else { "; " }, fault.line, fault.message)?;
        }
        match self.errors.len().saturating_sub(NAMED) {
            0 => Ok(()),
            1 => f.write_str("; and one more line"),
            more => write!(f, "; and {more} more lines"),
        }
    }
}

impl core::error::Error for LogError {}
