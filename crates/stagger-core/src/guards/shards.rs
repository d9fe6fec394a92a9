use core::ptr;

use crate::numbers::atomic::{AtomicU64, Ordering, Padded};

/// A model of every interleaving has to be small, and its threads have no stacks of their own.
const SHARDS: usize = if cfg!(loom) { 1 } else { 8 };

/// A counter spread over cache lines, so that different threads do not disturb each other.
///
/// `core` has no thread ids: a thread is identified by the address of its stack.
#[derive(Debug)]
pub(super) struct Shards([Padded<AtomicU64>; SHARDS]);

impl Shards {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self([const { Padded(AtomicU64::new(0)) }; SHARDS])
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| Padded(AtomicU64::new(0))))
    }

    #[inline]
    pub(super) fn add(&self) {
        self.here().fetch_add(1, Ordering::Relaxed);
    }

    /// Adds one without a locked instruction, and returns the new count of this shard. Threads that share a shard can
    /// lose additions.
    #[inline]
    pub(super) fn add_loosely(&self) -> u64 {
        let here = self.here();
        let count = here.load(Ordering::Relaxed).wrapping_add(1);
        here.store(count, Ordering::Relaxed);
        count
    }

    /// Subtracts one. It may be from another shard than it was added to: only the sum is meaningful.
    #[inline]
    pub(super) fn take_back(&self) {
        self.here().fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the additions less the subtractions; zero if a subtraction was seen first.
    pub(super) fn sum(&self) -> u64 {
        let sum = self.0.iter().fold(0_u64, |sum, shard| sum.wrapping_add(shard.0.load(Ordering::Relaxed)));
        if sum > i64::MAX as u64 { 0 } else { sum }
    }

    #[inline]
    fn here(&self) -> &AtomicU64 {
        let mark = 0_u8;
        &self.0[shard(ptr::from_ref(&mark).addr() as u64)].0
    }
}

/// Returns the shard for an address on a stack. Stacks are evenly spaced, mostly 2 MiB apart; Fibonacci hashing spreads
/// them in its uppermost bits.
#[inline]
const fn shard(address: u64) -> usize {
    let hash = (address >> 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (((hash >> 32) * SHARDS as u64) >> 32) as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_with_neighboring_stacks_have_different_shards() {
        for spacing in [0x8_0000, 0x10_0000, 0x20_0000, 0x20_1000, 0x20_2000, 0x40_0000, 0x80_1000] {
            for base in (0..1_000).map(|n| 0x7f00_1234_5678_u64 + n * 0x1_2340) {
                let mut used = [false; SHARDS];
                (0..8).for_each(|thread| used[shard(base + thread * spacing)] = true);
                let used = used.into_iter().filter(|&used| used).count();
                assert!(used >= 4, "{used} shards for 8 threads, {spacing:#x} apart from {base:#x}");
            }
        }
    }

    #[test]
    fn a_subtraction_may_come_from_another_shard() {
        let shards = std::sync::Arc::new(Shards::new());
        for _ in 0..3 {
            shards.add();
        }
        let there = std::sync::Arc::clone(&shards);
        std::thread::spawn(move || (0..2).for_each(|_| there.take_back())).join().unwrap();
        assert_eq!(shards.sum(), 1);
        shards.take_back();
        shards.take_back();
        assert_eq!(shards.sum(), 0, "seen before it was added");
    }
}
