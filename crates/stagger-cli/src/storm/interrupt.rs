use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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
        interrupt.register().map_err(|source| CliError::io("cannot install the signal handler", source))?;
        Ok(interrupt)
    }

    #[cfg(unix)]
    fn register(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds the flag unset, the second one finds it set.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.requested))?;
            signal_hook::flag::register(signal, Arc::clone(&self.requested))?;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn register(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns whether the first signal has arrived.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
