//! What a quiet period remembers of the last outcomes: how many were refused, and how fast the server admitted calls.

use super::pace::{FASTEST, SLOWEST};
use crate::guards::now::Now;
use crate::guards::shards::Shards;
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};

/// How many outcomes are considered.
const LAST: u32 = 50;
/// From how many refusals among them on calls pause: more than 20 %.
const TOO_MANY: u32 = LAST / 5 + 1;

/// The last 50 outcomes, the newest in the lowest bit; a refusal is a one. Outcomes that have not been recorded yet
/// count as successes, so a success after 50 of them changes nothing, and is one load.
#[derive(Debug)]
pub(super) struct RecentOutcomes(AtomicU64);

/// What one more outcome shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    /// The last 50 outcomes have no refusal, for the first time.
    Clean,
    TooManyRefusals,
}

impl RecentOutcomes {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    pub(super) fn count(&self, is_refusal: bool) -> Finding {
        let next = |seen: u64| (seen << 1 | u64::from(is_refusal)) & ((1 << LAST) - 1);
        let update = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |seen| Some(next(seen)));
        let seen = update.unwrap_or_else(|seen| seen);
        match next(seen) {
            0 if seen != 0 => Finding::Clean,
            new if is_refusal && new.count_ones() >= TOO_MANY => Finding::TooManyRefusals,
            _ => Finding::Nothing,
        }
    }

    /// Begins again with a single refusal: the pause that begins now.
    pub(super) fn restart(&self) {
        self.0.store(1, Ordering::Release);
    }
}

/// A success in so many is timed, so that counting successes costs almost nothing while nothing is wrong.
const TIMED: u64 = 32;
/// The least time between two marks.
const MARK_MILLIS: u64 = 1_000;

/// The rate at which the server admitted calls lately: successes over the time since a mark that is at least a second
/// old, if there is one.
///
/// Successes are counted without reading the clock. Every 32nd of a thread may set a new mark, for which it reads the
/// clock unless it knows an earlier time at which none was due. So at low rates, after a rest, and if calls take long,
/// the mark is older than a second and the rate is the mean over a longer time.
#[derive(Debug)]
pub(super) struct AdmittedRate {
    successes: Shards,
    /// The newest mark, and the one before it, which is at least a second older.
    newer: AtomicU64,
    older: AtomicU64,
}

impl AdmittedRate {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self {
                successes: Shards::new(),
                newer: AtomicU64::new(0),
                older: AtomicU64::new(0),
            }
        }
    }

    #[inline]
    pub(super) fn count(&self, now: &dyn Now) {
        // The first success of a thread is timed too, or a client with few calls would learn nothing.
        if self.successes.add_loosely() % TIMED == 1 {
            self.mark(now);
        }
    }

    #[cold]
    fn mark(&self, now: &dyn Now) {
        let newer = RateMark(self.newer.load(Ordering::Acquire));
        let is_due = |mark: RateMark| newer.is_none() || mark.millis_after(newer) >= MARK_MILLIS;
        if now.earlier().is_some_and(|earlier| !is_due(RateMark::new(earlier.as_nanos(), 0))) {
            return;
        }
        let mark = RateMark::new(now.now().as_nanos(), self.successes.sum());
        if is_due(mark) {
            self.older.store(newer.0, Ordering::Release);
            self.newer.store(mark.0, Ordering::Release);
        }
    }

    /// Returns the time between two admitted calls, in nanoseconds, within the limits of a [`Pace`](super::pace::Pace).
    pub(super) fn interval(&self, at: u64) -> u64 {
        let here = RateMark::new(at, self.successes.sum());
        let (newer, older) =
            (RateMark(self.newer.load(Ordering::Acquire)), RateMark(self.older.load(Ordering::Acquire)));
        let mark = if here.millis_after(newer) >= MARK_MILLIS || older.is_none() { newer } else { older };
        if mark.is_none() {
            return SLOWEST;
        }
        let nanos = here.millis_after(mark).max(MARK_MILLIS) * 1_000_000;
        // The success that set the mark was admitted in this time too.
        (nanos / (here.successes_since(mark) + 1)).clamp(FASTEST, SLOWEST)
    }
}

/// `milliseconds: 32 bits, successes: 32`, both modulo their range: 49 days.
#[derive(Clone, Copy)]
struct RateMark(u64);

impl RateMark {
    const fn new(at: u64, successes: u64) -> Self {
        Self((at / 1_000_000) << 32 | successes & u32::MAX as u64)
    }

    const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// A clock that steps backwards yields zero.
    const fn millis_after(self, earlier: Self) -> u64 {
        let after = ((self.0 >> 32) as u32).wrapping_sub((earlier.0 >> 32) as u32);
        if after > u32::MAX / 2 { 0 } else { after as u64 }
    }

