//! Counts over the last slots of time, and the retries spent in them.

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
            if seen >> SLOT_SHIFT == slot && seen & COUNT > 0 { Some(seen - 1) } else { None }
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

/// The retries granted over the last `N` slots of time, never more than allowed, whatever the number of threads.
///
/// A thread that spends in a slot first closes the slots before it, so that no thread can spend there unseen, and then
/// exchanges the word of its own slot for one that counts one more. If another thread has spent there or closed it in
/// the meantime, the exchange fails and the thread starts over. A word holds everything about its slot, so the order in
/// which a thread sees two words does not matter, and relaxed operations suffice.
#[derive(Debug)]
pub(super) struct Spent<const N: usize>(Slots<N>);

impl<const N: usize> Spent<N> {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self(Slots::new())
        }
    }

    /// Spends one in `slot`, or in a newer one if another thread's clock is ahead, if `allowed(slot)` exceeds what was
    /// spent. Returns the slot.
    pub(super) fn spend(&self, mut slot: u64, allowed: impl Fn(u64) -> u64) -> Option<u64> {
        loop {
            let word = self.0.word(slot);
            let seen = word.load(Ordering::Relaxed);
            let own = seen >> SLOT_SHIFT;
            if own > slot || (own == slot && seen & CLOSED != 0) {
                // Once the slot is over for one thread, it is over for all.
                slot = own.max(slot + 1);
                continue;
            }
            let here = if own == slot { seen & COUNT } else { 0 };
            let before = match self.close_before(slot) {
                Ok(before) => before,
                Err(newer) => {
                    slot = newer;
                    continue;
                }
            };
            if before + here >= allowed(slot) || here == COUNT {
                return None;
            }
            let new = slot << SLOT_SHIFT | (here + 1);
            if word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Some(slot);
            }
        }
    }

    /// Counts one less in `slot`, if it is not yet outdated.
    pub(super) fn take_back(&self, slot: u64) {
        self.0.take_back(slot);
    }

    /// Returns what was spent over the slots that still count in `slot`.
    pub(super) fn sum(&self, slot: u64) -> u64 {
        self.0.sum(slot)
    }

    /// Returns the newest slot in which anything was spent.
    pub(super) fn newest(&self) -> u64 {
        self.0.newest()
    }

    /// Closes the slots before `slot` and returns what was spent in them; or returns a newer slot that has begun.
    fn close_before(&self, slot: u64) -> Result<u64, u64> {
        let mut sum = 0;
        for slot in oldest::<N>(slot)..slot {
            let word = self.0.word(slot);
            let mut seen = word.load(Ordering::Relaxed);
            loop {
                let own = seen >> SLOT_SHIFT;
                if own > slot {
                    return Err(own);
                }
                if own == slot && seen & CLOSED != 0 {
                    break;
                }
                let closed = if own == slot { seen | CLOSED } else { slot << SLOT_SHIFT | CLOSED };
                match word.compare_exchange_weak(seen, closed, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => seen = closed,
                    Err(changed) => seen = changed,
                }
            }
            sum += seen & COUNT;
        }
        Ok(sum)
    }
}
