//! What a process knows about its lease on one target.

use crate::claim::{Claim, Lease, Limits, SECOND, Timing, WRAP};
use crate::ledger::{Counted, Ledger};

/// The bucket of a process that began without a store: no store has it, so that one that has lost its data begins empty
/// for this process, too.
const UNKNOWN: u64 = 1;

/// The parts of a retry in which demand is kept.
const FRACTION: u64 = 16;

/// What a process knows about its lease on one target, besides the counters of the [`Ledger`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    limits: Limits,
    epoch: u64,
    begun: u64,
    demand: Demand,
    /// What the last claim said that the process holds.
    claimed: u64,
    local: Option<LocalShare>,
}

/// How many retries a process wants to have in hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Demand {
    /// Retries asked for per period in sixteenths, smoothed: it rises at once and halves with each report.
    rate: u64,
    measured: u64,
}

/// The local bucket that stands in for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LocalShare {
    /// Up to when the refill has been counted.
    at: u64,
    /// Up to which counter rewards have been counted.
    earned: u64,
}

impl Demand {
    /// Creates the demand of a process that begins at `now`.
    pub(crate) const fn new(now: u64) -> Self {
        Self { rate: 0, measured: now }
    }

    /// Returns what the process wants to hold, with `cost` for each retry: the cost of what it asks for in two periods,
    /// and at least of two retries if those of all processes are at most half of `room`, so that an idle process has
    /// its first retry in hand.
    pub(crate) fn wanted(
        &mut self,
        ledger: &Ledger,
        (cost, room): (u64, u64),
        processes: u64,
        timing: &Timing,
        now: u64,
    ) -> u64 {
        let elapsed = now.saturating_sub(self.measured).max(timing.period / 2).max(1);
        self.measured = now;
        let rate = ledger.take_asked().saturating_mul(FRACTION).saturating_mul(timing.period) / elapsed;
        self.rate = rate.max(self.rate.midpoint(rate));
        let wanted = self.rate.saturating_mul(2).saturating_mul(cost) / FRACTION;
        if processes.saturating_mul(4).saturating_mul(cost) <= room { wanted.max(2 * cost) } else { wanted }
    }
}

impl Account {
    /// Creates the account of a target at `now`.
    #[must_use]
    pub const fn new(limits: Limits, now: u64) -> Self {
        Self { limits, epoch: 0, begun: now, demand: Demand::new(now), claimed: 0, local: None }
    }

    /// Returns the next claim, and takes what the process holds but does not want out of the ledger. `processes` is the
    /// size of the fleet.
    pub fn claim(&mut self, ledger: &Ledger, processes: u64, timing: &Timing, now: u64) -> Claim {
        let Limits { capacity, cost, .. } = self.limits;
        let mut want = self.demand.wanted(ledger, (cost, capacity), processes, timing, now).min(capacity);
        if now < self.begun + timing.period {
            // The processes of a deployment start together: the first ones leave the others their part.
            want = want.min((capacity / processes).max(cost));
        }
        if self.local.is_some() {
            // What it took out would be lost if there is no reply.
            want = want.max(ledger.held());
        }
        self.claimed_of(ledger.claim(want), Some(want))
    }

    /// Returns the last claim: the process leaves, and holds nothing.
    pub fn leave(&mut self, ledger: &Ledger) -> Claim {
        self.claimed_of(ledger.claim(0), None)
    }

    fn claimed_of(&mut self, Counted { held, spent, earned }: Counted, want: Option<u64>) -> Claim {
        self.claimed = held;
        Claim { epoch: self.epoch, spent: spent % WRAP, earned: earned % WRAP, held, want, limits: self.limits }
    }

    /// Takes over what the store granted.
    pub fn on_lease(&mut self, ledger: &Ledger, lease: Lease) {
        self.epoch = lease.epoch;
        self.local = None;
        // A store that is wrong cannot grant more than there is.
        ledger.grant(lease.tokens.min(self.limits.capacity).saturating_sub(self.claimed));
    }

