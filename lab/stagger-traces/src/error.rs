use core::fmt;
use std::io;

/// Why a file cannot be read to its end.
#[derive(Debug)]
pub struct ReadError {
    line: usize,
    column: usize,
    message: String,
    kind: io::ErrorKind,
}

impl ReadError {
    pub(crate) fn new(error: &serde_json::Error) -> Self {
        let kind = error.io_error_kind().unwrap_or(io::ErrorKind::InvalidData);
        // The place is told apart from the message.
        let text = error.to_string();
        let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message).to_owned();
        Self { line: error.line(), column: error.column(), message, kind }
    }

    /// Returns the line, from 1; 0 if the file could not be read.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns the column in bytes, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// Returns the kind of the error of the reader; `InvalidData` if the text is not what is expected.
    #[must_use]
    pub const fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl fmt::Display for ReadError {
    /// Writes the problem, without the place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ReadError {}
