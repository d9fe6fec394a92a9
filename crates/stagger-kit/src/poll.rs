use core::pin::Pin;
use core::task::{Context, Poll, Waker};
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

/// Polls a future up to `times` times and returns the last result.
pub fn poll_times<F: Future + ?Sized>(future: Pin<&mut F>, times: u32) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = future;
    for _ in 1..times {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(&mut cx) {
            return ready;
        }
    }
    future.poll(&mut cx)
}
