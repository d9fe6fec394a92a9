use core::time::Duration;
use std::io::{self, Write};
use std::time::Instant;

use stagger_terminal::output::terminal::{Term, stderr_width};

/// Progress line on standard error. It is redrawn in place and erased at the end.
#[derive(Debug)]
pub struct ProgressLine {
    started: Option<Instant>,
    is_drawn: bool,
}

/// Time after which the line appears, so that short operations do not show one.
const SHOW_AFTER: Duration = Duration::from_millis(400);

impl ProgressLine {
    /// Creates a progress line; it stays hidden unless standard error can redraw lines.
    pub fn new(term: &Term) -> Self {
        Self { started: term.stderr.redraws.then(Instant::now), is_drawn: false }
    }

    /// Redraws the line with this text.
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        if self.started.is_some_and(|started| started.elapsed() >= SHOW_AFTER) {
            let room = stderr_width().saturating_sub(1);
            let text: String = text().chars().take(room).collect();
            // The line is optional, so ignore write errors.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
            self.is_drawn = true;
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
