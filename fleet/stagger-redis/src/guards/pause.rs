//! The protocol of a quiet period in one process, without a clock and I/O.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How much later a pause must end to be worth a report: replies take time.
const TOLERANCE: u64 = 100_000;

/// The pause of one target, as one process knows it: what its calls and the background task share.
///
/// Times are microseconds of the process's clock; 0 stands for none.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Until when the calls are to be held, if they do not know yet.
    hold: AtomicU64,
    /// The end of the pause of the fleet, by the last reply.
    known: AtomicU64,
    /// Until when the server told this process to wait.
    told: AtomicU64,
    /// Until when this process has decided to wait.
    decided: AtomicU64,
    is_wanted: AtomicBool,
    has_news: AtomicBool,
}

/// Why a process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server has told it to, which counts for all.
    Told,
    /// It has decided to, which counts if others do as well.
    Decided,
}

/// What a report says about one quiet period. Lengths are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PauseClaim {
    /// For how long the server has told this process to wait, if the fleet does not know of it.
    pub(crate) told: u64,
    /// For how long this process has decided to wait, if the fleet does not know of it.
    pub(crate) decided: u64,
    /// The longest pause.
    pub(crate) longest: u64,
    pub(crate) calls: Calls,
    /// Whether calls wait, or were rejected since the last report.
    pub(crate) is_wanted: bool,
}

/// What the calls of a process do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Calls {
    /// None starts.
    Held,
    /// One was sent as a probe.
    Probing,
    /// They start.
    Starting,
}

/// The store's reply about one quiet period. Lengths are microseconds from the reply on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PauseReply {
    /// The rest of the pause of the fleet.
    pub(crate) left: u64,
    /// For how long this process shall hold its calls.
    pub(crate) wait: u64,
}

impl Pause {
    /// Returns until when the calls are to be held, if that has changed. One relaxed load.
    pub(crate) fn to_apply(&self) -> Option<u64> {
        match self.hold.load(Ordering::Relaxed) {
            0 => None,
            hold => Some(hold),
        }
    }

    /// Notes that the calls are held until then.
    pub(crate) fn applied(&self, hold: u64) {
        // If it fails, there is a newer one.
        let _ = self.hold.compare_exchange(hold, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns whether the fleet has a pause. One relaxed load.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed) != 0
    }

    /// Returns the rest of the pause of the fleet.
    pub(crate) fn left(&self, now: u64) -> u64 {
        self.known.load(Ordering::Relaxed).saturating_sub(now)
    }

    /// Notes that this process waits until then, and returns whether to report it.
    pub(crate) fn wait_until(&self, until: u64, cause: Cause) -> bool {
        let own = match cause {
            Cause::Told => &self.told,
            Cause::Decided => &self.decided,
        };
        let is_known = match cause {
            Cause::Told => self.is_told(until),
            // What has been told is not decided.
            Cause::Decided => self.is_told(until) || until <= self.told.load(Ordering::Relaxed) + TOLERANCE,
        };
        !is_known && own.fetch_max(until, Ordering::Relaxed) < until && self.add_news()
    }

    fn is_told(&self, until: u64) -> bool {
        until <= self.known.load(Ordering::Relaxed) + TOLERANCE
    }

    /// Notes that there is something to report, and returns whether there was nothing before.
    pub(crate) fn add_news(&self) -> bool {
        !self.has_news.swap(true, Ordering::Relaxed)
    }

    /// Returns whether there is something to report.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news.load(Ordering::Relaxed)
    }

    /// Notes that a call waits, or was rejected.
    pub(crate) fn want(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the next claim.
    pub(crate) fn claim(&self, calls: Calls, has_waiting: bool, longest: u64, now: u64) -> PauseClaim {
        self.has_news.store(false, Ordering::Relaxed);
        let is_wanted = self.is_wanted.swap(false, Ordering::Relaxed) || has_waiting;
        // Again with each report until a reply has it: what is lost is repeated.
        let unknown = |until: &AtomicU64| {
            let until = until.load(Ordering::Relaxed);
            if self.is_told(until) { 0 } else { until.saturating_sub(now).min(longest) }
        };
        PauseClaim { told: unknown(&self.told), decided: unknown(&self.decided), longest, calls, is_wanted }
    }

    /// Takes over what the store replied, and returns whether a pause has begun that was not known. No pause is longer
    /// than `longest` and what the reply adds for the probe, whatever the store says.
    pub(crate) fn on_reply(&self, PauseReply { left, wait }: PauseReply, longest: u64, period: u64, now: u64) -> bool {
        let (left, wait) = (left.min(longest), wait.min(longest + 2 * period));
        let known = if left == 0 && wait == 0 { 0 } else { now + left };
        if wait > 0 {
            self.hold.store(now + wait, Ordering::Relaxed);
        }
        self.known.swap(known, Ordering::Relaxed) == 0 && left > 0
    }

    /// Notes that the store is lost during a pause: the calls of this process start `spread` later, because every
    /// process sends a probe of its own.
    pub(crate) fn on_loss(&self, spread: u64, now: u64) {
        let known = self.known.swap(0, Ordering::Relaxed);
        if known > now {
            self.hold.store(known + spread, Ordering::Relaxed);
        }
    }
}

