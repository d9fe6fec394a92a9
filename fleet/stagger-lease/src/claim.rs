//! What a process claims, what the store replies, and how a retry takes from a lease.

use stagger_core::Outcome;
use stagger_core::guard::{Permit, ServerHealth};

use crate::ledger::Ledger;

/// Counters are reported modulo 2^52, which Lua's numbers hold exactly. The store computes differences modulo the same.
pub const WRAP: u64 = 1 << 52;

/// One second in microseconds.
pub const SECOND: u64 = 1_000_000;

/// The limits of a token bucket for the fleet, in millionths of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The most that there is, leases included.
    pub capacity: u64,
    /// What time adds per second.
    pub refill: u64,
    /// What the bucket begins with.
    pub initial: u64,
    /// The cost of a retry.
    pub cost: u64,
    /// What a success puts back.
    pub reward: u64,
}

impl Limits {
    /// Returns what is refilled in so many microseconds.
    #[must_use]
    pub fn refilled(&self, length: u64) -> u64 {
        u64::try_from(u128::from(self.refill) * u128::from(length) / u128::from(SECOND)).unwrap_or(u64::MAX)
    }
}

/// How often a process reports, and how long its leases last, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// The time from one report to the next.
    pub period: u64,
    /// The length of a lease.
    pub lease: u64,
    /// How long a process that never had a reply waits for one before it uses its local share.
    pub patience: u64,
}

impl Timing {
    /// The timing of the protocol: a report each second, leases of three.
    pub const DEFAULT: Self = Self { period: SECOND, lease: 3 * SECOND, patience: SECOND };
}

/// What a report says about the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// Above all earlier ones of the process.
    pub number: u64,
    /// The store's time that the process expects; `None` before the first reply.
    pub expected: Option<u64>,
    /// Whether the store shall accept its clock although the process expects another time.
    pub resync: bool,
}

impl Report {
    /// Returns whether the store's clock is not what the process expects, so that it has to ask again: the report lay
    /// in a buffer, or the clock has jumped.
    #[must_use]
    pub fn contradicts(&self, now: u64) -> bool {
        match self.expected {
            Some(expected) => !self.resync && now.abs_diff(expected) > SECOND,
            None => false,
        }
    }
}

/// What a report says about one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The bucket of the last reply; 0 if there was none.
    pub epoch: u64,
    /// What was spent since the process started, modulo [`WRAP`].
    pub spent: u64,
    /// What successes have earned since the process started, modulo [`WRAP`].
    pub earned: u64,
    /// What the process holds.
    pub held: u64,
    /// What it wants to hold; `None` if the process leaves.
    pub want: Option<u64>,
    /// The limits of the target.
    pub limits: Limits,
}

/// The reply to a report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The store's clock is not what the process expects: report again.
    Again,
    /// The store's time, and what it says about each target; `None` if the report was old.
    Done {
        /// The store's time, in microseconds.
        now: u64,
        /// What each target has, in the order of the claims.
        leases: Vec<Option<Lease>>,
    },
}

/// What a process has on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The bucket that granted it.
    pub epoch: u64,
    /// What the process may hold, of which it has claimed a part.
    pub tokens: u64,
    /// The processes that have a lease, or have reported lately.
    pub processes: u64,
    /// What is left for all; negative if the fleet has a debt.
    pub left: i64,
}

/// Takes the cost of a retry out of the ledger if the process holds it. Calls `report` once when the process begins to
/// run short of tokens: it reports early then, as its allowance permits.
#[inline]
pub fn reserve(ledger: &Ledger, cost: u64, report: impl FnOnce()) -> Option<Permit> {
    let is_granted = ledger.try_spend(cost);
    if ledger.is_newly_short(2 * cost) {
        report();
    }
    if is_granted { Some(Permit(cost)) } else { None }
}

/// What reserves, settles and counts the retries of one target.
impl Limits {
    /// Takes the cost of a retry as [`reserve`] does.
    #[inline]
    pub fn reserve(&self, ledger: &Ledger, report: impl FnOnce()) -> Option<Permit> {
        reserve(ledger, self.cost, report)
    }

    /// Counts the reward if the outcome shows a healthy server.
    #[inline]
    pub fn record(&self, ledger: &Ledger, outcome: &Outcome) {
        if self.reward > 0 && outcome.verdict() == ServerHealth::Healthy {
            ledger.earn(self.reward);
        }
    }

    /// Returns how many retries the process can make with the tokens that it holds.
    #[must_use]
    pub fn available(&self, ledger: &Ledger) -> Option<u64> {
        ledger.held().checked_div(self.cost)
    }
}
