use super::slots::{CLOSED, COUNT, SLOT_SHIFT, Slots, oldest};
use crate::numbers::atomic::{Ordering, const_unless_loom};

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
