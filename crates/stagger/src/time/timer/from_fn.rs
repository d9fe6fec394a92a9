use core::fmt;
use core::future::Future;
use core::time::Duration;

use stagger_core::Instant;

use super::sleep::{BlockingSleep, Sleep};
use crate::time::{Clock, SystemClock};

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
