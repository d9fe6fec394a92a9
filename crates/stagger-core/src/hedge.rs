//! Hedging: a second copy of a slow attempt, of which the first answer wins.

use core::fmt;
use core::time::Duration;

use crate::numbers::atomic::{AtomicU32, Ordering, const_unless_loom, short_zeros};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::ratio::Ratio;
use crate::outcome::{FailureKind, Outcome, ServerHint};

/// When a slow attempt gets a second copy, and how many copies it may get.
///
/// Copies are for the slow tail of latencies, not for failures: the first answer wins and the other attempts are
/// cancelled. A copy costs the server work that may be thrown away, so it is charged to the same budget as a retry. Use
/// it only for operations that may run twice.
///
/// Source: J. Dean, L. A. Barroso, "The Tail at Scale", 2013: with the delay at the 95th percentile the additional load
/// is about 5 %.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{hedge::Hedge, Ratio};
///
/// const FIXED: Hedge = Hedge::after(Duration::from_millis(200));
/// const TAIL: Hedge = Hedge::at_quantile(Ratio::percent(95), Duration::from_millis(200)).with_max_copies(2);
/// assert_eq!((FIXED.max_copies(), TAIL.max_copies()), (1, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    delay: HedgeDelay,
    most: u32,
}

/// How long a copy waits for the attempts before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeDelay {
    /// A fixed delay. Zero starts all copies at once.
    Fixed(Duration),
    /// A quantile of the latencies, or a fixed delay until that is known.
    Quantile {
        /// The share of attempts that take at most the delay. One, or more, is the longest latency seen.
        share: Ratio,
        /// The delay until 20 attempts have been recorded.
        until_known: Duration,
    },
}

/// The maximum number of copies; more is never right.
const MOST: u32 = 10;

impl Hedge {
    /// Creates a hedge with one copy, launched if the attempt takes longer than `delay`.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay: HedgeDelay::Fixed(delay), most: 1 }
    }

    /// Creates a hedge with one copy, launched if the attempt takes longer than this share of attempts, or longer than
    /// `until_known` until 20 have been recorded.
    #[must_use]
    pub const fn at_quantile(share: Ratio, until_known: Duration) -> Self {
        Self { delay: HedgeDelay::Quantile { share, until_known }, most: 1 }
    }

    /// Sets the maximum number of copies besides the first attempt, each a delay after the one before it. Range: 0
    /// (none) to 10; more counts as 10.
    #[must_use]
    pub const fn with_max_copies(self, copies: u32) -> Self {
        Self { most: if copies > MOST { MOST } else { copies }, ..self }
    }

    /// Returns the maximum number of copies besides the first attempt.
    #[must_use]
    pub const fn max_copies(&self) -> u32 {
        self.most
    }

    /// Returns how long a copy waits.
    #[must_use]
    pub const fn delay(&self) -> HedgeDelay {
        self.delay
    }

    /// Returns how long a copy waits now, given the latencies recorded so far.
    #[must_use]
    pub fn delay_now(&self, seen: Option<&Latencies>) -> Duration {
        match self.delay {
            HedgeDelay::Fixed(delay) => delay,
            HedgeDelay::Quantile { share, until_known } => match seen {
                Some(latencies) => latencies.quantile(share).unwrap_or(until_known),
                None => until_known,
            },
        }
    }
}

/// The state of one hedged call: which copy is due when. It launches nothing itself.
///
/// The driver launches the first attempt with [`new`](Self::new), gets the time of the next copy from
/// [`due`](Self::due), reports with [`launched`](Self::launched) or [`rejected`](Self::rejected) whether it could
/// launch the copy, and with [`failed`](Self::failed) that an attempt failed while others are still possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeState {
    launched: u32,
    most: u32,
    /// `None`: there are no more copies.
    next: Option<Instant>,
}

impl HedgeState {
    /// Creates the state of a call whose first attempt is launched at `now`; the first copy is due after `delay`.
    #[must_use]
    pub fn new(hedge: &Hedge, delay: Duration, now: Instant) -> Self {
        let next = if hedge.max_copies() == 0 { None } else { Some(now.saturating_add(delay)) };
        Self { launched: 1, most: hedge.max_copies().saturating_add(1), next }
    }

    /// Returns when to launch the next copy; `None` if there is none.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Returns how many attempts were launched, the first included.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.launched
    }

    /// Records that the due copy is launched at `now`; the next one is due after `delay`.
    pub fn launched(&mut self, delay: Duration, now: Instant) {
        self.launched = self.launched.saturating_add(1);
        self.next = if self.launched >= self.most { None } else { Some(now.saturating_add(delay)) };
    }

    /// Records that the budget rejected the due copy: there are no more copies. Running attempts continue.
    pub const fn rejected(&mut self) {
        self.next = None;
    }

    /// Records that an attempt failed. The next copy no longer waits for its delay: it is due now, or when the server's
    /// hint asks for it. After a failure that is permanent or unsafe to retry, after a cancellation, after
    /// [`ServerHint::DoNotRetry`], and after the client ran out of a resource of its own there are no more copies,
    /// because they would end alike.
    pub fn failed(&mut self, outcome: &Outcome, now: Instant) {
        if self.next.is_none() {
            return;
        }
        self.next = match outcome {
            Outcome::Failed { hint: Some(ServerHint::AtLeast(asked) | ServerHint::Reserved(asked)), .. } => {
                Some(now.saturating_add(*asked))
            }
            // One more copy does not help if the client has run out of a resource.
            Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. }
            | Outcome::Failed { kind: FailureKind::LocalExhaustion, .. }
            | Outcome::Permanent
            | Outcome::UnsafeToRetry { .. }
            | Outcome::Cancelled => None,
            _ => Some(now),
        };
    }
}

/// The latencies of attempts: a histogram with decay, shared by all calls to one target, from which
/// [`Hedge`] takes its delay.
///
/// Every octave of time has eight buckets, so a quantile is accurate to an eighth of itself. Lengths below a
/// microsecond and above an hour count as those. When twice [`window`](Self::new) attempts have been counted, every
/// count is halved: old latencies fade out without a pause. Attempts that lost against a copy and were cancelled count
/// too, with the time that they had taken until then. If only winners counted, slow attempts would disappear from the
/// histogram, and the delay of the next copy would become shorter and shorter.
///
/// Thread-safe and lock-free; recording costs two atomic additions. Size: 1 KiB. On targets that cannot compare and
/// swap (`thumbv6m`, `riscv32imc`), it is not `Sync`.
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
