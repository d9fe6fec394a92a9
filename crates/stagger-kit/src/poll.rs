use core::time::Duration;
use std::thread;
use std::time::Instant;

/// How often a condition that nothing announces is looked at: far below what a test would notice,
/// far above what would keep a core busy.
const INTERVAL: Duration = Duration::from_millis(2);

/// Asks until there is an answer, or `None` when `limit` has passed. Asks at least once.
pub(crate) fn poll_until<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if started.elapsed() >= limit {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}
