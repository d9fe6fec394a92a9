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
