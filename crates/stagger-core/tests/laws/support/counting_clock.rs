use core::cell::Cell;

use stagger_core::Instant;

/// A clock that does not advance by itself and counts how often it is read.
pub(crate) struct CountingClock {
    now: Cell<Instant>,
    count: Cell<u32>,
}

impl CountingClock {
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now: Cell::new(now), count: Cell::new(0) }
    }

    /// Returns a closure that reads the clock, to pass to a machine.
    pub(crate) fn reader(&self) -> impl FnOnce() -> Instant + '_ {
        || {
            self.count.set(self.count.get() + 1);
            self.now.get()
        }
    }

    /// Returns the number of reads since the previous call.
    pub(crate) fn take_reads(&self) -> u32 {
        self.count.replace(0)
    }

    pub(crate) fn set(&self, now: Instant) {
        self.now.set(now);
    }
}
