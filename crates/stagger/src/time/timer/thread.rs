use core::time::Duration;

use stagger_core::Instant;

use super::sleep::BlockingSleep;
use crate::time::cancel::Cancel;
use crate::time::{Clock, SystemClock};

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
