use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

/// How late the timers of this process fire. On an overloaded machine, clients reconnect later than their policy says.
#[derive(Debug, Default)]
pub(super) struct TimerLag {
    micros: AtomicU64,
}

const INTERVAL: Duration = Duration::from_millis(10);

impl TimerLag {
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            let due = Instant::now() + INTERVAL;
            sleep_until(due).await;
            let late = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.micros.fetch_max(late, Ordering::Relaxed);
        }
    }

    /// Returns the maximum delay since the previous call.
    pub(super) fn take(&self) -> Duration {
        Duration::from_micros(self.micros.swap(0, Ordering::Relaxed))
    }
}
