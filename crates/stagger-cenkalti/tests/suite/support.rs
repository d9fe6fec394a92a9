//! Shorthands shared by the tests.

use core::cell::Cell;
use core::fmt::Debug;
use core::future::ready;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger_cenkalti::{self as backoff, BackOff, Error};
pub(crate) use stagger_kit::{PanickingTimer, PendingTimer, assert_uniform, poll_times};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// The result of a call, with its calls, notifications and sleeps.
#[derive(Debug, PartialEq)]
pub(super) struct Run<V, E> {
    pub(super) result: Result<V, Error<E>>,
    pub(super) calls: u32,
    pub(super) notified: Vec<(E, Duration)>,
    pub(super) sleeps: Vec<Duration>,
}

/// Retries `operation`, which gets the call number, in both modes with the backoff that `backoff` creates on a clock.
#[track_caller]
pub(super) fn run_both<V, E, B>(
    backoff: impl Fn(VirtualClock) -> B,
    operation: impl Fn(u32) -> Result<V, E>,
) -> Run<V, E>
where
    V: Debug + PartialEq,
    E: Clone + Debug + PartialEq + 'static,
    B: BackOff,
{
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        operation(calls.get())
    };

    let (clock, mut notified) = (VirtualClock::new(), Vec::new());
    let notify = |error: &E, delay| notified.push((error.clone(), delay));
    let call = backoff::blocking::retry_notify_with_timer(operation, backoff(clock.clone()), notify, clock.clone());
    let result = call.detailed().run();
    let in_blocking = Run { result, calls: calls.take(), notified, sleeps: clock.sleeps() };

    let (clock, mut notified) = (VirtualClock::new(), Vec::new());
    let notify = |error: &E, delay| notified.push((error.clone(), delay));
    let operation = || ready(operation());
    let call = backoff::retry_notify_with_timer(operation, backoff(clock.clone()), notify, clock.clone());
    let result = block_on(call.detailed().into_future());
    let in_async = Run { result, calls: calls.take(), notified, sleeps: clock.sleeps() };

    assert_eq!(in_blocking, in_async, "blocking and async");
    in_blocking
}
