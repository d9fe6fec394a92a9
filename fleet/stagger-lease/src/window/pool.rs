//! The store's side of a shared window: the script of `stagger-redis` in Rust. A test there compares the two.

use std::collections::BTreeMap;

use super::claim::{Counts, SLOTS, WindowClaim, WindowLease};
use crate::claim::{Report, SECOND, Timing};
use crate::holders::Holders;

// It changes what the store keeps, to plant faults: private fields.
#[cfg(test)]
#[path = "../../tests/model/pool.rs"]
mod model;

/// The store's side of one shared window: what the calls of all processes allow, and what was leased of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pool {
    state: Option<State>,
    records: BTreeMap<u64, Record>,
    holders: Holders,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The youngest slot of the counts.
    slot: i64,
    counts: Counts,
    at: i64,
    settle: i64,
    outstanding: i64,
}

/// What a process has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    lease: i64,
    number: u64,
    place: Place,
    counts: Counts,
}

/// Where the slots of a process are among those of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    /// The slot of the report, to which the youngest belongs.
    first: i64,
    /// The slot in which the youngest began, and the second ended.
    second: i64,
}

impl State {
    /// Adds counts, or takes them back if `sign` is -1.
    fn add(&mut self, sign: i64, place: Place, counts: &Counts) {
        for age in 0..SLOTS {
            let slot = if age == 0 { place.first } else { place.second - (age as i64 - 1) };
            let index = self.slot - slot;
            if (0..SLOTS as i64).contains(&index) {
                let (calls, retries) = (&mut self.counts.calls, &mut self.counts.retries);
                let index = index as usize;
                calls[index] = calls[index].saturating_add_signed(sign * counts.calls[age] as i64);
                retries[index] = retries[index].saturating_add_signed(sign * counts.retries[age] as i64);
            }
        }
    }
}

impl Pool {
    /// Handles a report of the process `id` on this window, at `now` by the store's clock, in microseconds. Returns
    /// nothing if the report is old. The steps are those of `window.lua` in `stagger-redis`, in its order.
    pub fn report(
        &mut self,
        id: u64,
        report: &Report,
        claim: &WindowClaim,
        timing: &Timing,
        now: u64,
    ) -> Option<WindowLease> {
        let now = now as i64;
        if self.records.get(&id).is_some_and(|record| record.number >= report.number) {
            return None;
        }
        let slot_length = claim.limits.slot_length() as i64;
        let mut state = self.state_at(slot_length, timing, now);
        // How many slots the clock has stepped back: time stands still after a small step.
        let behind = state.slot - now / slot_length;

        let returned = self.holders.end_leases(&mut self.records, |record| record.lease, timing, now);
        state.outstanding -= returned;
        if self.holders.len() == 0 {
            // The set of leases alone was evicted: nobody is known to hold anything, and each process claims what it
            // holds.
            state.outstanding = 0;
            self.holders.forget_waiting();
        }

        // What the process says replaces what it has said before: a report that was lost is repaired by the next one.
        if let Some(record) = self.records.get(&id) {
            if self.holders.has_lease(id) {
                state.outstanding -= record.lease;
            }
            state.add(-1, record.place, &record.counts);
        }
        let place = Place { first: state.slot, second: (now - claim.age as i64) / slot_length + behind };
        state.add(1, place, &claim.counts);

        let (calls, retries) = state.counts.sums();
        let allowed = claim.limits.allowed(calls, 1);
        let mut lease = claim.held as i64;
        state.outstanding += lease;
        let mut left = allowed as i64 - retries as i64 - state.outstanding;
        let want = claim.want.map_or(-1, |want| want as i64);
        let (demanding, _) = self.holders.queue(id, want > 2, now);
        if now >= state.settle {
            // If calls have become too old for what was leased for them, `left` is negative, and the lease is cut by
            // that.
            let change = if left > 0 {
                // Twice an equal part: what is left unleased in one period is lost when its calls become too old.
                let most = (2 * left / demanding).max(1);
                (want - lease).clamp(0, left).min(most)
            } else {
                left.max(-lease)
            };
            lease += change;
            state.outstanding += change;
            left -= change;
        }
        self.holders.renew(id, claim.want.is_none(), timing, now);
        self.records.insert(id, Record { lease, number: report.number, place, counts: claim.counts });
        self.state = Some(state);
        Some(WindowLease { retries: lease as u64, processes: self.holders.len(), allowed, left })
    }

    /// Returns the state of now, with its slots moved on.
    fn state_at(&mut self, slot_length: i64, timing: &Timing, now: i64) -> State {
        let settled = now + timing.period as i64 * 5 / 4;
        let mut state = match self.state {
            Some(state) if now >= state.at - SECOND as i64 => state,
            _ => {
                // There was none, or its slots are those of a clock that has stepped back: all processes report all
                // that they have counted, and until then nothing is granted.
                *self = Self::default();
                State { slot: now / slot_length, counts: Counts::default(), at: now, settle: settled, outstanding: 0 }
            }
        };
        if now - state.at > timing.lease as i64 {
            // Nobody has called for a whole lease, or the clock has jumped: all processes report before anything is
            // granted.
            state.settle = settled;
        }
        // After a step of the clock backwards, settling would last until the old time is reached again.
        state.settle = state.settle.min(settled);
        let slot = (now / slot_length).max(state.slot);
        state.counts.shift((slot - state.slot) as u64);
        state.slot = slot;
        state.at = now;
        state
    }

