use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::Instant;
use stagger::time::{Clock, SystemClock};

/// The time since a backoff was last reset.
///
/// Clones share it, so one can be kept while a ticker on another task or thread owns the backoff.
#[derive(Clone, Debug)]
pub struct ElapsedTime<C = SystemClock> {
    start: Arc<AtomicU64>,
    clock: C,
}

impl<C: Clock> ElapsedTime<C> {
    pub(crate) fn from_now_on(clock: C) -> Self {
        let start = clock.now().as_nanos();
        Self { start: Arc::new(AtomicU64::new(start)), clock }
    }

    pub(crate) fn restart(&self) {
        self.start.store(self.clock.now().as_nanos(), Ordering::Relaxed);
    }

    /// Returns the elapsed time.
    #[must_use]
    pub fn get(&self) -> Duration {
        self.clock.now().saturating_since(Instant::from_nanos(self.start.load(Ordering::Relaxed)))
    }
}
