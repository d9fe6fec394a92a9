use super::slots::{CLOSED, COUNT, SLOT_SHIFT, Slots, oldest};
use crate::sync::Ordering;

/// What was spent over the last `N` slots of time, never more than is allowed, whoever asks at the same time.
///
/// Whoever spends in a slot first closes those before it, so that nobody can spend there unseen, and then exchanges the
/// word of its own slot for one that counts one more. If anybody has spent there or closed it meanwhile, the exchange
/// fails and everything is looked at again. A word says all that matters about its slot, so the order in which a thread
/// sees two words does not matter, and relaxed operations do.
#[derive(Debug)]
pub(super) struct Spent<const N: usize>(Slots<N>);

impl<const N: usize> Spent<N> {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self(Slots::new())
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(Slots::new())
    }

    /// Spends one in `slot`, or in a newer one if another thread's clock has got there already, if `allowed(slot)` is
    /// more than what was spent. Tells in which slot.
    pub(super) fn spend(&self, mut slot: u64, allowed: impl Fn(u64) -> u64) -> Option<u64> {
        loop {
            let word = self.0.word(slot);
            let seen = word.load(Ordering::Relaxed);
            let own = seen >> SLOT_SHIFT;
            if own > slot || (own == slot && seen & CLOSED != 0) {
                // The slot is over for somebody, so it is for all.
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

    /// One less in `slot`, if it is not yet out of date.
    pub(super) fn take_back(&self, slot: u64) {
        self.0.take_back(slot);
    }

    /// What was spent over the slots that have not yet passed in `slot`.
    pub(super) fn sum(&self, slot: u64) -> u64 {
        self.0.sum(slot)
    }

    /// The newest slot in which anybody spent.
    pub(super) fn newest(&self) -> u64 {
        self.0.newest()
    }

    /// Closes the slots before `slot`, and tells what was spent in them; or a newer slot that has begun.
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
