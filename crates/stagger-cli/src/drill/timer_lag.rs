use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

/// How late the timers of this process are: a machine that cannot keep up has the clients come later than they wanted.
#[derive(Debug, Default)]
pub(super) struct TimerLag {
    micros: AtomicU64,
}

/// How often a timer is tried.
const EVERY: Duration = Duration::from_millis(10);

impl TimerLag {
    /// Tries timers for ever.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            let due = Instant::now() + EVERY;
            sleep_until(due).await;
            let late = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.micros.fetch_max(late, Ordering::Relaxed);
        }
    }

    /// By how much the latest was late, since this was asked last.
    pub(super) fn take(&self) -> Duration {
        Duration::from_micros(self.micros.swap(0, Ordering::Relaxed))
    }
}
