use core::fmt;

/// The lines of a log that were not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    pub(super) faults: Vec<Fault>,
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

/// Lines that are named; the others are counted.
const NAMED: usize = 3;

impl LogError {
    /// Every such line, in order; at least one.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().take(NAMED).enumerate() {
            write!(f, "{}line {}: {}", if at == 0 { "" } else { "; " }, fault.line, fault.message)?;
        }
        match self.faults.len().saturating_sub(NAMED) {
            0 => Ok(()),
            1 => f.write_str("; and one more line"),
            more => write!(f, "; and {more} more lines"),
        }
    }
}

impl core::error::Error for LogError {}
