use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::error::CliError;

/// What a program exits with that ^C has ended.
pub(super) const INTERRUPTED: u8 = 130;

/// Whether somebody has asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on ^C is heard instead of ending the program; a second one ends it.
    ///
    /// # Errors
    /// The system does not let signals be caught.
    pub(crate) fn install() -> Result<Self, CliError> {
        let interrupt = Self::default();
        interrupt.register().map_err(|source| CliError::io("cannot listen for ^C", source))?;
        Ok(interrupt)
    }

    #[cfg(unix)]
    fn register(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first to come finds the flag unset, and the second set.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.requested))?;
            signal_hook::flag::register(signal, Arc::clone(&self.requested))?;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn register(&self) -> std::io::Result<()> {
        Ok(())
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
