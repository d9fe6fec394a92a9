//! A window of time, in buckets.

use core::array;

use super::window::{Mark, Tally};
use crate::numbers::atomic::{AtomicU64, Ordering};

const BUCKETS: usize = 10;

/// A ring of buckets. Each count carries the generation and the number of its bucket: a thread that finds an old stamp
/// restarts the count, and a thread that comes with an old stamp, because it was suspended, counts nothing.
#[derive(Debug)]
pub(super) struct TimeWindow {
    /// The length of a bucket, in nanoseconds.
    bucket: u64,
    /// The stamp of the bucket of the last failed or slow call. While that bucket is outside the window, the window
    /// cannot trip a breaker and is not summed up.
    ailing: AtomicU64,
    buckets: [Bucket; BUCKETS],
}

#[derive(Debug)]
struct Bucket {
    calls: AtomicU64,
    failures: AtomicU64,
    slow: AtomicU64,
}

impl TimeWindow {
    pub(super) fn new(length: u64) -> Self {
        Self {
            bucket: (length / BUCKETS as u64).max(1),
            ailing: AtomicU64::new(0),
            buckets: array::from_fn(|_| Bucket {
                calls: AtomicU64::new(0),
                failures: AtomicU64::new(0),
                slow: AtomicU64::new(0),
            }),
        }
    }

    pub(super) fn fresh(&self) -> Self {
        Self::new(self.bucket.saturating_mul(BUCKETS as u64))
    }

    /// Counts a result and returns the sums, if they can trip a breaker.
    ///
    /// The order of the writes ensures that of two results at least one sees both: each counts its call first, and a
    /// failed or slow one touches the count of calls again before it sums up. Of two swaps of one word one is the
    /// later. (At the edge of two buckets a success may miss a failure of the same nanoseconds; the next result sees
    /// it.)
    pub(super) fn count(&self, generation: u64, mark: Mark, now: u64) -> Option<Tally> {
        let number = now / self.bucket;
        let stamp = Stamp::new(generation, number);
        let bucket = &self.buckets[(number % BUCKETS as u64) as usize];
        if !add(&bucket.calls, stamp) {
            return None;
        }
        if mark.failed {
            add(&bucket.failures, stamp);
        }
        if mark.slow {
            add(&bucket.slow, stamp);
        }
        if mark.failed || mark.slow {
            raise(&self.ailing, stamp);
            bucket.calls.fetch_add(0, Ordering::AcqRel);
        } else if !Stamp(self.ailing.load(Ordering::Acquire)).is_within(stamp) {
            return None;
        }
        Some(self.sum(stamp))
    }

    pub(super) fn begin(&self) {
        for bucket in &self.buckets {
            for cell in [&bucket.calls, &bucket.failures, &bucket.slow] {
                // Most buckets have never been written to. A word that is not written need not be fetched again by
                // other threads.
                if cell.load(Ordering::Relaxed) != 0 {
                    cell.store(0, Ordering::Release);
                }
            }
        }
    }

    pub(super) fn tally(&self, generation: u64, now: u64) -> Tally {
        self.sum(Stamp::new(generation, now / self.bucket))
    }

    fn sum(&self, at: Stamp) -> Tally {
        // Another thread may have written a later bucket: then the window ends there.
        let newest = self.buckets.iter().map(|bucket| stamp_and_count(&bucket.calls).0);
        let newest = newest.fold(at, |at, stamp| if stamp.is_ahead_of(at) { stamp } else { at });
        let of = |cell| match stamp_and_count(cell) {
            (stamp, count) if stamp.is_within(newest) => count,
            _ => 0,
        };
        // Calls last: if a failure is seen, its call is seen.
        self.buckets.iter().fold(Tally::default(), |sum, bucket| Tally {
            failures: sum.failures + of(&bucket.failures),
            slow: sum.slow + of(&bucket.slow),
            calls: sum.calls + of(&bucket.calls),
        })
    }
}

const COUNT_BITS: u32 = 24;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const NUMBER_BITS: u32 = 28;
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

fn stamp_and_count(cell: &AtomicU64) -> (Stamp, u64) {
    let seen = cell.load(Ordering::Acquire);
    (Stamp(seen >> COUNT_BITS), seen & COUNT)
}

