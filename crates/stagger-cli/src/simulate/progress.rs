use core::time::Duration;
use std::io::{self, Write};
use std::time::Instant;

use crate::term::{Term, stderr_width};

/// A line on standard error that says how far a simulation is; it is drawn again in place, and gone in the end.
#[derive(Debug)]
pub(super) struct Progress {
    began: Option<Instant>,
    is_drawn: bool,
}

/// What is over sooner needs no line.
const PATIENCE: Duration = Duration::from_millis(400);

impl Progress {
    pub(super) fn new(term: &Term) -> Self {
        Self { began: term.stderr.redraws.then(Instant::now), is_drawn: false }
    }

    /// So many runs are to be made, of which this share is done.
    pub(super) fn tell(&mut self, runs: usize, share: f64) {
        if self.began.is_some_and(|began| began.elapsed() >= PATIENCE) {
            let text = format!("simulating {runs} {}: {:.0}%", if runs == 1 { "run" } else { "runs" }, share * 100.0);
            let room = stderr_width().saturating_sub(1);
            let text: String = text.chars().take(room).collect();
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
