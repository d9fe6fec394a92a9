//! The problems of a file, with their positions.

use core::fmt;
use std::io;
use std::sync::Arc;

use stagger_core::text::Outside;

/// Why a file does not describe a system: all problems, in the order of the file.
#[derive(Clone, Debug)]
pub struct SystemFileError {
    pub(super) name: Option<String>,
    pub(super) problems: Vec<FileProblem>,
    /// Why the file cannot be read.
    pub(super) source: Option<Arc<io::Error>>,
}

/// One problem of a file, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    position: Option<(usize, usize)>,
    message: String,
}

impl SystemFileError {
    /// Returns the problems; none if the file cannot be read.
    #[must_use]
    pub fn problems(&self) -> &[FileProblem] {
        &self.problems
    }

    /// Returns why the file cannot be read; `None` if it was read.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        self.source.as_deref()
    }

    /// Creates an error with one problem of the file as a whole.
    pub(super) fn of_file(name: Option<String>, problem: impl Into<String>) -> Self {
        Self { name, problems: vec![FileProblem::new("", None, problem)], source: None }
    }

    pub(super) fn unreadable(name: String, source: io::Error) -> Self {
        Self { name: Some(name), problems: Vec::new(), source: Some(Arc::new(source)) }
    }
}

impl FileProblem {
    /// Creates a problem at a position in bytes, or of the file as a whole.
    pub(super) fn new(text: &str, at: Option<usize>, message: impl Into<String>) -> Self {
        Self { position: at.map(|at| line_and_column(text, at)), message: message.into() }
    }

    /// Returns the line and the column, both from 1, the column in characters; `None` for the file as a whole.
    #[must_use]
    pub const fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

/// Returns the line and the column of a position in bytes, both from 1, the column in characters.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl fmt::Display for SystemFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Outside(self.name.as_deref().unwrap_or("the system"));
        if let Some(source) = &self.source {
            return write!(f, "cannot read {name}: {source}");
        }
        for (nth, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{name}, {problem}", if nth == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl core::error::Error for SystemFileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        // The message has the error itself.
        core::error::Error::source(self.source.as_deref()?)
    }
}
