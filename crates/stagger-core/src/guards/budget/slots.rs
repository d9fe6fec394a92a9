use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom, zeros};
use crate::numbers::instant::Instant;

/// The bits of a word above these hold the slot of time, so that an outdated word is recognized and nothing has to be
/// cleared after a pause of any length.
pub(super) const SLOT_SHIFT: u32 = 28;
/// A flag below them, which is not part of the count: whether a slot of `Spent` is closed.
pub(super) const CLOSED: u64 = 1 << (SLOT_SHIFT - 1);
/// The remaining bits, which hold the count.
pub(super) const COUNT: u64 = CLOSED - 1;
/// Slots of 83 ms last for 180 years.
const LAST_SLOT: u64 = u64::MAX >> SLOT_SHIFT;
/// Below the largest count by more than the number of threads that can add at the same time.
const FULL: u64 = COUNT - (1 << 20);

/// Returns the number of the slot of time.
pub(super) fn slot(now: Instant, slot_nanos: u64) -> u64 {
    (now.as_nanos() / slot_nanos).min(LAST_SLOT)
}

/// Returns the oldest slot that still counts in `slot`.
pub(super) const fn oldest<const N: usize>(slot: u64) -> u64 {
    (slot + 1).saturating_sub(N as u64)
}

/// A count over the last `N` slots of time.
#[derive(Debug)]
pub(super) struct Slots<const N: usize>([AtomicU64; N]);

impl<const N: usize> Slots<N> {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self(zeros())
        }
    }

    /// Counts one more in `slot`; does nothing if that slot is outdated.
    #[inline]
    pub(super) fn add(&self, slot: u64) {
        let word = self.word(slot);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let own = seen >> SLOT_SHIFT;
            if own > slot || (own == slot && seen & COUNT >= FULL) {
                return;
            }
            if own == slot {
                // If the slot has passed in the meantime, this one counts in its successor.
                word.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let first = slot << SLOT_SHIFT | 1;
            match word.compare_exchange_weak(seen, first, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => seen = changed,
            }
        }
    }

    /// Counts one less in `slot`, if it is not yet outdated.
    pub(super) fn take_back(&self, slot: u64) {
        let _ = self.word(slot).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |seen| {
            (seen >> SLOT_SHIFT == slot && seen & COUNT > 0).then(|| seen - 1)
        });
    }

    /// Returns the count over the slots that still count in `slot`.
    pub(super) fn sum(&self, slot: u64) -> u64 {
        let oldest = oldest::<N>(slot);
        let seen = self.0.iter().map(|word| word.load(Ordering::Relaxed));
        seen.filter(|seen| seen >> SLOT_SHIFT >= oldest).map(|seen| seen & COUNT).sum()
    }

    /// Returns the newest slot in which anything was counted.
    pub(super) fn newest(&self) -> u64 {
        self.0.iter().map(|word| word.load(Ordering::Relaxed) >> SLOT_SHIFT).max().unwrap_or(0)
    }

    /// Returns the word for `slot`, which earlier and later slots share.
    #[inline]
    pub(super) fn word(&self, slot: u64) -> &AtomicU64 {
        &self.0[slot as usize % N]
    }
}
