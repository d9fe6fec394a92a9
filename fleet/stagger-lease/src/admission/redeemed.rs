use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// How many positions are remembered: 512 KiB.
const SIZE: usize = 1 << 16;

/// The reserved positions that this server has redeemed lately: a table of fixed size, in which a newer one replaces an
/// older one.
pub(super) struct Redeemed {
    entries: Box<[AtomicU64]>,
}

impl Redeemed {
    pub(super) fn new() -> Self {
        Self { entries: (0..SIZE).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes that a position is redeemed. Returns whether it was not before.
    pub(super) fn claim(&self, position: u64) -> bool {
        self.entry(position).swap(position, Ordering::AcqRel) != position
    }

    /// Forgets a position that was not redeemed after all.
    pub(super) fn forget(&self, position: u64) {
        // If it fails, another one has replaced it.
        let _ = self.entry(position).compare_exchange(position, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn entry(&self, position: u64) -> &AtomicU64 {
        // Fibonacci hashing: the upper bits depend on all of the lower ones.
        let hash = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
        &self.entries[hash as usize % SIZE]
    }
}

impl fmt::Debug for Redeemed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redeemed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_redeemed_once_while_it_is_remembered() {
        let redeemed = Redeemed::new();
        assert!((1..=5_000_u64).all(|n| redeemed.claim(n * 2_000_000 + 7)));
        let again = (1..=5_000_u64).filter(|n| redeemed.claim(n * 2_000_000 + 7)).count();
        // A few have replaced each other.
        assert!(again < 500, "{again} of 5,000");
        redeemed.forget(2_000_007);
        assert!(redeemed.claim(2_000_007));
    }
}