    /// Forgets who has a lease, as if the store had evicted the set of leases.
    pub fn evict_leases(&mut self) {
        self.holders.evict_leases();
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::WindowLimits;
    use super::*;

    const LIMITS: WindowLimits = WindowLimits { ttl: 10 * SECOND, ratio: 500_000, min_per_second: 0 };

    /// A store, and processes that report to it.
    #[derive(Default)]
    struct Reports {
        pool: Pool,
        number: u64,
        /// How long the youngest slot of the process has lasted.
        age: u64,
    }

    impl Reports {
        fn report(&mut self, id: u64, now: u64, want: u64, counts: Counts) -> WindowLease {
            self.number += 1;
            let report = Report { number: self.number, expected: None, resync: false };
            let claim = WindowClaim { held: 0, want: Some(want), age: self.age, counts, limits: LIMITS };
            self.pool.report(id, &report, &claim, &Timing::DEFAULT, now).unwrap()
        }

        /// Returns what there is at `now`, as a process sees it that has counted nothing.
        fn at(&mut self, now: u64) -> (u64, i64) {
            let lease = self.report(99, now, 0, Counts::default());
            (lease.allowed, lease.left)
        }
    }

    fn counts(calls: u64, retries: u64) -> Counts {
        let mut counts = Counts::default();
        (counts.calls[0], counts.retries[0]) = (calls, retries);
        counts
    }

    #[test]
    fn a_call_counts_for_less_than_the_window_and_a_retry_for_longer() {
        // At each offset in a slot.
        for offset in (0..500_000).step_by(50_000) {
            let mut reports = Reports::default();
            let begun = 100 * SECOND + offset;
            let _ = reports.report(1, begun, 0, counts(100, 7));
            for (after, want) in
                [(8_999_999, (50, 43)), (9_500_000, (0, -7)), (9_999_999, (0, -7)), (10_500_000, (0, 0))]
            {
                assert_eq!(reports.at(begun + after), want, "{after} µs after {begun}");
            }
        }
    }

    #[test]
    fn slots_of_a_process_begin_when_they_do_and_not_with_those_of_the_store() {
        for (offset, age) in
            (0..500_000).step_by(100_000).flat_map(|offset| [0, 1, 250_000, 499_999].map(|age| (offset, age)))
        {
            let mut reports = Reports { age, ..Reports::default() };
            let begun = 100 * SECOND + offset;
            let mut counts = Counts::default();
            // In the slot that ended when the youngest began.
            (counts.calls[1], counts.retries[1]) = (100, 7);
            let _ = reports.report(1, begun, 0, counts);
            let ended = begun - age;
            assert_eq!(reports.at(ended + 8_999_999), (50, 43), "{offset}, {age}");
            assert_eq!(reports.at(ended + 9_999_999), (0, -7), "{offset}, {age}");
            assert_eq!(reports.at(ended + 10_500_000), (0, 0), "{offset}, {age}");
        }
    }

    #[test]
    fn a_report_replaces_what_the_process_has_said_before() {
        let mut reports = Reports::default();
        let _ = reports.report(1, 100 * SECOND, 0, counts(100, 7));
        let _ = reports.report(2, 100 * SECOND, 0, counts(20, 1));
        let _ = reports.report(1, 100 * SECOND + 1, 0, counts(110, 9));
        assert_eq!(reports.at(100 * SECOND + 2), (65, 55));
    }

    #[test]
    fn what_is_left_is_divided_among_the_processes_that_want_more() {
        let mut reports = Reports::default();
        for id in 0..4 {
            let _ = reports.report(id, 100 * SECOND, 50, counts(50, 0));
        }
        let now = 102 * SECOND;
        let mut older = Counts::default();
        older.calls[4] = 50;
        assert_eq!(reports.report(0, now, 50, older).retries, 50, "two of four parts of 100");
        assert_eq!(reports.report(1, now, 5, older).retries, 5, "what it wants");
    }

    #[test]
    fn a_step_of_the_clock_backwards_begins_again_with_what_all_report() {
        let mut reports = Reports::default();
        let _ = reports.report(1, 10_000 * SECOND, 0, counts(100, 7));
        let now = 100 * SECOND;
        assert_eq!(reports.report(2, now, 50, counts(60, 0)).retries, 0, "all report first");
        let mut older = Counts::default();
        older.calls[4] = 60;
        let lease = reports.report(2, now + 2 * SECOND, 50, older);
        assert_eq!((lease.retries, lease.allowed), (30, 30));
        assert_eq!(reports.at(now + 20 * SECOND).0, 0);
    }
}