/// Counts one more in the bucket with this stamp. Returns false if the bucket is gone, or full.
fn add(cell: &AtomicU64, stamp: Stamp) -> bool {
    let mut seen = cell.load(Ordering::Relaxed);
    loop {
        let there = Stamp(seen >> COUNT_BITS);
        let next = if there == stamp {
            if seen & COUNT == COUNT {
                return false;
            }
            seen + 1
        } else if there.is_ahead_of(stamp) {
            return false;
        } else {
            stamp.0 << COUNT_BITS | 1
        };
        match cell.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
}

/// Stores the stamp if it is later than the stored one.
fn raise(cell: &AtomicU64, stamp: Stamp) {
    let mut seen = cell.load(Ordering::Relaxed);
    while seen != stamp.0 && !Stamp(seen).is_ahead_of(stamp) {
        match cell.compare_exchange_weak(seen, stamp.0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

/// `generation: 12 bits, number: 28`. Numbers are compared modulo their range: ten buckets of 10 ms repeat after a
/// month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(u64);

/// How far ahead a stamp is taken for a later one, and not for a very old one: threads are never further apart.
const BUCKETS_AHEAD: u64 = 1_000;
const GENERATIONS_AHEAD: u64 = 8;
const GENERATION: u64 = (1 << (64 - COUNT_BITS - NUMBER_BITS)) - 1;

impl Stamp {
    const fn new(generation: u64, number: u64) -> Self {
        Self((generation & GENERATION) << NUMBER_BITS | number & NUMBER)
    }

    const fn generation(self) -> u64 {
        self.0 >> NUMBER_BITS
    }

    /// Returns whether it is the stamp of a later bucket, or of a later state.
    const fn is_ahead_of(self, other: Self) -> bool {
        if self.generation() == other.generation() {
            let ahead = self.0.wrapping_sub(other.0) & NUMBER;
            ahead != 0 && ahead <= BUCKETS_AHEAD
        } else {
            // Zero is the stamp of a bucket that was never written to.
            let ahead = self.generation().wrapping_sub(other.generation()) & GENERATION;
            ahead <= GENERATIONS_AHEAD && self.0 != 0
        }
    }

    /// Returns whether it is in the window that ends with `newest`.
    const fn is_within(self, newest: Self) -> bool {
        self.generation() == newest.generation() && newest.0.wrapping_sub(self.0) & NUMBER < BUCKETS as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Mark = Mark { failed: false, slow: false };
    const BAD: Mark = Mark { failed: true, slow: false };

    #[test]
    fn the_oldest_tenth_is_dropped_at_once() {
        let window = TimeWindow::new(100);
        for now in 0..100 {
            window.count(1, BAD, now);
        }
        let calls = |now| window.tally(1, now).calls;
        assert_eq!((calls(99), calls(100), calls(109), calls(110), calls(189), calls(190)), (100, 90, 90, 80, 10, 0));
    }

    #[test]
    fn after_any_pause_the_count_restarts() {
        for pause in [100, 101, 1_000, 100_000, 1_000_000_000, u64::from(u32::MAX) * 7] {
            let window = TimeWindow::new(100);
            for now in 0..100 {
                window.count(1, BAD, now);
            }
            assert_eq!(window.count(1, BAD, 99 + pause).unwrap().calls, 1, "pause {pause}");
        }
    }

    #[test]
    fn a_result_of_another_generation_is_not_counted() {
        let window = TimeWindow::new(100);
        window.count(1, BAD, 5);
        assert_eq!(window.count(3, BAD, 5), Some(Tally { calls: 1, failures: 1, slow: 0 }));
        assert_eq!(window.count(1, BAD, 5), None);
        assert_eq!(window.tally(3, 5).calls, 1);
    }

    #[test]
    fn the_window_is_summed_only_after_a_failed_or_slow_call() {
        let window = TimeWindow::new(100);
        assert_eq!(window.count(1, GOOD, 5), None);
        window.count(1, BAD, 5);
        assert_eq!(window.count(1, GOOD, 104), None);
        window.count(1, BAD, 105);
        assert_eq!(window.count(1, GOOD, 194), Some(Tally { calls: 3, failures: 1, slow: 0 }));
    }

    #[test]
    fn a_thread_from_an_earlier_bucket_sees_the_later_ones() {
        let window = TimeWindow::new(100);
        window.count(1, BAD, 10);
        assert_eq!(window.count(1, BAD, 9), Some(Tally { calls: 2, failures: 2, slow: 0 }));
        // It is too late once its bucket is in use again.
        window.count(1, BAD, 105);
        assert_eq!(window.count(1, BAD, 5), None);
    }

    #[test]
    fn the_last_failure_stays_the_last_when_an_earlier_one_is_counted_late() {
        let window = TimeWindow::new(100);
        window.count(1, BAD, 10);
        window.count(1, BAD, 9);
        assert_eq!(window.count(1, GOOD, 104), Some(Tally { calls: 2, failures: 1, slow: 0 }));
    }

    #[test]
    fn a_full_bucket_counts_no_further() {
        let cell = AtomicU64::new(Stamp::new(1, 1).0 << COUNT_BITS | COUNT);
        assert!(!add(&cell, Stamp::new(1, 1)));
        assert_eq!(cell.load(Ordering::Relaxed) & COUNT, COUNT);
        assert!(add(&cell, Stamp::new(1, 2)));
    }
}
