use crate::lease::claim::{Claim, Lease, Limits, SECOND, Timing, WRAP};
use crate::lease::ledger::{Counted, Ledger};

/// Demand is kept in sixteenths of a retry per period.
const FRACTION: u64 = 16;

/// What a process knows about its lease on one target, besides the counters of the [`Ledger`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    limits: Limits,
    epoch: u64,
    /// Retries asked for per period, smoothed: it rises at once and halves with each report.
    demand: u64,
    measured: u64,
    /// What the last claim said that the process holds.
    claimed: u64,
    local: Option<LocalShare>,
}

/// The local bucket that stands in for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LocalShare {
    /// Up to when the refill has been counted.
    at: u64,
    /// Up to which counter rewards have been counted.
    earned: u64,
}

impl Account {
    /// Creates the account of a target at `now`.
    pub(crate) const fn new(limits: Limits, now: u64) -> Self {
        Self { limits, epoch: 0, demand: 0, measured: now, claimed: 0, local: None }
    }

    /// Returns the next claim, and takes what the process holds but does not want out of the ledger. `processes` is the size
    /// of the fleet.
    pub(crate) fn claim(&mut self, ledger: &Ledger, processes: u64, timing: &Timing, now: u64) -> Claim {
        let elapsed = now.saturating_sub(self.measured).max(timing.period / 2).max(1);
        self.measured = now;
        let rate = ledger.take_asked().saturating_mul(FRACTION).saturating_mul(timing.period) / elapsed;
        self.demand = rate.max(self.demand.midpoint(rate));
        let Limits { capacity, cost, .. } = self.limits;
        let mut want = (self.demand.saturating_mul(2).saturating_mul(cost) / FRACTION).min(capacity);
        if processes.saturating_mul(4).saturating_mul(cost) <= capacity {
            // An idle process has its first retry in hand.
            want = want.max(2 * cost);
        }
        if self.local.is_some() {
            // What it took out would be lost if there is no reply.
            want = want.max(ledger.held());
        }
        self.claimed_of(ledger.claim(want), Some(want))
    }

    /// Returns the last claim: the process leaves, and holds nothing.
    pub(crate) fn leave(&mut self, ledger: &Ledger) -> Claim {
        self.claimed_of(ledger.claim(0), None)
    }

    fn claimed_of(&mut self, Counted { held, spent, earned }: Counted, want: Option<u64>) -> Claim {
        self.claimed = held;
        Claim { epoch: self.epoch, spent: spent % WRAP, earned: earned % WRAP, held, want, limits: self.limits }
    }

    /// Takes over what the store granted.
    pub(crate) fn on_lease(&mut self, ledger: &Ledger, lease: Lease) {
        self.epoch = lease.epoch;
        self.local = None;
        // A store that is wrong cannot grant more than there is.
        ledger.grant(lease.tokens.min(self.limits.capacity).saturating_sub(self.claimed));
    }

    /// Counts what the local share has earned until `now`, and begins it if it has not begun: the process keeps at most its
    /// share of the capacity, or begins with its share of the initial tokens if it never had a lease.
    pub(crate) fn use_local_share(&mut self, ledger: &Ledger, processes: u64, now: u64) {
        let Limits { capacity, refill, initial, cost, .. } = self.limits;
        let Some(LocalShare { at, earned }) = &mut self.local else {
            if self.epoch == 0 {
                ledger.grant((initial / processes).saturating_sub(ledger.held()));
            } else {
                let _ = ledger.claim(capacity / processes);
            }
            self.local = Some(LocalShare { at: now, earned: ledger.earned() });
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
        // The store does not refill while it is away, so this counts as earned. A success meanwhile is counted next time.
        let refilled = u64::try_from(refilled).unwrap_or(u64::MAX).min(room - rewards_held);
        ledger.earn(refilled);
        *earned = earned.wrapping_add(rewards).wrapping_add(refilled);
        ledger.grant(rewards_held + refilled);
    }
}
