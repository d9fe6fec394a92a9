use core::time::Duration;
use std::io::{self, Write};
use std::time::Instant;

use crate::term::{Term, stderr_width};

/// A line on standard error that says how far something is; it is drawn again in place, and gone in the end.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Option<Instant>,
    is_drawn: bool,
}

/// What is over sooner needs no line.
const SHOW_AFTER: Duration = Duration::from_millis(400);

impl Progress {
    pub(crate) fn new(term: &Term) -> Self {
        Self { started: term.stderr.redraws.then(Instant::now), is_drawn: false }
    }

    /// What the line says now.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if self.started.is_some_and(|started| started.elapsed() >= SHOW_AFTER) {
            let room = stderr_width().saturating_sub(1);
            let text: String = text().chars().take(room).collect();
            // Nobody misses the line where it cannot be written.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
            self.is_drawn = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
