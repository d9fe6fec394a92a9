//! Timers and checks shared by the tests.

mod panicking_timer;
mod pending_timer;
mod uniform;

pub(crate) use panicking_timer::PanickingTimer;
pub(crate) use pending_timer::PendingTimer;
pub(crate) use uniform::assert_uniform;

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Polls a future up to `times` times and returns the last result.
pub(crate) fn poll_times<F: Future + ?Sized>(future: Pin<&mut F>, times: u32) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = future;
    for _ in 1..times {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(&mut cx) {
            return ready;
        }
    }
    future.poll(&mut cx)
}
