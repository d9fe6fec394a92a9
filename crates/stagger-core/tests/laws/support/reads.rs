use core::cell::Cell;

use stagger_core::Instant;

/// A clock that stands still and counts how often it is read.
pub(crate) struct Reads {
    now: Cell<Instant>,
    count: Cell<u32>,
}

impl Reads {
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now: Cell::new(now), count: Cell::new(0) }
    }

    /// The reading, to be handed to a machine.
    pub(crate) fn clock(&self) -> impl FnOnce() -> Instant + '_ {
        || {
            self.count.set(self.count.get() + 1);
            self.now.get()
        }
    }

    /// How often it was read since the last time of asking.
    pub(crate) fn taken(&self) -> u32 {
        self.count.replace(0)
    }

    pub(crate) fn set(&self, now: Instant) {
        self.now.set(now);
    }
}
