//! What a process knows about its lease on a shared window.

use super::claim::{Counts, SLOTS, WindowClaim, WindowLease, WindowLimits};
use crate::account::Demand;
use crate::claim::Timing;
use crate::ledger::{Counted, Ledger};

/// What a process knows about its lease on a shared window, besides the counters of the [`Ledger`]. A retry costs 1
/// there, and a first attempt earns 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowAccount {
    limits: WindowLimits,
    history: History,
    demand: Demand,
    /// How many retries the fleet is allowed, as of the last reply.
    allowed: u64,
    /// What the last claim said that the process holds.
    claimed: u64,
}

impl WindowAccount {
    /// Creates the account of a target at `now`.
    #[must_use]
    pub fn new(limits: WindowLimits, now: u64) -> Self {
        let allowed = limits.allowed(0, 1);
        Self { limits, history: History::new(&limits, now), demand: Demand::new(now), allowed, claimed: 0 }
    }

    /// Counts the calls and retries since the last time. The more often, the more exactly it is known when they were.
    pub fn count(&mut self, ledger: &Ledger, timing: &Timing, now: u64) {
        let _ = self.take(ledger, u64::MAX, timing, now);
    }

    /// Returns the next claim, and takes what the process holds but does not want out of the ledger. `processes` is the
    /// size of the fleet.
    pub fn claim(&mut self, ledger: &Ledger, processes: u64, timing: &Timing, now: u64) -> WindowClaim {
        let want = self.demand.wanted(ledger, (1, self.allowed), processes, timing, now);
        self.claimed_of(ledger, want, Some(want), (timing, now))
    }

    /// Returns the last claim: the process leaves, and holds nothing.
    pub fn leave(&mut self, ledger: &Ledger, timing: &Timing, now: u64) -> WindowClaim {
        self.claimed_of(ledger, 0, None, (timing, now))
    }

    fn claimed_of(
        &mut self,
        ledger: &Ledger,
        most: u64,
        want: Option<u64>,
        (timing, now): (&Timing, u64),
    ) -> WindowClaim {
        let Counted { held, .. } = self.take(ledger, most, timing, now);
        self.claimed = held;
        let (counts, age) = self.history.counts();
        WindowClaim { held, want, age, counts: *counts, limits: self.limits }
    }

    /// Takes what is above `most` out of the ledger, and counts.
    fn take(&mut self, ledger: &Ledger, most: u64, timing: &Timing, now: u64) -> Counted {
        let counted = ledger.claim(most);
        // The longest time from one report to the next.
        self.history.count(&counted, timing.period * 11 / 10, now);
        counted
    }

    /// Takes over what the store granted.
    pub fn on_lease(&mut self, ledger: &Ledger, lease: WindowLease) {
        self.allowed = lease.allowed;
        if lease.retries < self.claimed {
            let _ = ledger.claim(lease.retries);
        } else {
            // A store that is wrong cannot grant more than there is.
            ledger.grant(lease.retries.min(lease.allowed).saturating_sub(self.claimed));
        }
    }

    /// Makes the process hold what its own window has left: its own calls, and its part of the minimum.
    pub fn use_local_share(&mut self, ledger: &Ledger, processes: u64, timing: &Timing, now: u64) {
        let Counted { held, .. } = self.take(ledger, u64::MAX, timing, now);
        let (calls, retries) = self.history.counts().0.sums();
        let left = self.limits.allowed(calls, processes).saturating_sub(retries);
        if held > left {
            let _ = ledger.claim(left);
        } else {
            ledger.grant(left - held);
        }
    }
}

/// The calls and retries of one process by slot, read from its counters now and then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct History {
    length: u64,
    counts: Counts,
    /// The youngest slot.
    newest: u64,
    /// When the counters were read last, and what they said.
    read_at: u64,
    retries: u64,
    calls: u64,
}

impl History {
    /// Creates the history of a process that begins at `now`, with slots of the window.
    const fn new(limits: &WindowLimits, now: u64) -> Self {
        let length = limits.slot_length();
        Self {
            length,
            counts: Counts { calls: [0; SLOTS], retries: [0; SLOTS] },
            newest: now / length,
            read_at: now,
            retries: 0,
            calls: 0,
        }
    }

