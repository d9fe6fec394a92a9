//! What a process claims of a shared window, and what the store replies.

use crate::claim::SECOND;

/// Into how many slots the length of a window is divided.
pub const PARTS: u64 = 20;
/// The slots that reports have: a retry counts in its own and so many after it that the length of the window is always
/// covered.
pub const SLOTS: usize = 21;
/// The slots in which a call counts: at most the length of the window, and the time until it is reported.
const CALL_SLOTS: usize = 19;
/// One retry in millionths.
const WHOLE: u64 = 1_000_000;

/// The limits of a shared window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowLimits {
    /// The length of the window in microseconds.
    pub ttl: u64,
    /// How many retries each call allows, in millionths.
    pub ratio: u64,
    /// How many retries per second all processes have in addition.
    pub min_per_second: u64,
}

impl WindowLimits {
    /// Returns the length of a slot in microseconds.
    #[must_use]
    pub const fn slot_length(&self) -> u64 {
        let length = self.ttl / PARTS;
        if length == 0 { 1 } else { length }
    }

    /// Returns what all processes have in addition in one window, in millionths of a retry.
    #[must_use]
    pub const fn minimum(&self) -> u64 {
        // Microseconds are millionths of a second.
        self.min_per_second.saturating_mul(self.ttl)
    }

    /// Returns how many retries so many calls allow a process that has this part of the minimum.
    pub(crate) fn allowed(&self, calls: u64, processes: u64) -> u64 {
        let minimum = self.minimum() / processes.max(1);
        calls.saturating_mul(self.ratio).saturating_add(minimum) / WHOLE
    }
}

/// The counts of a process by slot, the youngest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// First attempts.
    pub calls: [u64; SLOTS],
    /// Retries.
    pub retries: [u64; SLOTS],
}

impl Counts {
    /// Returns the calls and the retries that count.
    pub(crate) fn sums(&self) -> (u64, u64) {
        (self.calls[..CALL_SLOTS].iter().sum(), self.retries.iter().sum())
    }

    /// Makes every slot so much older.
    pub(crate) fn shift(&mut self, slots: u64) {
        let slots = slots.min(SLOTS as u64) as usize;
        for counts in [&mut self.calls, &mut self.retries] {
            counts.rotate_right(slots % SLOTS);
            counts[..slots].fill(0);
        }
    }
}

/// What a report says about one shared window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowClaim {
    /// The retries that the process may make.
    pub held: u64,
    /// How many it wants to hold; `None` if the process leaves.
    pub want: Option<u64>,
    /// How long the youngest slot has lasted, in microseconds: less than the length of a slot.
    pub age: u64,
    /// What the process has counted.
    pub counts: Counts,
    /// The limits of the window.
    pub limits: WindowLimits,
}

/// What a process has of a shared window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowLease {
    /// The retries that the process may hold, of which it has claimed a part.
    pub retries: u64,
    /// The processes that have a lease.
    pub processes: u64,
    /// How many retries the calls of all processes allow.
    pub allowed: u64,
    /// How many of them are left; negative if there were more than are allowed.
    pub left: i64,
}

const _: () = assert!(SECOND == WHOLE, "the minimum per second, times microseconds, is in millionths");
