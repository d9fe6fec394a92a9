//! What a command shows and listens to while its runs take time.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

#[cfg(unix)]
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag::{register, register_conditional_default, register_usize},
};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::{Term, is_foreground, stderr_width};

/// Whether the user asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    /// The number of the signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Installs a handler for SIGINT and SIGTERM. The first signal is recorded; a second one ends the program.
    pub fn install() -> Result<Self, CliError> {
        let interrupt = Self::default();
        #[cfg(unix)]
        for signal in [SIGINT, SIGTERM] {
            let requested = || Arc::clone(&interrupt.requested);
            // The order matters: the first signal finds the flag unset, the second one finds it set.
            let registered = (|| {
                register_usize(signal, Arc::clone(&interrupt.signal), signal.unsigned_abs() as usize)?;
                register_conditional_default(signal, requested())?;
                register(signal, requested())
            })();
            registered.map_err(|source| CliError::io("cannot install the signal handler", source))?;
        }
        Ok(interrupt)
    }

    /// Returns whether the first signal has arrived.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Returns the exit status after an interruption, as that of a program which the signal has ended: 130 after
    /// Ctrl-C.
    pub fn exit_status(&self) -> u8 {
        match self.signal.load(Ordering::Relaxed) {
            0 => 130,
            signal => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

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
        let started = if term.stderr.redraws { Some(Instant::now()) } else { None };
        Self { started, is_drawn: false }
    }

    /// Redraws the line with this text.
    pub fn update(&mut self, text: impl FnOnce() -> String) {
        if let Some(started) = self.started
            && started.elapsed() >= SHOW_AFTER
        {
            // In the background, the cursor is at the prompt of a shell.
            if !is_foreground() {
                self.is_drawn = false;
                return;
            }
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
        if self.is_drawn && is_foreground() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