    /// Takes over what the counters have grown by. Retries count as of now, and calls as of `longest` after the last
    /// time at the latest: a process that was stopped does not move the calls of before.
    fn count(&mut self, counted: &Counted, longest: u64, now: u64) {
        let newest = (now / self.length).max(self.newest);
        self.counts.shift(newest - self.newest);
        self.newest = newest;
        let made_by = now.min(self.read_at.saturating_add(longest)) / self.length;
        let calls = counted.earned.wrapping_sub(self.calls);
        let age = newest - made_by.min(newest);
        // Calls that are older than all slots count no more.
        if age < SLOTS as u64 {
            self.counts.calls[age as usize] += calls;
        }
        let retries = counted.spent.wrapping_sub(self.retries);
        // The counter wraps, and goes back if retries were not made after all.
        if retries <= u64::MAX / 2 {
            self.counts.retries[0] += retries;
        } else {
            self.take_back(retries.wrapping_neg());
        }
        (self.read_at, self.calls, self.retries) = (now, counted.earned, counted.spent);
    }

    /// Takes back retries that were not made after all: the oldest, so that those that were made count for as long as
    /// they should.
    fn take_back(&mut self, mut retries: u64) {
        for slot in self.counts.retries.iter_mut().rev() {
            let taken = retries.min(*slot);
            *slot -= taken;
            retries -= taken;
        }
    }

    /// Returns what was counted, and how long the youngest slot has lasted.
    const fn counts(&self) -> (&Counts, u64) {
        (&self.counts, self.read_at % self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::SECOND;

    const LIMITS: WindowLimits = WindowLimits { ttl: 10 * SECOND, ratio: 200_000, min_per_second: 10 };
    const TIMING: Timing = Timing::DEFAULT;

    fn spend(ledger: &Ledger) -> u64 {
        core::iter::repeat_with(|| ledger.try_spend(1)).take_while(|granted| *granted).count() as u64
    }

    #[test]
    fn a_local_share_is_a_window_of_the_own_calls_and_a_part_of_the_minimum() {
        let (ledger, mut account) = (Ledger::new(), WindowAccount::new(LIMITS, 0));
        account.use_local_share(&ledger, 8, &TIMING, 0);
        assert_eq!(spend(&ledger), 12, "an eighth of 100");
        ledger.earn(50);
        account.use_local_share(&ledger, 8, &TIMING, SECOND);
        assert_eq!(spend(&ledger), 10, "a fifth of 50, and the half of before");
        account.use_local_share(&ledger, 8, &TIMING, 10 * SECOND);
        assert_eq!(spend(&ledger), 0, "the retries still count");
        account.use_local_share(&ledger, 8, &TIMING, 23 * SECOND);
        assert_eq!(spend(&ledger), 12, "neither calls nor retries do");
    }

    #[test]
    fn leased_retries_count_in_the_local_window() {
        let (ledger, mut account) = (Ledger::new(), WindowAccount::new(LIMITS, 0));
        ledger.earn(1_000);
        let _ = account.claim(&ledger, 8, &TIMING, SECOND);
        account.on_lease(&ledger, WindowLease { retries: 150, processes: 8, allowed: 300, left: 150 });
        assert_eq!(spend(&ledger), 150);
        account.use_local_share(&ledger, 8, &TIMING, 4 * SECOND);
        assert_eq!(spend(&ledger), 212 - 150);
    }

    #[test]
    fn a_window_that_has_shrunk_takes_back_what_is_held() {
        let (ledger, mut account) = (Ledger::new(), WindowAccount::new(LIMITS, 0));
        ledger.earn(100);
        account.use_local_share(&ledger, 8, &TIMING, SECOND);
        assert_eq!(ledger.held(), 32);
        account.use_local_share(&ledger, 8, &TIMING, 12 * SECOND);
        assert_eq!(ledger.held(), 12);
    }

    #[test]
    fn a_claim_has_counts_by_age_and_calls_of_before_a_stop_stay_there() {
        let (ledger, mut account) = (Ledger::new(), WindowAccount::new(LIMITS, 0));
        ledger.earn(7);
        // The process is stopped for three seconds; its calls are of the first 1.1 s.
        let claim = account.claim(&ledger, 8, &TIMING, 3_200_000);
        assert_eq!((claim.counts.calls[4], claim.age), (7, 200_000));
        ledger.grant(3);
        assert_eq!(spend(&ledger), 3);
        let claim = account.claim(&ledger, 8, &TIMING, 4_000_000);
        assert_eq!((claim.counts.calls[6], claim.counts.retries[0], claim.held), (7, 3, 0));
        ledger.release(1);
        let claim = account.leave(&ledger, &TIMING, 4_600_000);
        assert_eq!((claim.counts.retries[1], claim.held, claim.want), (2, 0, None));
    }

    #[test]
    fn a_grant_is_at_most_what_the_fleet_is_allowed() {
        let (ledger, mut account) = (Ledger::new(), WindowAccount::new(LIMITS, 0));
        account.on_lease(&ledger, WindowLease { retries: u64::MAX, processes: 8, allowed: 300, left: 0 });
        assert_eq!(ledger.held(), 300);
    }
}
