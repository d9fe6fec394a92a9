use core::cell::Cell;
use core::time::Duration;

use stagger::testing::{VirtualClock, VirtualSleep};
use stagger::{Instant, time::BlockingSleep, time::Clock, time::Sleep};

/// Virtual time that counts how often it is read.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    clock: VirtualClock,
    reads: Cell<u32>,
}

impl Counted {
    /// How often it was read, besides by its own sleeps.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.get()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

impl Clock for Counted {
    fn now(&self) -> Instant {
        self.reads.set(self.reads.get() + 1);
        self.clock.now()
    }
}

impl Sleep for Counted {
    type Sleeping = VirtualSleep;

    fn sleep(&self, length: Duration) -> VirtualSleep {
        Sleep::sleep(&self.clock, length)
    }
}

impl BlockingSleep for Counted {
    fn sleep(&self, length: Duration) {
        BlockingSleep::sleep(&self.clock, length);
    }
}