    /// Counts what the local share has earned until `now`, and begins it if it has not begun: the process keeps at most
    /// its share of the capacity. One that never had a lease begins with nothing, since nobody counts how often
    /// processes start while the store is away: with a share of the initial tokens, a crash loop had no bound.
    ///
    /// Later, the process reports the refill of its local share as earned. So the store need not guess what was spent
    /// while it was away. With a guess, a fleet had no retries after a long outage, or could spend a capacity twice, as
    /// the exploration showed.
    pub fn use_local_share(&mut self, ledger: &Ledger, processes: u64, timing: &Timing, now: u64) {
        let Limits { capacity, refill, cost, .. } = self.limits;
        let Some(LocalShare { at, earned }) = &mut self.local else {
            let _ = ledger.claim(capacity / processes);
            // The store counts the refill for the length of a lease after the last report, even if those who reported
            // are gone.
            let mut at = now;
            if self.epoch == 0 {
                self.epoch = UNKNOWN;
                at += timing.lease.saturating_sub(timing.patience);
            }
            self.local = Some(LocalShare { at, earned: ledger.earned() });
            return;
        };
        let refilled =
            u128::from(now.saturating_sub(*at)) * u128::from(refill) / (u128::from(SECOND) * u128::from(processes));
        let rewards = ledger.earned().wrapping_sub(*earned);
        // What is less than a millionth of a token waits for the next time.
        if refilled > 0 || refill == 0 {
            *at = now;
        }
        // A share below the cost of one retry would never allow one.
        let room = (capacity / processes).max(cost).saturating_sub(ledger.held());
        let rewards_held = rewards.min(room);
        // The store does not refill while it is away, so this counts as earned. A success meanwhile is counted next
        // time.
        let refilled = u64::try_from(refilled).unwrap_or(u64::MAX).min(room - rewards_held);
        ledger.earn(refilled);
        *earned = earned.wrapping_add(rewards).wrapping_add(refilled);
        ledger.grant(rewards_held + refilled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: u64 = 1_000_000;
    const T: &Timing = &Timing::DEFAULT;
    const LIMITS: Limits =
        Limits { capacity: 500 * TOKEN, refill: 50 * TOKEN, initial: 500 * TOKEN, cost: 5 * TOKEN, reward: TOKEN };

    fn lease(tokens: u64) -> Lease {
        Lease { epoch: 1, tokens, processes: 8, left: 0 }
    }

    #[test]
    fn an_idle_process_wants_two_retries_while_those_of_all_are_at_most_half_the_bucket() {
        for (processes, want) in [(8, 10), (25, 10), (26, 0)] {
            let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
            let claim = account.claim(&ledger, processes, &Timing::DEFAULT, SECOND);
            assert_eq!(claim.want, Some(want * TOKEN), "{processes} processes");
        }
    }

    #[test]
    fn demand_rises_at_once_and_halves_with_each_report() {
        let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
        for _ in 0..16 {
            assert!(!ledger.try_spend(LIMITS.cost), "nothing is held");
        }
        for (second, want) in [(1, 160), (2, 80), (3, 40), (4, 20), (5, 10), (6, 10)] {
            let claim = account.claim(&ledger, 8, &Timing::DEFAULT, second * SECOND);
            assert_eq!(claim.want, Some(want * TOKEN), "second {second}");
        }
    }

    #[test]
    fn what_is_held_and_not_wanted_is_handed_back() {
        let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
        account.on_lease(&ledger, lease(100 * TOKEN));
        let claim = account.claim(&ledger, 8, &Timing::DEFAULT, SECOND);
        assert_eq!((claim.held, claim.want, ledger.held()), (10 * TOKEN, Some(10 * TOKEN), 10 * TOKEN));
        let claim = account.leave(&ledger);
        assert_eq!((claim.held, claim.want, ledger.held()), (0, None, 0));
    }

    #[test]
    fn a_lease_adds_what_was_not_claimed_and_never_more_than_the_capacity() {
        let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
        for (granted, held) in [(10, 10), (30, 30), (5, 10), (u64::MAX / TOKEN, 500)] {
            account.on_lease(&ledger, lease(granted * TOKEN));
            assert_eq!(ledger.held(), held * TOKEN, "granted {granted}");
            account.claimed_of(ledger.claim(10 * TOKEN), Some(10 * TOKEN));
        }
    }

    #[test]
    fn a_local_share_is_a_bucket_with_that_part_of_the_limits() {
        let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
        account.use_local_share(&ledger, 10, T, SECOND);
        assert_eq!(ledger.held(), 0, "it begins with nothing");
        account.use_local_share(&ledger, 10, T, 3 * SECOND);
        assert_eq!(ledger.held(), 0, "the store may count the refill of a lease");
        account.use_local_share(&ledger, 10, T, 4 * SECOND);
        assert_eq!((ledger.held(), ledger.earned()), (5 * TOKEN, 5 * TOKEN), "a refill counts as earned");
        ledger.earn(3 * TOKEN);
        account.use_local_share(&ledger, 10, T, 4 * SECOND);
        assert_eq!((ledger.held(), ledger.earned()), (8 * TOKEN, 8 * TOKEN), "a reward is not counted twice");
        account.use_local_share(&ledger, 10, T, 100 * SECOND);
        assert_eq!((ledger.held(), ledger.earned()), (50 * TOKEN, 50 * TOKEN), "at most the share");
    }

    #[test]
    fn a_process_that_had_a_lease_begins_its_local_share_with_what_it_holds() {
        for (held, want) in [(20, 20), (100, 50)] {
            let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
            account.on_lease(&ledger, lease(held * TOKEN));
            account.use_local_share(&ledger, 10, T, SECOND);
            assert_eq!(ledger.held(), want * TOKEN);
        }
    }

    #[test]
    fn a_share_below_the_cost_still_allows_a_retry_now_and_then() {
        let (ledger, mut account) = (Ledger::new(), Account::new(LIMITS, 0));
        account.use_local_share(&ledger, 1_000, T, 0);
        account.use_local_share(&ledger, 1_000, T, 102 * SECOND);
        assert_eq!(ledger.held(), LIMITS.cost, "100 seconds of a thousandth of the refill");
    }
}
