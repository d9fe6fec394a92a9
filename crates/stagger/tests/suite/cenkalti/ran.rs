//! One call, made twice: blocking and async must not differ.

use core::cell::Cell;
use core::fmt::Debug;
use core::future::ready;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::Error;
use stagger::cenkalti::{self, BackOff};
use stagger::testing::VirtualClock;

/// What came of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Ran<V, E> {
    pub(super) result: Result<V, Error<E>>,
    pub(super) calls: u32,
    pub(super) told: Vec<(E, Duration)>,
    pub(super) sleeps: Vec<Duration>,
}

/// Retries the operation, which is told the number of its call, with a backoff on the clock that it is given.
#[track_caller]
pub(super) fn ran<V, E, B>(backoff: impl Fn(VirtualClock) -> B, operation: impl Fn(u32) -> Result<V, E>) -> Ran<V, E>
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

    let (clock, mut told) = (VirtualClock::new(), Vec::new());
    let notify = |error: &E, delay| told.push((error.clone(), delay));
    let call = cenkalti::blocking::retry_notify_with_timer(operation, backoff(clock.clone()), notify, clock.clone());
    let result = call.detailed().run();
    let in_blocking = Ran { result, calls: calls.take(), told, sleeps: clock.sleeps() };

    let (clock, mut told) = (VirtualClock::new(), Vec::new());
    let notify = |error: &E, delay| told.push((error.clone(), delay));
    let operation = || ready(operation());
    let call = cenkalti::retry_notify_with_timer(operation, backoff(clock.clone()), notify, clock.clone());
    let result = block_on(call.detailed().into_future());
    let in_async = Ran { result, calls: calls.take(), told, sleeps: clock.sleeps() };

    assert_eq!(in_blocking, in_async, "blocking and async");
    in_blocking
}
