use core::fmt;
use core::time::Duration;

use crate::numbers::atomic::{AtomicU32, Ordering, const_unless_loom, short_zeros};
use crate::numbers::instant::nanos;
use crate::numbers::ratio::Ratio;

/// The latencies of attempts: a histogram with decay, shared by all calls to one target, from which
/// [`Hedge`](super::Hedge) takes its delay.
///
/// Every octave of time has eight buckets, so a quantile is accurate to an eighth of itself. Lengths below a
/// microsecond and above an hour count as those. When twice [`window`](Self::new) attempts have been counted, every
/// count is halved: old latencies fade out without a pause. Attempts that lost against a copy and were cancelled count
/// too, with the time that they had taken until then. If only winners counted, slow attempts would disappear from the
/// histogram, and the delay of the next copy would become shorter and shorter.
///
/// Thread-safe and lock-free; recording costs two atomic additions. Size: 1 KiB. On targets that cannot compare and swap
/// (`thumbv6m`, `riscv32imc`), it is not `Sync`.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{hedge::Latencies, Ratio};
///
/// let latencies = Latencies::new(1000);
/// for ms in 1..=100 {
///     latencies.record(Duration::from_millis(ms));
/// }
/// let p95 = latencies.quantile(Ratio::percent(95)).expect("a hundred are enough");
/// assert!(p95 > Duration::from_millis(88) && p95 < Duration::from_millis(102));
/// ```
pub struct Latencies {
    buckets: [AtomicU32; BUCKETS],
    count: AtomicU32,
    window: u32,
}

/// Buckets of one octave, as bits of a number.
const PART_BITS: u32 = 3;
const PARTS: u64 = 1 << PART_BITS;
/// The first octave begins at about a microsecond; the last one ends at about an hour and a quarter.
const FIRST_OCTAVE: u32 = 10;
const OCTAVES: u32 = if cfg!(loom) { 1 } else { 32 };
const BUCKETS: usize = (OCTAVES as u64 * PARTS) as usize;

/// Fewer attempts than this say nothing about a quantile.
const ENOUGH: u32 = if cfg!(loom) { 2 } else { 20 };

impl Latencies {
    const_unless_loom! {
        /// Creates a histogram of about the last `window` attempts, at least 20 and at most a million.
        #[must_use]
        pub const fn new(window: u32) -> Self {
            let window = if window < ENOUGH { ENOUGH } else { window };
            let window = if window > 1_000_000 { 1_000_000 } else { window };
            Self { buckets: short_zeros(), count: AtomicU32::new(0), window }
        }
    }

    /// Records an attempt that took this long, or was cancelled after this long.
    pub fn record(&self, length: Duration) {
        self.buckets[bucket(nanos(length))].fetch_add(1, Ordering::Relaxed);
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        // One of the threads that see it full halves the counts; no thread waits.
        if count >= 2 * self.window
            && self.count.compare_exchange(count, count / 2, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            for bucket in &self.buckets {
                // In one step: additions in the meantime are kept, and subtracting half of a count that other threads
                // have halved already might underflow.
                let _ = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count - count / 2));
            }
        }
    }

    /// Returns the latency that the share `q` of attempts does not exceed; `None` until 20 attempts have been recorded.
    #[must_use]
    pub fn quantile(&self, q: Ratio) -> Option<Duration> {
        let counts = || self.buckets.iter().map(|bucket| u64::from(bucket.load(Ordering::Relaxed)));
        let total: u64 = counts().sum();
        if total < u64::from(ENOUGH) {
            return None;
        }
        let wanted = q.of(total).max(1);
        let mut below = 0;
        for (at, count) in counts().enumerate() {
            if below + count >= wanted {
                let (from, to) = (start(at), start(at + 1));
                // As if the attempts of a bucket were evenly distributed in it.
                let part = u128::from(to - from) * u128::from(wanted - below) / u128::from(count.max(1));
                return Some(Duration::from_nanos(from + part as u64));
            }
            below += count;
        }
        // Another thread has halved the counts in the meantime.
        Some(Duration::from_nanos(start(BUCKETS)))
    }

    /// Returns how many attempts the histogram holds.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns whether the histogram is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Latencies {
    /// Creates a histogram of about the last thousand attempts.
    fn default() -> Self {
        Self::new(1000)
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantile = |percent| self.quantile(Ratio::percent(percent));
        f.debug_struct("Latencies")
            .field("len", &self.len())
            .field("p50", &quantile(50))
            .field("p99", &quantile(99))
            .finish()
    }
}

/// Returns the bucket of a length.
fn bucket(nanos: u64) -> usize {
    let octave = nanos.max(1).ilog2();
    if octave < FIRST_OCTAVE {
        return 0;
    }
    let part = (nanos >> (octave - PART_BITS)) - PARTS;
    (u64::from(octave - FIRST_OCTAVE) * PARTS + part).min(BUCKETS as u64 - 1) as usize
}

/// Returns the shortest length of a bucket.
fn start(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    (PARTS + part) << (octave + u64::from(FIRST_OCTAVE - PART_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_contain_their_lengths() {
        for at in 0..BUCKETS {
            assert_eq!(bucket(start(at)), at);
            assert_eq!(bucket(start(at + 1) - 1), at);
        }
        assert_eq!((bucket(0), bucket(1), bucket(1023)), (0, 0, 0));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
