use core::time::Duration;
use std::thread;
use std::time::Instant;

/// Polling interval for a condition without a notification: short compared with a test, long enough not to use much CPU.
const INTERVAL: Duration = Duration::from_millis(2);

/// Polls until `poll` returns a value; returns `None` when `limit` has elapsed. Polls at least once.
pub(crate) fn poll_until<T>(limit: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(value) = poll() {
            return Some(value);
        }
        if started.elapsed() >= limit {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}
