//! What the tests have in common.

mod bank;
mod counted;
mod early;
mod fail;
mod gate;
mod patient;
mod uniform;
mod untouchable;

pub(crate) use bank::Bank;
pub(crate) use counted::Counted;
pub(crate) use early::Early;
pub(crate) use fail::Fail;
pub(crate) use gate::Gate;
pub(crate) use patient::Patient;
pub(crate) use uniform::assert_uniform;
pub(crate) use untouchable::Untouchable;

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Polls a future so many times, and gives what it gave.
pub(crate) fn polled<F: Future + ?Sized>(future: Pin<&mut F>, times: u32) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = future;
    for _ in 1..times {
        if let ready @ Poll::Ready(_) = future.as_mut().poll(&mut cx) {
            return ready;
        }
    }
    future.poll(&mut cx)
}
