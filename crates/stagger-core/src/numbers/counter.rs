//! A stand-in for `AtomicU32` on targets that cannot compare and swap, such as `thumbv6m` and `riscv32imc`. It is not `Sync`, so
//! that it needs no atomic operation.

use core::cell::Cell;
use core::sync::atomic::Ordering;

/// The part of the interface of `core::sync::atomic::AtomicU32` that this crate uses.
#[derive(Debug)]
pub(crate) struct AtomicU32(Cell<u32>);

impl AtomicU32 {
    pub(crate) const fn new(value: u32) -> Self {
        Self(Cell::new(value))
    }

    pub(crate) fn load(&self, _: Ordering) -> u32 {
        self.0.get()
    }

    pub(crate) fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.0.replace(self.0.get().wrapping_add(value))
    }

    pub(crate) fn compare_exchange(&self, old: u32, new: u32, _: Ordering, _: Ordering) -> Result<u32, u32> {
        let current = self.0.get();
        if current != old {
            return Err(current);
        }
        Ok(self.0.replace(new))
    }

    pub(crate) fn fetch_update(
        &self,
        _: Ordering,
        _: Ordering,
        update: impl FnOnce(u32) -> Option<u32>,
    ) -> Result<u32, u32> {
        let current = self.0.get();
        update(current).map(|new| self.0.replace(new)).ok_or(current)
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic;

    use super::*;

    #[test]
    fn the_counter_without_atomic_instructions_does_what_the_atomic_does() {
        let (ours, theirs) = (AtomicU32::new(u32::MAX), atomic::AtomicU32::new(u32::MAX));
        let order = Ordering::Relaxed;
        for value in [3, 0, 7, u32::MAX] {
            assert_eq!(ours.fetch_add(value, order), theirs.fetch_add(value, order));
            for (old, new) in [(value, 1), (2, 9), (1, 5)] {
                let want = theirs.compare_exchange(old, new, order, order);
                assert_eq!(ours.compare_exchange(old, new, order, order), want);
            }
            for update in [|at: u32| at.checked_sub(2), |at: u32| at.checked_add(8)] {
                assert_eq!(ours.fetch_update(order, order, update), theirs.fetch_update(order, order, update));
            }
            assert_eq!(ours.load(order), theirs.load(order));
        }
    }
}
