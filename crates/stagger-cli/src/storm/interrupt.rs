use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

#[cfg(unix)]
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag::{register, register_conditional_default},
};

use crate::output::error::CliError;

/// Exit status after Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether the user asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs a handler for SIGINT and SIGTERM. The first signal is recorded; a second one ends the program.
    pub(crate) fn install() -> Result<Self, CliError> {
        let interrupt = Self::default();
        #[cfg(unix)]
        for signal in [SIGINT, SIGTERM] {
            let requested = || Arc::clone(&interrupt.requested);
            // The order matters: the first signal finds the flag unset, the second one finds it set.
            register_conditional_default(signal, requested())
                .and_then(|_| register(signal, requested()))
                .map_err(|source| CliError::io("cannot install the signal handler", source))?;
        }
        Ok(interrupt)
    }

    /// Returns whether the first signal has arrived.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
