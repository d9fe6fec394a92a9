use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

#[cfg(unix)]
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag::{register, register_conditional_default, register_usize},
};

use stagger_terminal::output::error::CliError;

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
            register_usize(signal, Arc::clone(&interrupt.signal), signal.unsigned_abs() as usize)
                .and_then(|_| register_conditional_default(signal, requested()))
                .and_then(|_| register(signal, requested()))
                .map_err(|source| CliError::io("cannot install the signal handler", source))?;
        }
        Ok(interrupt)
    }

    /// Returns whether the first signal has arrived.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Returns the exit status after an interruption, as that of a program which the signal has ended: 130 after Ctrl-C.
    pub fn exit_status(&self) -> u8 {
        match self.signal.load(Ordering::Relaxed) {
            0 => 130,
            signal => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}