    const fn successes_since(self, earlier: Self) -> u64 {
        let since = (self.0 as u32).wrapping_sub(earlier.0 as u32);
        // Threads that share a counter can lose additions, but never subtract.
        if since > u32::MAX / 2 { 0 } else { since as u64 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::numbers::instant::Instant;

    #[test]
    fn more_than_a_fifth_of_the_last_fifty_is_too_many() {
        for (every, want) in [(1, Some(10)), (4, Some(40)), (5, None), (50, None)] {
            let recent = RecentOutcomes::new();
            let found = (0..1_000).position(|n| recent.count(n % every == 0) == Finding::TooManyRefusals);
            assert_eq!(found, want, "one of {every} is refused");
        }
    }

    #[test]
    fn a_window_is_clean_once_after_fifty_successes() {
        let recent = RecentOutcomes::new();
        recent.restart();
        let found: std::vec::Vec<_> = (0..60).map(|_| recent.count(false)).collect();
        assert_eq!(found.iter().position(|&found| found == Finding::Clean), Some(49));
        assert_eq!(found.iter().filter(|&&found| found == Finding::Clean).count(), 1);
        assert!(recent.is_clean());
    }

    fn rate_after(calls_per_second: u64, seconds: u64) -> u64 {
        let (admitted, start) = (AdmittedRate::new(), 5_000_000_000);
        for n in 0..calls_per_second * seconds {
            admitted.count(&Instant::from_nanos(start + n * 1_000_000_000 / calls_per_second));
        }
        1_000_000_000 / admitted.interval(start + seconds * 1_000_000_000)
    }

    #[test]
    fn the_learned_rate_is_that_of_the_last_seconds() {
        for (rate, seconds) in [(1, 30), (7, 20), (100, 10), (100, 1), (3_500, 5), (50_000, 2)] {
            let got = rate_after(rate, seconds);
            assert!(got.abs_diff(rate) <= 1 + rate / 50, "{got}/s, not {rate}/s, after {seconds} s");
        }
    }

    #[test]
    fn without_a_success_the_rate_is_one_per_second() {
        let admitted = AdmittedRate::new();
        assert_eq!(admitted.interval(u64::MAX), SLOWEST);
        admitted.count(&Instant::from_nanos(7_000_000_000));
        assert_eq!(admitted.interval(3_600_000_000_000), SLOWEST);
        assert_eq!(admitted.interval(0), SLOWEST, "a clock that steps back");
    }

    #[test]
    fn an_old_rate_is_forgotten() {
        let admitted = AdmittedRate::new();
        for n in 0..5_000 {
            admitted.count(&Instant::from_nanos(n * 1_000_000));
        }
        for n in 0..640 {
            admitted.count(&Instant::from_nanos(5_000_000_000 + n * 100_000_000));
        }
        let rate = 1_000_000_000 / admitted.interval(69_000_000_000);
        assert!((9..=11).contains(&rate), "{rate}/s, not 10/s");
    }

    #[test]
    fn with_a_time_that_was_read_before_the_clock_is_read_for_marks_alone() {
        struct Reads(core::cell::Cell<u32>, Instant);
        impl Now for Reads {
            fn now(&self) -> Instant {
                self.0.set(self.0.get() + 1);
                self.1
            }

            fn earlier(&self) -> Option<Instant> {
                // Calls take 2 s.
                Some(Instant::from_nanos(self.1.as_nanos() - 2_000_000_000))
            }
        }
        let (admitted, reads) = (AdmittedRate::new(), core::cell::Cell::new(0));
        for n in 0..1_000_000 {
            let now = Reads(core::cell::Cell::new(0), Instant::from_nanos(5_000_000_000 + n * 100_000));
            admitted.count(&now);
            reads.set(reads.get() + now.0.get());
        }
        assert!((30..=34).contains(&reads.get()), "{} in 100 s", reads.get());
        let rate = 1_000_000_000 / admitted.interval(105_000_000_000);
        assert!(rate.abs_diff(10_000) <= 200, "{rate}/s");
    }

    #[test]
    fn one_success_in_many_reads_the_clock() {
        struct Reads(core::cell::Cell<u32>);
        impl Now for Reads {
            fn now(&self) -> Instant {
                self.0.set(self.0.get() + 1);
                Instant::ZERO
            }
        }
        let (admitted, reads) = (AdmittedRate::new(), Reads(core::cell::Cell::new(0)));
        (0..320).for_each(|_| admitted.count(&reads));
        assert_eq!(reads.0.get(), 10);
    }
}
