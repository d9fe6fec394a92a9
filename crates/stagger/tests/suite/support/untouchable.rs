use core::future::Ready;
use core::time::Duration;

use stagger::{Instant, time::BlockingSleep, time::Clock, time::Sleep};

/// A timer that must not be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untouchable;

impl Clock for Untouchable {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl Sleep for Untouchable {
    type Sleeping = Ready<()>;

    fn sleep(&self, length: Duration) -> Ready<()> {
        panic!("the timer was asked for {length:?}")
    }
}

impl BlockingSleep for Untouchable {
    fn sleep(&self, length: Duration) {
        panic!("the timer was asked for {length:?}")
    }
}
