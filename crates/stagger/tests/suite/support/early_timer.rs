use core::time::Duration;

use stagger::Instant;
use stagger::testing::{VirtualClock, VirtualSleep};
use stagger::time::{BlockingSleep, Clock, Sleep};

/// A timer that wakes up too early: each sleep lasts `percent` of the requested length, and at least a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct EarlyTimer {
    pub(crate) clock: VirtualClock,
    percent: u32,
}

impl EarlyTimer {
    pub(crate) fn new(percent: u32) -> Self {
        Self { clock: VirtualClock::new(), percent }
    }

    fn shortened(&self, length: Duration) -> Duration {
        (length * self.percent / 100).max(Duration::from_nanos(1))
    }
}

impl Clock for EarlyTimer {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl Sleep for EarlyTimer {
    type Sleeping = VirtualSleep;

    fn sleep(&self, length: Duration) -> VirtualSleep {
        Sleep::sleep(&self.clock, self.shortened(length))
    }
}

impl BlockingSleep for EarlyTimer {
    fn sleep(&self, length: Duration) {
        BlockingSleep::sleep(&self.clock, self.shortened(length));
    }
}
