//! The items that every row of section F keeps, and their delays.

use core::time::Duration;

use crate::case::{Case, Role, Table};

/// The number of items that are pending at any time. Tests only check that a case runs, which takes fewer.
pub(super) const PENDING: u32 = if cfg!(test) { 1_000 } else { 1_000_000 };

/// The number of operations of a run: enough that on average each entry becomes due once, with all its moves between the
/// levels of a wheel.
pub(crate) const BULK: u64 = PENDING as u64;

/// The longest delay in milliseconds. Delays are uniformly distributed.
pub(super) const LONGEST_MS: u64 = 60_000;

/// An item, which is its number.
pub(super) type Item = u64;

/// The delays of a case, the same sequence in every case.
pub(super) struct Delays(fastrand::Rng);

impl Delays {
    pub(super) fn new() -> Self {
        Self::with_seed(7)
    }

    pub(super) fn with_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns the next delay in milliseconds, at least 1.
    pub(super) fn next_ms(&mut self) -> u64 {
        self.0.u64(1..=LONGEST_MS)
    }

    pub(super) fn next(&mut self) -> Duration {
        Duration::from_millis(self.next_ms())
    }

    /// Returns the index of a random pending item.
    pub(super) fn pick(&mut self) -> usize {
        self.0.usize(..PENDING as usize)
    }
}

/// A structure in which a million items are pending.
pub(super) trait Pending {
    /// Creates the structure with [`PENDING`] items.
    fn full() -> Self;
}

/// Creates a case on a queue that is filled once for all turns of the case.
macro_rules! on {
    ($queue:ty, $turns:expr) => {
        |times| {
            thread_local! {
                static QUEUE: core::cell::RefCell<$queue> = core::cell::RefCell::new(Pending::full());
            }
            QUEUE.with_borrow_mut(|queue| $turns(queue, times));
        }
    };
}
pub(super) use on;

/// Creates a row of the first table.
pub(super) const fn due(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// Creates a row of the first table with a task per entry. Only its time is measured: a million tasks take minutes under
/// callgrind.
pub(super) const fn task(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::wait(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// Creates a row of the second table.
pub(super) const fn cancelled(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingCancelled, role, name, run)
}
