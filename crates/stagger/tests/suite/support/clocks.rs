//! A clock that counts its readings, and a timer that fires early.

use core::cell::Cell;
use core::time::Duration;

use stagger::Instant;
use stagger::testing::{VirtualClock, VirtualSleep};
use stagger::time::{BlockingSleep, Clock, Sleep};

/// A virtual clock that counts its reads.
#[derive(Debug, Default)]
pub(crate) struct CountingClock {
    clock: VirtualClock,
    reads: Cell<u32>,
}

impl CountingClock {
    /// Returns the number of reads, without those of its own sleeps.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.get()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

impl Clock for CountingClock {
    fn now(&self) -> Instant {
        self.reads.set(self.reads.get() + 1);
        self.clock.now()
    }
}

impl Sleep for CountingClock {
    type Sleeping = VirtualSleep;

    fn sleep(&self, length: Duration) -> VirtualSleep {
        Sleep::sleep(&self.clock, length)
    }
}

impl BlockingSleep for CountingClock {
    fn sleep(&self, length: Duration) {
        BlockingSleep::sleep(&self.clock, length);
    }
}

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
