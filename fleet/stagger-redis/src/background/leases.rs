use core::sync::atomic::Ordering;
use std::sync::Arc;

use stagger_lease::account::Account;
use stagger_lease::claim::{Claim, Lease, Limits, Timing};
use stagger_lease::ledger::Ledger;
use stagger_lease::window::account::WindowAccount;
use stagger_lease::window::claim::{WindowClaim, WindowLease, WindowLimits};

use crate::target::{BudgetLimits, Registry, Target};

/// When a report is made, and by how many processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    pub(super) timing: &'a Timing,
    /// The number of processes among which local shares are divided.
    pub(super) processes: u64,
    pub(super) now: u64,
}

/// The side of a process in the protocol of one kind of budget.
pub(super) trait Leased: BudgetLimits {
    type Account;
    type Claim;
    type Lease;

    fn account(self, now: u64) -> Self::Account;

    /// Counts what has happened since the last time.
    fn count(_: &mut Self::Account, _: &Ledger, _: Moment<'_>) {}

    fn claim(account: &mut Self::Account, ledger: &Ledger, moment: Moment<'_>) -> Self::Claim;

    /// Returns the last claim.
    fn leave(account: &mut Self::Account, ledger: &Ledger, moment: Moment<'_>) -> Self::Claim;

    /// Takes over a lease, and returns what is left for all processes.
    fn on_lease(account: &mut Self::Account, ledger: &Ledger, lease: Self::Lease) -> i64;

    fn use_local_share(account: &mut Self::Account, ledger: &Ledger, moment: Moment<'_>);
}

impl Leased for Limits {
    type Account = Account;
    type Claim = Claim;
    type Lease = Lease;

    fn account(self, now: u64) -> Account {
        Account::new(self, now)
    }

    fn claim(account: &mut Account, ledger: &Ledger, moment: Moment<'_>) -> Claim {
        account.claim(ledger, moment.processes, moment.timing, moment.now)
    }

    fn leave(account: &mut Account, ledger: &Ledger, _: Moment<'_>) -> Claim {
        account.leave(ledger)
    }

    fn on_lease(account: &mut Account, ledger: &Ledger, lease: Lease) -> i64 {
        account.on_lease(ledger, lease);
        lease.left
    }

    fn use_local_share(account: &mut Account, ledger: &Ledger, moment: Moment<'_>) {
        account.use_local_share(ledger, moment.processes, moment.now);
    }
}

impl Leased for WindowLimits {
    type Account = WindowAccount;
    type Claim = WindowClaim;
    type Lease = WindowLease;

    fn account(self, now: u64) -> WindowAccount {
        WindowAccount::new(self, now)
    }

    fn count(account: &mut WindowAccount, ledger: &Ledger, moment: Moment<'_>) {
        account.count(ledger, moment.timing, moment.now);
    }

    fn claim(account: &mut WindowAccount, ledger: &Ledger, moment: Moment<'_>) -> WindowClaim {
        account.claim(ledger, moment.processes, moment.timing, moment.now)
    }

    fn leave(account: &mut WindowAccount, ledger: &Ledger, moment: Moment<'_>) -> WindowClaim {
        account.leave(ledger, moment.timing, moment.now)
    }

    fn on_lease(account: &mut WindowAccount, ledger: &Ledger, lease: WindowLease) -> i64 {
        account.on_lease(ledger, lease);
        lease.left
    }

    fn use_local_share(account: &mut WindowAccount, ledger: &Ledger, moment: Moment<'_>) {
        account.use_local_share(ledger, moment.processes, moment.timing, moment.now);
    }
}

/// The leases of this process on the budgets of one kind.
pub(super) struct Leases<L: Leased> {
    accounts: Vec<(Arc<Target<L>>, L::Account)>,
}

/// What a report claims of one budget.
pub(super) struct Claimed<L: Leased> {
    pub(super) target: Arc<Target<L>>,
    pub(super) claim: L::Claim,
    /// Whether nobody uses the budget any more.
    is_leaving: bool,
}

impl<L: Leased> Default for Leases<L> {
    fn default() -> Self {
        Self { accounts: Vec::new() }
    }
}

impl<L: Leased> Leases<L> {
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Takes over new budgets, and returns whether to report early: one is short, is new, or is no longer used.
    pub(super) fn take(&mut self, registry: &Registry, now: u64) -> bool {
        let mut is_early = false;
        registry.for_each(|target: &Arc<Target<L>>, is_used| {
            is_early |= target.ledger.is_short() || !is_used;
            if !self.accounts.iter().any(|(known, _)| Arc::ptr_eq(known, target)) {
                self.accounts.push((Arc::clone(target), target.limits.account(now)));
                is_early = true;
            }
        });
        is_early
    }

    pub(super) fn count(&mut self, moment: Moment<'_>) {
        for (target, account) in &mut self.accounts {
            L::count(account, &target.ledger, moment);
        }
    }

    pub(super) fn use_local_shares(&mut self, moment: Moment<'_>) {
        for (target, account) in &mut self.accounts {
            L::use_local_share(account, &target.ledger, moment);
        }
    }

    /// Returns what to claim of each budget. One that nobody uses any more is left, and all at the end of the process.
    pub(super) fn claims(&mut self, registry: &Registry, is_closed: bool, moment: Moment<'_>) -> Vec<Claimed<L>> {
        let mut used = Vec::new();
        registry.for_each(|target: &Arc<Target<L>>, is_used| {
            target.ledger.settle_short();
            used.extend((is_used && !is_closed).then(|| Arc::clone(target)));
        });
        let claims = self.accounts.iter_mut().map(|(target, account)| {
            let is_leaving = !used.iter().any(|used| Arc::ptr_eq(used, target));
            let claim = if is_leaving { L::leave } else { L::claim };
            Claimed { target: Arc::clone(target), claim: claim(account, &target.ledger, moment), is_leaving }
        });
        claims.collect()
    }

    /// Takes over the leases that the store has granted for these claims.
    pub(super) fn on_leases(&mut self, registry: &Registry, claims: &[Claimed<L>], leases: Vec<Option<L::Lease>>) {
        for ((target, account), lease) in self.accounts.iter_mut().zip(leases) {
            if let Some(lease) = lease {
                target.left.store(L::on_lease(account, &target.ledger, lease), Ordering::Relaxed);
            }
        }
        for Claimed { target, .. } in claims.iter().filter(|claimed| claimed.is_leaving) {
            registry.forget(target);
            self.accounts.retain(|(known, _)| !Arc::ptr_eq(known, target));
        }
    }
}
