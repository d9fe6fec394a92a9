use core::fmt;

use crate::position::Position;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    position: Position,
    message: String,
}

impl ReadError {
    pub(crate) fn syntax(syntax: &str, position: Position, problem: &str) -> Self {
        Self { position, message: format!("not valid {syntax}: {problem}") }
    }

    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }

    /// Returns where the problem is.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for ReadError {
    /// Writes the problem, without the position.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ReadError {}
