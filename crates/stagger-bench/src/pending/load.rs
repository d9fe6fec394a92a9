//! What every row of section F keeps, and for how long.

use core::time::Duration;

use crate::case::{Case, Role, Table};

/// How many are pending all the time. A test looks whether a case runs, and needs no million for it.
pub(super) const PENDING: u32 = if cfg!(test) { 1_000 } else { 1_000_000 };

/// As many operations as are pending: so many that each entry has come, and was moved as often as it has to be.
pub(crate) const BULK: u64 = PENDING as u64;

/// The longest wait, in milliseconds; all are equally likely.
pub(super) const LONGEST_MS: u64 = 60_000;

/// What names an item.
pub(super) type Item = u64;

/// The waits of one case, in a queue the same in every case.
pub(super) struct Waits(fastrand::Rng);

impl Waits {
    pub(super) fn new() -> Self {
        Self::of(7)
    }

    pub(super) fn of(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// The next one, in milliseconds, at least one.
    pub(super) fn next_ms(&mut self) -> u64 {
        self.0.u64(1..=LONGEST_MS)
    }

    pub(super) fn next(&mut self) -> Duration {
        Duration::from_millis(self.next_ms())
    }

    /// One of those that are pending.
    pub(super) fn pick(&mut self) -> usize {
        self.0.usize(..PENDING as usize)
    }
}

/// Something in which a million items wait for their time.
pub(super) trait Pending {
    /// With [`PENDING`] items.
    fn full() -> Self;
}

/// A case on a queue that is filled once, for all turns of the case.
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

/// A row of the first table.
pub(super) const fn due(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// A row of the first table with a task for each entry; time only, since a million tasks take callgrind minutes.
pub(super) const fn task(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::wait(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// A row of the second table.
pub(super) const fn cancelled(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingCancelled, role, name, run)
}
