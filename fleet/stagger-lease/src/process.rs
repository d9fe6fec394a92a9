//! When a process reports, and what it does without replies.

use core::time::Duration;

use stagger_core::{Policy, Seed, policy};

use crate::claim::{Report, Timing};

/// Reports without a wait between them, after a pause.
const BURST: u64 = 3;

/// When a process reports, and what it does without replies. All its targets share one report.
///
/// Times are microseconds of the process's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    timing: Timing,
    /// The expected number of processes, or the largest number seen if that is more.
    processes: u64,
    number: u64,
    /// The store's time in the last reply, and when that arrived.
    last: Option<(u64, u64)>,
    resync: bool,
    /// When the leases end.
    ends: u64,
    is_local: bool,
    /// When the next regular report is due.
    due: u64,
    /// When the allowance of reports is whole again.
    whole: u64,
    /// Before this there is no report, because the last one failed.
    blocked: u64,
}

/// What has changed for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It uses its local share from now on.
    Local,
    /// It has leases again.
    Leased,
}

impl Process {
    /// Creates a process that begins at `now`. `processes` is the expected number of them, at least 1.
    #[must_use]
    pub fn new(timing: Timing, processes: u64, now: u64) -> Self {
        let ends = now + timing.patience;
        let processes = processes.max(1);
        Self {
            timing,
            processes,
            number: 0,
            last: None,
            resync: false,
            ends,
            is_local: false,
            due: now,
            whole: now,
            blocked: now,
        }
    }

    /// Returns the timing that the process was created with.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Returns the number of processes among which the local shares are divided.
    #[must_use]
    pub const fn processes(&self) -> u64 {
        self.processes
    }

    /// Returns whether the process uses its local shares.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns whether to report at `now`; `is_early` if a target is short of tokens.
    #[must_use]
    pub fn is_due(&self, is_early: bool, now: u64) -> bool {
        now >= self.reports_from(is_early)
    }

    /// Returns when the process next has something to do, after `now`; `is_early` if a target is short of tokens.
    #[must_use]
    pub fn next(&self, is_early: bool, now: u64) -> u64 {
        let report = self.reports_from(is_early);
        report.min(self.next_tick(now))
    }

    /// Returns when the next [`tick`](Self::tick) is due, after `now`: at the end of the leases, or to refill a local
    /// share.
    #[must_use]
    pub fn next_tick(&self, now: u64) -> u64 {
        if self.is_local { now + self.timing.period / 4 } else { self.ends.max(now) }
    }

    /// Returns the earliest time of the next report: at most one per period, and three at once, so `T + 3` in `T`
    /// periods.
    fn reports_from(&self, is_early: bool) -> u64 {
        let allowed = self.whole.saturating_sub((BURST - 1) * self.timing.period).max(self.blocked);
        if is_early { allowed } else { allowed.max(self.due) }
    }

    /// Begins a report at `now`. The next regular one is due after a period, moved by `jitter` tenths of a per mille of
    /// it.
    pub fn report(&mut self, jitter: i16, now: u64) -> Report {
        let period = self.timing.period;
        // Up to a tenth of the period in each direction.
        let moved = i128::from(period) * i128::from(jitter.clamp(-1_000, 1_000)) / 10_000;
        let moved = i64::try_from(moved).unwrap_or(0);
        self.due = now.saturating_add(period.saturating_add_signed(moved));
        // Early reports drift as well, or those of all processes would stay in one order: up to a twentieth later,
        // which keeps the allowance.
        self.whole = self.whole.max(now) + period + moved.unsigned_abs() / 2;
        self.number += 1;
        let expected = self.last.map(|(store, at)| store + now.saturating_sub(at));
        Report { number: self.number, expected, resync: self.resync }
    }

    /// Notes that the store's clock is not what was expected: the next report is due at once and accepts it. It is one
    /// more than the allowance has, because all must report while the store settles.
    pub fn on_again(&mut self, now: u64) {
        if !self.resync {
            self.whole = self.whole.saturating_sub(self.timing.period);
        }
        self.resync = true;
        self.due = now;
    }

    /// Notes a reply that arrived at `now` to a report of `sent`, with the store's time and the size of the fleet. The
    /// leases end a length after the report was sent: the store counts from later.
    pub fn on_reply(&mut self, store: u64, processes: u64, sent: u64, now: u64) -> Option<Change> {
        self.last = Some((store, now));
        self.resync = false;
        self.processes = self.processes.max(processes);
        self.ends = sent + self.timing.lease;
        if core::mem::take(&mut self.is_local) { Some(Change::Leased) } else { None }
    }

    /// Notes that there was no reply, or no connection: the next report is due after `delay`, and none before.
    pub fn on_failure(&mut self, delay: u64, now: u64) {
        self.blocked = now + delay;
        self.due = self.blocked;
    }

    /// Notes that there was nothing to report until `now`, so that no reply was missed.
    pub fn resume(&mut self, now: u64) {
        self.ends = self.ends.max(now + self.timing.patience);
    }

    /// Notes the time: after the end of the leases the process uses its local share.
    pub fn tick(&mut self, now: u64) -> Option<Change> {
        if self.is_local || now < self.ends {
            return None;
        }
        self.is_local = true;
        Some(Change::Local)
    }
}