/// For the states of an exploration.
#[cfg(test)]
impl Pause {
    /// Returns what it knows.
    pub(crate) fn values(&self) -> ([u64; 4], [bool; 2]) {
        let times = [&self.hold, &self.known, &self.told, &self.decided].map(|time| time.load(Ordering::Relaxed));
        (times, [&self.is_wanted, &self.has_news].map(|flag| flag.load(Ordering::Relaxed)))
    }

    /// Creates a pause that knows this.
    pub(crate) fn of(([hold, known, told, decided], [is_wanted, has_news]): ([u64; 4], [bool; 2])) -> Self {
        let [hold, known, told, decided] = [hold, known, told, decided].map(AtomicU64::new);
        let [is_wanted, has_news] = [is_wanted, has_news].map(AtomicBool::new);
        Self { hold, known, told, decided, is_wanted, has_news }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: u64 = 300_000_000;
    const PERIOD: u64 = 1_000_000;

    fn claimed(pause: &Pause, now: u64) -> (u64, u64) {
        let claim = pause.claim(Calls::Held, false, LONGEST, now);
        (claim.told, claim.decided)
    }

    #[test]
    fn a_pause_is_reported_until_a_reply_has_it() {
        let pause = Pause::default();
        assert!(pause.wait_until(10_000_000, Cause::Told), "the task is woken");
        assert!(!pause.wait_until(10_000_000, Cause::Told), "once");
        assert_eq!(claimed(&pause, 1_000_000), (9_000_000, 0));
        assert_eq!(claimed(&pause, 2_000_000), (8_000_000, 0), "the reply was lost");
        assert!(pause.on_reply(PauseReply { left: 7_990_000, wait: 7_990_000 }, LONGEST, PERIOD, 2_000_000));
        assert_eq!(claimed(&pause, 3_000_000), (0, 0));
        // The store has lost its data.
        assert!(!pause.on_reply(PauseReply { left: 0, wait: 0 }, LONGEST, PERIOD, 4_000_000));
        assert_eq!(claimed(&pause, 4_000_000), (6_000_000, 0));
        assert_eq!(claimed(&pause, 11_000_000), (0, 0), "it is over");
    }

    #[test]
    fn what_the_fleet_or_the_server_says_is_not_decided_again() {
        let pause = Pause::default();
        assert!(pause.on_reply(PauseReply { left: 5_000_000, wait: 5_000_000 }, LONGEST, PERIOD, 0));
        assert!(!pause.wait_until(5_050_000, Cause::Decided));
        assert!(pause.wait_until(9_000_000, Cause::Told));
        assert!(!pause.wait_until(9_050_000, Cause::Decided));
        assert_eq!(claimed(&pause, 0), (9_000_000, 0));
        assert!(pause.wait_until(20_000_000, Cause::Decided));
        assert_eq!(claimed(&pause, 0), (9_000_000, 20_000_000));
    }

    #[test]
    fn a_reply_holds_calls_no_longer_than_the_longest_pause_and_the_probe() {
        let pause = Pause::default();
        let _ = pause.on_reply(PauseReply { left: u64::MAX, wait: u64::MAX }, LONGEST, PERIOD, 7);
        assert_eq!((pause.left(7), pause.to_apply()), (LONGEST, Some(LONGEST + 2 * PERIOD + 7)));
    }

    #[test]
    fn a_hold_is_applied_once_and_a_newer_one_is_kept() {
        let pause = Pause::default();
        let _ = pause.on_reply(PauseReply { left: 5, wait: 5 }, LONGEST, PERIOD, 1_000);
        let hold = pause.to_apply().unwrap();
        let _ = pause.on_reply(PauseReply { left: 9, wait: 9 }, LONGEST, PERIOD, 1_000);
        pause.applied(hold);
        assert_eq!(pause.to_apply(), Some(1_009));
        pause.applied(1_009);
        assert_eq!(pause.to_apply(), None);
    }

    #[test]
    fn the_loss_of_the_store_spreads_the_ends_of_a_pause() {
        let pause = Pause::default();
        pause.on_loss(700, 0);
        assert_eq!(pause.to_apply(), None, "there is no pause");
        let _ = pause.on_reply(PauseReply { left: 9_000, wait: 9_000 }, LONGEST, PERIOD, 0);
        pause.on_loss(700, 0);
        assert_eq!((pause.to_apply(), pause.is_known()), (Some(9_700), false));
    }
}
