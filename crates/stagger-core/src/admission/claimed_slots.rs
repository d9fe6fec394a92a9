use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom, zeros};

/// How many slots a word holds. Its other half is the lap of the ring that they belong to.
const SLOTS_PER_WORD: u64 = 32;
/// 16 KiB, for 65,536 slots.
#[cfg(not(loom))]
const WORDS: usize = 2048;
#[cfg(loom)]
const WORDS: usize = 2;
const SLOTS: u64 = WORDS as u64 * SLOTS_PER_WORD;

/// Which of the latest numbered slots are claimed: a ring of bits. Its size is constant, however many clients come.
///
/// A slot is claimed once. Slots that a later lap has overwritten are forgotten, and cannot be claimed.
pub(super) struct ClaimedSlots {
    words: [AtomicU64; WORDS],
}

impl ClaimedSlots {
    const_unless_loom! {
        /// Creates a ring in which no slot is claimed.
        pub(super) const fn new() -> Self {
            Self { words: zeros() }
        }
    }

    /// Claims a slot. Returns whether it was unclaimed.
    pub(super) fn claim(&self, slot: u64) -> bool {
        let (lap, bit) = (lap(slot), 1 << (slot % SLOTS_PER_WORD));
        let claimed = self.word(slot).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            let claimed = claimed_in(word, lap);
            if claimed & bit != 0 {
                return None;
            }
            Some(u64::from(lap) << 32 | u64::from(claimed | bit))
        });
        claimed.is_ok()
    }

    /// Claims the first unclaimed slot from `first` to `last`, and returns it.
    pub(super) fn claim_first(&self, first: u64, last: u64) -> Option<u64> {
        self.unclaimed(first, last).find_map(|(start, mut open)| {
            while open != 0 {
                let slot = start + u64::from(open.trailing_zeros());
                if self.claim(slot) {
                    return Some(slot);
                }
                // Another thread has claimed it in the meantime.
                open &= open - 1;
            }
            None
        })
    }

    /// Returns the number of unclaimed slots from `first` to `last`.
    pub(super) fn count_unclaimed(&self, first: u64, last: u64) -> u64 {
        self.unclaimed(first, last).map(|(_, open)| u64::from(open.count_ones())).sum()
    }

    /// Returns the unclaimed slots from `first` to `last` that are remembered, as bits per word, with its first slot.
    fn unclaimed(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let first = first.max(last.saturating_sub(SLOTS - 1));
        let words = if first <= last { first / SLOTS_PER_WORD..last / SLOTS_PER_WORD + 1 } else { 0..0 };
        words.map(move |number| {
            let start = number * SLOTS_PER_WORD;
            let claimed = claimed_in(self.word(start).load(Ordering::Relaxed), lap(start));
            let from = u32::MAX << first.saturating_sub(start);
            let until = u32::MAX >> (SLOTS_PER_WORD - 1).saturating_sub(last - start);
            (start, !claimed & from & until)
        })
    }

    fn word(&self, slot: u64) -> &AtomicU64 {
        &self.words[(slot / SLOTS_PER_WORD) as usize % WORDS]
    }
}

/// Returns the lap of a slot. It wraps after 2⁴⁸ slots, and laps are compared as distances.
const fn lap(slot: u64) -> u32 {
    (slot / SLOTS) as u32
}

/// Returns the claimed slots of `lap` in a word: none if it was last written in an earlier lap, all if in a later one.
const fn claimed_in(word: u64, lap: u32) -> u32 {
    let written = (word >> 32) as u32;
    // A word that was never written is zero: a written one has at least one claimed slot.
    if word == 0 {
        0
    } else if written == lap {
        word as u32
    } else if lap.wrapping_sub(written) < 1 << 31 {
        0
    } else {
        u32::MAX
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_slot_is_claimed_once_in_any_order() {
        for offset in [0, 31, SLOTS - 1, 1 << 47, (1 << 48) - 50, u64::MAX - 100] {
            let slots = ClaimedSlots::new();
            let order: Vec<_> = (0..100).map(|n| offset + n * 37 % 100).collect();
            assert!(order.iter().all(|&slot| slots.claim(slot)), "from {offset}");
            assert!(!order.iter().any(|&slot| slots.claim(slot)), "from {offset}");
        }
    }

    #[test]
    fn a_forgotten_slot_cannot_be_claimed_again() {
        let slots = ClaimedSlots::new();
        for lap in [0, 1, 2, 5] {
            let slot = 1_000 + lap * SLOTS;
            assert!(slots.claim(slot));
            assert!(!slots.claim(slot));
            assert!(lap == 0 || !slots.claim(slot + 1 - SLOTS), "an earlier lap of its word");
        }
        assert!(slots.claim(2_000), "a word that no later lap has written");
    }

    #[test]
    fn the_first_unclaimed_slot_of_a_range_is_claimed() {
        let slots = ClaimedSlots::new();
        assert!((100..170).all(|slot| slot == 133 || slot == 164 || slots.claim(slot)));
        assert_eq!(slots.count_unclaimed(100, 169), 2);
        assert_eq!([slots.count_unclaimed(133, 133), slots.count_unclaimed(134, 163)], [1, 0]);
        assert_eq!(slots.count_unclaimed(90, 175), 10 + 2 + 6);
        assert_eq!(slots.claim_first(100, 132), None);
        assert_eq!(slots.claim_first(100, 169), Some(133));
        assert_eq!(slots.claim_first(100, 169), Some(164));
        assert_eq!(slots.claim_first(100, 169), None);
        assert_eq!(slots.claim_first(100, 99), None);
        assert_eq!(
            slots.claim_first(0, u64::MAX - 1),
            Some(u64::MAX - SLOTS),
            "ranges are cut to the size of the ring"
        );
    }
}