/// Capped at a second, so that every process reports while the others settle.
const RECONNECT: Policy = policy!(exponential(ms(100), secs(1)).unlimited_attempts());

/// How long a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a reply may take. A store that hangs answers neither; without these limits nothing would fall back.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);

/// Returns the time in microseconds over which the first connection is spread, because a deployment starts all
/// processes at once: a fifth of what a process waits for its first reply.
#[must_use]
pub const fn first_spread(timing: &Timing) -> u64 {
    if timing.patience < 5 { 1 } else { timing.patience / 5 }
}

/// Returns the delay before the next report after `failed` failures in a row before this one, in microseconds.
#[must_use]
pub fn reconnect_delay(failed: usize, seed: Seed) -> u64 {
    // From the fifth on it is at the cap.
    match RECONNECT.delays(seed).nth(failed.min(8)) {
        Some(delay) => u64::try_from(delay.as_micros()).unwrap_or(1_000_000),
        None => 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::SECOND;

    #[test]
    fn reports_are_at_most_one_per_period_and_three_more_however_often_tokens_are_short() {
        let mut process = Process::new(Timing::DEFAULT, 8, 0);
        let mut sent = Vec::new();
        for now in (0..60 * SECOND).step_by(1_000) {
            // Short of tokens for ten seconds in each twenty.
            if process.is_due((now / (10 * SECOND)).is_multiple_of(2), now) {
                process.report(if now.is_multiple_of(2_000) { -1_000 } else { 1_000 }, now);
                let _ = process.on_reply(now, 8, now, now);
                sent.push(now);
            }
        }
        for (index, from) in sent.iter().enumerate() {
            for (count, until) in sent[index..].iter().enumerate() {
                let seconds = (until - from) / SECOND;
                assert!((count as u64) < seconds + 3, "{count} reports within {} µs", until - from);
            }
        }
        assert!(sent.len() >= 54, "{}", sent.len());
    }

    #[test]
    fn a_failure_blocks_early_reports_as_well() {
        let mut process = Process::new(Timing::DEFAULT, 1, 0);
        process.on_failure(300_000, 0);
        for (is_early, now, want) in
            [(true, 299_999, false), (false, 299_999, false), (true, 300_000, true), (false, 300_000, true)]
        {
            assert_eq!(process.is_due(is_early, now), want, "{is_early} at {now}");
        }
        assert_eq!(process.next(true, 0), 300_000);
    }

    #[test]
    fn leases_end_a_length_after_the_report_and_not_after_its_reply() {
        let mut process = Process::new(Timing::DEFAULT, 1, 0);
        process.report(0, 0);
        assert_eq!(process.on_reply(7, 1, 0, 200_000), None);
        assert_eq!((process.tick(2_999_999), process.is_local()), (None, false));
        assert_eq!((process.tick(3_000_000), process.is_local()), (Some(Change::Local), true));
        assert_eq!(process.tick(3_000_001), None, "told once");
        assert_eq!(process.on_reply(7, 1, 3_100_000, 3_200_000), Some(Change::Leased));
    }

    #[test]
    fn without_any_reply_the_local_share_begins_after_a_second() {
        let mut process = Process::new(Timing::DEFAULT, 1, 5 * SECOND);
        assert_eq!(process.tick(6 * SECOND - 1), None);
        assert_eq!(process.tick(6 * SECOND), Some(Change::Local));
    }

    #[test]
    fn a_process_without_guards_misses_no_reply() {
        let mut process = Process::new(Timing::DEFAULT, 1, 0);
        process.resume(3_600 * SECOND);
        assert_eq!(process.tick(3_601 * SECOND - 1), None);
        assert_eq!(process.tick(3_601 * SECOND), Some(Change::Local));
    }

    #[test]
    fn shares_are_divided_by_the_largest_number_of_processes_known() {
        let mut process = Process::new(Timing::DEFAULT, 8, 0);
        for (seen, want) in [(1, 8), (12, 12), (3, 12)] {
            let _ = process.on_reply(1, seen, 0, 0);
            assert_eq!(process.processes(), want);
        }
    }

    #[test]
    fn a_report_expects_the_time_of_the_store_to_go_on() {
        let mut process = Process::new(Timing::DEFAULT, 1, 0);
        assert_eq!(process.report(0, 0), Report { number: 1, expected: None, resync: false });
        let _ = process.on_reply(1_000, 1, 0, 50);
        assert_eq!(process.report(0, 80), Report { number: 2, expected: Some(1_030), resync: false });
        process.on_again(90);
        assert!(process.is_due(false, 90));
        assert_eq!(process.report(0, 90), Report { number: 3, expected: Some(1_040), resync: true });
    }

    #[test]
    fn delays_grow_to_a_second_and_stay_there() {
        let longest = |failed| (0..200).map(|seed| reconnect_delay(failed, Seed::new(seed))).max().unwrap_or(0);
        for (failed, most) in [(0, 100_000), (1, 200_000), (3, 800_000), (4, 1_000_000), (50, 1_000_000)] {
            let longest = longest(failed);
            assert!(longest <= most && longest > most * 9 / 10, "after {failed} failures: {longest} µs of {most}");
        }
    }
}
