//! Timers: clocks that can be slept on.

use core::fmt;
use core::future::Future;
use core::time::Duration;

use stagger_core::Instant;

use super::cancel::Cancel;
use super::{Clock, SystemClock};

/// A timer for async code: creates futures that complete after a time on its own clock.
///
/// It is never asked to wait for zero. The futures are `Unpin`, so that they can be rearmed: a timer whose future is
/// not must box it once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a timer for async code",
    label = "expected a timer such as `stagger::time::Tokio`",
    note = "async code takes a `stagger::time::Sleep`, blocking code a `BlockingSleep`",
    note = "the closure of a `SleepFn` must return a future that is `Unpin`: box it with `Box::pin`"
)]
pub trait Sleep: Clock {
    /// The future returned by [`sleep`](Self::sleep).
    type Sleeping: Future<Output = ()> + Unpin;

    /// Returns a future that completes after `length`.
    fn sleep(&self, length: Duration) -> Self::Sleeping;

    /// Rearms an existing future, without a new allocation where the timer can.
    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        *sleeping = self.sleep(length);
    }

    /// Returns the distance between the instants at which the timer can fire. Default: zero, any instant. See
    /// [`RetryMachine::on_ticks`](crate::machine::RetryMachine::on_ticks) for how delays are fitted to it.
    fn resolution(&self) -> Duration {
        Duration::ZERO
    }
}

/// A timer for blocking code.
///
/// It is never asked to wait for zero.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a timer for blocking code",
    label = "expected a timer such as `stagger::time::ThreadSleep`",
    note = "blocking code takes a `stagger::time::BlockingSleep`, async code a `Sleep`",
    note = "the closure of a `SleepFn` must sleep and return `()`"
)]
pub trait BlockingSleep: Clock {
    /// Sleeps for `length`.
    fn sleep(&self, length: Duration);

    /// Sleeps for `length`, or until `cancel` is cancelled. The default implementation checks for cancellation only
    /// before it sleeps.
    fn sleep_unless(&self, length: Duration, cancel: &Cancel) {
        if !cancel.is_cancelled() {
            self.sleep(length);
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: BlockingSleep + ?Sized> BlockingSleep for &T {
    fn sleep(&self, length: Duration) {
        (**self).sleep(length);
    }

    fn sleep_unless(&self, length: Duration, cancel: &Cancel) {
        (**self).sleep_unless(length, cancel);
    }
}

#[diagnostic::do_not_recommend]
impl<T: Sleep + ?Sized> Sleep for &T {
    type Sleeping = T::Sleeping;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        (**self).sleep(length)
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        (**self).rearm(sleeping, length);
    }

    fn resolution(&self) -> Duration {
        (**self).resolution()
    }
}

/// Sleeps on the current thread: the default of blocking calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSleep;

impl Clock for ThreadSleep {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl BlockingSleep for ThreadSleep {
    fn sleep(&self, length: Duration) {
        std::thread::sleep(length);
    }

    fn sleep_unless(&self, length: Duration, cancel: &Cancel) {
        cancel.sleep(length);
    }
}

/// A closure as timer, with the system's clock or another one.
///
/// For async code the closure returns a future that is `Unpin` (box one that is not); for blocking code it sleeps and
/// returns `()`.
///
/// ```
/// use stagger::{Policy, time::SleepFn, blocking};
///
/// let mut slept = std::cell::RefCell::new(Vec::new());
/// let nap = SleepFn::new(|length| slept.borrow_mut().push(length));
/// let answer: Result<(), &str> = blocking::retry(&Policy::DEFAULT, || Err("no")).timer(nap).run();
/// assert_eq!(slept.get_mut().len(), 3);
/// # assert_eq!(answer, Err("no"));
/// ```
#[derive(Clone, Copy)]
pub struct SleepFn<F, C = SystemClock> {
    sleep: F,
    clock: C,
}

impl<F> SleepFn<F> {
    /// Creates a timer from a closure, with the system's clock.
    pub const fn new(sleep: F) -> Self {
        Self { sleep, clock: SystemClock }
    }
}

impl<F, C> SleepFn<F, C> {
    /// Creates a timer from a closure that sleeps on this clock.
    pub const fn with_clock(sleep: F, clock: C) -> Self {
        Self { sleep, clock }
    }
}

impl<F, C: fmt::Debug> fmt::Debug for SleepFn<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SleepFn").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl<F, C: Clock> Clock for SleepFn<F, C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn(Duration) -> S, S: Future<Output = ()> + Unpin, C: Clock> Sleep for SleepFn<F, C> {
    type Sleeping = S;

    fn sleep(&self, length: Duration) -> S {
        (self.sleep)(length)
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn(Duration), C: Clock> BlockingSleep for SleepFn<F, C> {
    fn sleep(&self, length: Duration) {
        (self.sleep)(length);
    }
}
