//! What a process has counted lately.

use super::claim::{Counts, WindowLimits};
use crate::ledger::Counted;

/// The calls and retries of one process by slot, read from its counters now and then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    length: u64,
    counts: Counts,
    /// The youngest slot.
    newest: u64,
    /// When the counters were read last, and what they said.
    read_at: u64,
    retries: u64,
    calls: u64,
}

impl History {
    /// Creates the history of a process that begins at `now`, with slots of the window.
    pub(crate) const fn new(limits: &WindowLimits, now: u64) -> Self {
        let length = limits.slot_length();
        Self {
            length,
            counts: Counts { calls: [0; super::claim::SLOTS], retries: [0; super::claim::SLOTS] },
            newest: now / length,
            read_at: now,
            retries: 0,
            calls: 0,
        }
    }

    /// Takes over what the counters have grown by. Retries count as of now, and calls as of `longest` after the last
    /// time at the latest: a process that was stopped does not move the calls of before.
    pub(crate) fn count(&mut self, counted: &Counted, longest: u64, now: u64) {
        let newest = (now / self.length).max(self.newest);
        self.counts.shift(newest - self.newest);
        self.newest = newest;
        let made_by = now.min(self.read_at.saturating_add(longest)) / self.length;
        let calls = counted.earned.wrapping_sub(self.calls);
        if let Some(slot) =
            usize::try_from(newest - made_by.min(newest)).ok().and_then(|age| self.counts.calls.get_mut(age))
        {
            *slot += calls;
        }
        let retries = counted.spent.wrapping_sub(self.retries);
        if retries <= u64::MAX / 2 {
            self.counts.retries[0] += retries;
        } else {
            self.take_back(retries.wrapping_neg());
        }
        (self.read_at, self.calls, self.retries) = (now, counted.earned, counted.spent);
    }

    /// Takes back retries that were not made after all: the oldest, so that those that were made count for as long as
    /// they should.
    fn take_back(&mut self, mut retries: u64) {
        for slot in self.counts.retries.iter_mut().rev() {
            let taken = retries.min(*slot);
            *slot -= taken;
            retries -= taken;
        }
    }

    /// Returns what was counted, and how long the youngest slot has lasted.
    pub(crate) const fn counts(&self) -> (&Counts, u64) {
        (&self.counts, self.read_at % self.length)
    }
}
