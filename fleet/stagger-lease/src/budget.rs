//! A lease as a retry budget.

use stagger_core::Outcome;
use stagger_core::guard::{BudgetPermit, ServerHealth};

use crate::claim::Limits;
use crate::ledger::Ledger;

/// Takes the cost of a retry out of the ledger if the process holds it. Calls `report` once when the process begins to
/// run short of tokens: it reports early then, as its allowance permits.
#[inline]
pub fn try_acquire(ledger: &Ledger, cost: u64, report: impl FnOnce()) -> Option<BudgetPermit> {
    let is_granted = ledger.try_spend(cost);
    if ledger.is_newly_short(2 * cost) {
        report();
    }
    if is_granted { Some(BudgetPermit(cost)) } else { None }
}

/// What acquires, settles and counts the retries of one target.
impl Limits {
    /// Takes the cost of a retry as [`try_acquire`] does.
    #[inline]
    pub fn try_acquire(&self, ledger: &Ledger, report: impl FnOnce()) -> Option<BudgetPermit> {
        try_acquire(ledger, self.cost, report)
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
