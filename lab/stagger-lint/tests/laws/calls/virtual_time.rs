use core::future::Future;
use core::time::Duration;

use tokio::time::Instant;

/// Microseconds since the start of a world, on tokio's paused clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VirtualTime {
    start: Instant,
}

impl VirtualTime {
    /// Creates the time of a world that starts `after` from now.
    pub(crate) fn starting(after: Duration) -> Self {
        Self { start: Instant::now() + after }
    }

    /// Returns the time; 0 before the start.
    pub(crate) fn now(self) -> u64 {
        Instant::now().saturating_duration_since(self.start).as_micros() as u64
    }

    /// Waits until `at`. Tokio's timer has whole milliseconds and rounds up, so the wait ends at one of the two
    /// milliseconds around it, with the probability that preserves the mean; `share` is a draw from `[0, 1)`, or 0 to
    /// round up.
    pub(crate) async fn wait_until(self, at: u64, share: f64) {
        let up = share * 1_000.0 < (at % 1_000) as f64;
        tokio::time::sleep_until(self.start + Duration::from_millis(at / 1_000 + u64::from(up))).await;
    }

    /// Waits for `event`, but not longer than until `at`.
    pub(crate) async fn before<T>(self, at: u64, event: impl Future<Output = T>) -> Option<T> {
        // Rounded up, like the wait for an answer at `at`.
        let until = self.start + Duration::from_millis(at.div_ceil(1_000));
        tokio::time::timeout_at(until, event).await.ok()
    }
}

/// Runs a world of tasks in virtual time, until `main` completes; returns its output.
pub(crate) fn run<T>(main: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().ok()?;
    Some(tokio::task::LocalSet::new().block_on(&runtime, main))
}
