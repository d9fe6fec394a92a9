use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom, zeros};

/// The length of a tick, in nanoseconds.
pub(super) const TICK: u64 = 100_000_000;
/// How many ticks are a second.
pub(super) const TICKS: u64 = 10;
/// How many ticks are remembered. A model of every interleaving has to be small.
const MARKS: usize = if cfg!(loom) { 2 } else { 16 };

/// The answers of the last second: totals, and what they were at the beginning of each of the last ticks.
#[derive(Debug)]
pub(super) struct RecentAnswers {
    /// `successes: 32 bits, refusals: 32`, both modulo their range.
    totals: AtomicU64,
    marks: [AtomicU64; MARKS],
    /// The present tick, as far as is known.
    tick: AtomicU64,
}

/// Answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) successes: u64,
    pub(super) refusals: u64,
}

/// A tick that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedTick {
    pub(super) tick: u64,
    pub(super) had_success: bool,
}

const SUCCESS: u64 = 1 << 32;

impl RecentAnswers {
    const_unless_loom! {
        pub(super) const fn new() -> Self {
            Self { totals: AtomicU64::new(0), marks: zeros(), tick: AtomicU64::new(0) }
        }
    }

    pub(super) fn success(&self) {
        self.totals.fetch_add(SUCCESS, Ordering::Relaxed);
    }

    pub(super) fn refusal(&self) {
        // Once in four billion refusals the carry is one success.
        self.totals.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of successes, modulo 2³².
    pub(super) fn successes(&self) -> u64 {
        self.totals.load(Ordering::Relaxed) >> 32
    }

    /// Returns the number of successes since there were so many.
    pub(super) fn successes_since(&self, before: u64) -> u64 {
        self.successes().wrapping_sub(before) & u64::from(u32::MAX)
    }

    /// Begins the tick of this time, if it has not begun, and returns the one that ended. Of several threads one does.
    pub(super) fn begin_tick(&self, at: u64) -> Option<EndedTick> {
        let (here, last) = (at / TICK, self.tick.load(Ordering::Acquire));
        if here <= last || self.tick.compare_exchange(last, here, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return None;
        }
        // Nothing has been counted in the ticks between. A thread that reads the marks before they are written sees the
        // answers of a longer time.
        let (totals, before) = (self.totals.load(Ordering::Relaxed), self.mark(last).load(Ordering::Relaxed));
        let first = here.saturating_sub(MARKS as u64 - 1).max(last + 1);
        (first..=here).for_each(|tick| self.mark(tick).store(totals, Ordering::Relaxed));
        Some(EndedTick { tick: last, had_success: totals >> 32 != before >> 32 })
    }

    /// Forgets what was counted before this time.
    pub(super) fn restart(&self, at: u64) {
        let totals = self.totals.load(Ordering::Relaxed);
        self.marks.iter().for_each(|mark| mark.store(totals, Ordering::Relaxed));
        self.tick.store(at / TICK, Ordering::Release);
    }

    /// Returns the answers of the present tick and the nine before it.
    pub(super) fn last_second(&self) -> Answers {
        let tick = self.tick.load(Ordering::Acquire);
        let before = self.mark(tick.wrapping_sub(TICKS - 1)).load(Ordering::Relaxed);
        let now = self.totals.load(Ordering::Relaxed);
        let since = |now: u64, before: u64| u64::from((now as u32).wrapping_sub(before as u32));
        Answers { successes: since(now >> 32, before >> 32), refusals: since(now, before) }
    }

    const fn mark(&self, tick: u64) -> &AtomicU64 {
        &self.marks[tick as usize % MARKS]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn count(recent: &RecentAnswers, ticks: impl IntoIterator<Item = (u64, u32, u32)>) {
        for (tick, successes, refusals) in ticks {
            recent.begin_tick(tick * TICK);
            (0..successes).for_each(|_| recent.success());
            (0..refusals).for_each(|_| recent.refusal());
        }
    }

    #[test]
    fn a_second_is_the_present_tick_and_nine_before() {
        let recent = RecentAnswers::new();
        recent.restart(500 * TICK);
        count(&recent, (500..530).map(|tick| (tick, 3, 1)));
        assert_eq!(recent.last_second(), Answers { successes: 30, refusals: 10 });
        // Ticks without an answer count as empty.
        count(&recent, [(535, 1, 0)]);
        assert_eq!(recent.last_second(), Answers { successes: 13, refusals: 4 });
        count(&recent, [(1_000, 0, 2)]);
        assert_eq!(recent.last_second(), Answers { successes: 0, refusals: 2 });
    }

    #[test]
    fn a_tick_begins_once_and_a_clock_that_steps_back_begins_none() {
        let recent = RecentAnswers::new();
        recent.restart(7 * TICK);
        let ended = [7, 6, 8, 8, 5, 20].map(|tick| recent.begin_tick(tick * TICK).map(|ended| ended.tick));
        assert_eq!(ended, [None, None, Some(7), None, None, Some(8)]);
    }

    #[test]
    fn a_tick_that_ended_knows_whether_it_had_a_success() {
        let recent = RecentAnswers::new();
        recent.restart(7 * TICK);
        recent.refusal();
        let ended = |tick, had_success| Some(EndedTick { tick, had_success });
        assert_eq!(recent.begin_tick(8 * TICK), ended(7, false));
        recent.success();
        assert_eq!(recent.begin_tick(60 * TICK), ended(8, true));
    }

    #[test]
    fn totals_wrap() {
        let recent = RecentAnswers::new();
        recent.totals.store(u64::MAX - SUCCESS, Ordering::Relaxed);
        recent.restart(TICK);
        let before = recent.successes();
        count(&recent, [(1, 5, 0)]);
        assert_eq!((recent.last_second().successes, recent.successes_since(before)), (5, 5));
    }
}
