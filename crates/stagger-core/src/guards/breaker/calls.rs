//! The last `n` calls, counted exactly by any number of threads.

use core::array;

use super::window::{Mark, Tally};
use crate::numbers::atomic::{AtomicU64, Ordering};

/// The size of the largest window.
pub(super) const MAX_CALLS: u32 = 1_000;

const PER_WORD: u32 = 16;
const WORDS: usize = MAX_CALLS.div_ceil(PER_WORD) as usize;

/// A ring of two bits per call, and a head word with the sums.
///
/// The head holds everything that a decision needs, so every result is one compare-and-swap, and the sums are those of
/// the last `n` results in the order of these swaps. The head also holds the newest result; the thread that counts the
/// next one writes it into the ring before the head moves on. So no thread waits for another, and the bits that leave
/// the window are always those of the call `n` results ago.
#[derive(Debug)]
pub(super) struct CallWindow {
    size: u32,
    head: AtomicU64,
    /// `marks: 32 bits, changes: 32`. The number of changes prevents a thread that was suspended from writing an old
    /// mark.
    ring: [AtomicU64; WORDS],
}

impl CallWindow {
    /// Creates a window of the last `size` calls; at least one, at most [`MAX_CALLS`].
    pub(super) fn new(size: u32) -> Self {
        Self {
            size: size.clamp(1, MAX_CALLS),
            head: AtomicU64::new(Head::empty(1).0),
            ring: array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub(super) fn fresh(&self) -> Self {
        Self::new(self.size)
    }

    pub(super) fn count(&self, generation: u64, mark: Mark) -> Option<Tally> {
        loop {
            let head = self.head();
            if !head.is_of(generation) {
                return None;
            }
            if !self.write_newest(head) {
                continue;
            }
            let gone = if head.calls() < u64::from(self.size) { 0 } else { self.marks(head.place()) };
            let next = head.next(self.size, mark, gone);
            if self.head.compare_exchange(head.0, next.0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Some(next.tally());
            }
        }
    }

    pub(super) fn begin(&self, generation: u64) {
        self.head.store(Head::empty(generation).0, Ordering::Release);
        // One more change of each word, so that no mark of the old state can get into the new one.
        for word in &self.ring[..self.size.div_ceil(PER_WORD) as usize] {
            word.fetch_add(1 << 32, Ordering::AcqRel);
        }
    }

    pub(super) fn tally(&self, generation: u64) -> Tally {
        let head = self.head();
        if head.is_of(generation) { head.tally() } else { Tally::default() }
    }

    fn head(&self) -> Head {
        Head(self.head.load(Ordering::Acquire))
    }

    /// Writes the newest mark into the ring, unless another thread has. Returns false if the head has moved.
    fn write_newest(&self, head: Head) -> bool {
        if head.calls() == 0 {
            return true;
        }
        let (word, shift) = self.at(head.place().checked_sub(1).unwrap_or(self.size - 1));
        loop {
            let seen = word.load(Ordering::Acquire);
            if seen >> shift & 3 == head.newest() {
                return true;
            }
            if self.head() != head {
                return false;
            }
            let changes = (seen >> 32).wrapping_add(1) << 32;
            let marks = seen & u64::from(u32::MAX) & !(3 << shift) | head.newest() << shift;
            if word.compare_exchange(seen, changes | marks, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
    }

    fn marks(&self, place: u32) -> u64 {
        let (word, shift) = self.at(place);
        word.load(Ordering::Acquire) >> shift & 3
    }

    fn at(&self, place: u32) -> (&AtomicU64, u32) {
        // `place < size <= MAX_CALLS`, so the index is in range.
        (&self.ring[(place / PER_WORD) as usize], place % PER_WORD * 2)
    }
}

/// `newest mark: 2 bits, failures: 10, slow: 10, calls: 10, place: 10, lap: 14, generation: 8`.
///
/// The place is where the next mark goes. The laps prevent a thread that was suspended from taking a later head for the
/// one that it saw: only a thread that was suspended for exactly 16,384 laps can, if the sums happen to be the same
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head(u64);

const FAILURES: u32 = 2;
const SLOW: u32 = 12;
const CALLS: u32 = 22;
const PLACE: u32 = 32;
const LAP: u32 = 42;
const LAPS: u64 = (1 << 14) - 1;
const GENERATION: u32 = 56;
const COUNT: u64 = (1 << 10) - 1;

const FAILED_MARK: u64 = 1;
const SLOW_MARK: u64 = 2;

impl Head {
    const fn empty(generation: u64) -> Self {
        Self(generation << GENERATION)
    }

    const fn is_of(self, generation: u64) -> bool {
        self.0 >> GENERATION == generation << GENERATION >> GENERATION
    }

    const fn newest(self) -> u64 {
        self.0 & 3
    }

    const fn calls(self) -> u64 {
        self.0 >> CALLS & COUNT
    }

    const fn place(self) -> u32 {
        (self.0 >> PLACE & COUNT) as u32
    }

    const fn tally(self) -> Tally {
        Tally { calls: self.calls(), failures: self.0 >> FAILURES & COUNT, slow: self.0 >> SLOW & COUNT }
    }

    /// Returns the head after one more result, when the marks that are `gone` leave the window.
    const fn next(self, size: u32, mark: Mark, gone: u64) -> Self {
        let Tally { calls, failures, slow } = self.tally();
        let calls = if calls < size as u64 { calls + 1 } else { calls };
        // Saturating: a thread that was suspended for exactly all laps may have seen other marks, and must not
        // underflow.
        let failures = failures.saturating_sub((gone & FAILED_MARK != 0) as u64) + mark.failed as u64;
        let slow = slow.saturating_sub((gone & SLOW_MARK != 0) as u64) + mark.slow as u64;
        let failures = if failures < calls { failures } else { calls };
        let slow = if slow < calls { slow } else { calls };
        let (place, laps) = match self.place() + 1 {
            end if end == size => (0, (self.0 >> LAP) + 1),
            place => (place, self.0 >> LAP),
        };
        let newest = mark.failed as u64 * FAILED_MARK + mark.slow as u64 * SLOW_MARK;
        Self(
            newest
                | failures << FAILURES
                | slow << SLOW
                | calls << CALLS
                | (place as u64) << PLACE
                | (laps & LAPS) << LAP
                | self.0 >> GENERATION << GENERATION,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Compares with a queue, over more than all laps where there is time for it, so that they wrap around.
    #[test]
    fn sums_are_those_of_the_last_calls_across_all_laps() {
        for size in [1, 17, MAX_CALLS] {
            let window = CallWindow::new(size);
            let mut last = VecDeque::new();
            let mut bits = 1_u64;
            let calls = (1_u32 << (GENERATION - LAP)).min(400_000 / size) * size + 3 * size;
            for n in 0..calls {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mark = Mark { failed: bits >> 60 < 5, slow: bits >> 50 & 3 == 0 };
                if last.len() == size as usize {
                    last.pop_front();
                }
                last.push_back(mark);
                let got = window.count(1, mark).unwrap();
                if n < 3 * size || n + 6 * size > calls {
                    let want = Tally {
                        calls: last.len() as u64,
                        failures: last.iter().filter(|mark| mark.failed).count() as u64,
                        slow: last.iter().filter(|mark| mark.slow).count() as u64,
                    };
                    assert_eq!(got, want, "window {size}, call {n}");
                }
            }
        }
    }

    #[test]
    fn a_result_of_another_generation_is_not_counted() {
        let window = CallWindow::new(3);
        let failed = Mark { failed: true, slow: false };
        for _ in 0..5 {
            window.count(1, failed);
        }
        window.begin(2);
        assert_eq!(window.count(1, failed), None);
        assert_eq!(window.count(2, failed), Some(Tally { calls: 1, failures: 1, slow: 0 }));
        assert_eq!(window.tally(1), Tally::default());
    }
}
