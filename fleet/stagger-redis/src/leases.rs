//! The leases of this process on the budgets of a fleet: token buckets and windows.

use core::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use stagger_lease::account::Account;
use stagger_lease::claim::{Claim, Lease, Limits, Timing};
use stagger_lease::ledger::Ledger;
use stagger_lease::window::account::WindowAccount;
use stagger_lease::window::claim::{WindowClaim, WindowLease, WindowLimits};

use crate::keys::Keys;
use crate::registry::{Registry, Target};

/// One budget of a fleet in this process: a token bucket, or a window.
#[derive(Debug)]
pub(crate) struct BudgetTarget<L> {
    pub(crate) name: Box<str>,
    pub(crate) keys: Keys,
    pub(crate) limits: L,
    pub(crate) ledger: Ledger,
    /// What was left for all at the last reply, in the unit of the ledger.
    pub(crate) left: AtomicI64,
}

/// A token bucket.
pub(crate) type TokenTarget = BudgetTarget<Limits>;
/// A window.
pub(crate) type WindowTarget = BudgetTarget<WindowLimits>;

impl<L> BudgetTarget<L> {
    /// Creates the budget of a target, without a lease.
    pub(crate) fn new(name: &str, keys: Keys, limits: L) -> Self {
        Self { name: name.into(), keys, limits, ledger: Ledger::new(), left: AtomicI64::new(0) }
    }
}

impl<L: Leased> Target for BudgetTarget<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_like(&self, other: &Self) -> bool {
        self.limits == other.limits
    }
}

/// When a report is made, and by how many processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) timing: &'a Timing,
    /// The number of processes among which local shares are divided.
    pub(crate) processes: u64,
    pub(crate) now: u64,
}

/// The side of a process in the protocol of one kind of budget.
pub(crate) trait Leased: Copy + PartialEq + Send + Sync + 'static {
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
        account.use_local_share(ledger, moment.processes, moment.timing, moment.now);
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
pub(crate) struct Leases<L: Leased> {
    accounts: Vec<(Arc<BudgetTarget<L>>, L::Account)>,
}

/// What a report claims of one budget.
pub(crate) struct Claimed<L: Leased> {
    pub(crate) target: Arc<BudgetTarget<L>>,
    pub(crate) claim: L::Claim,
    /// Whether nobody uses the budget any more.
    is_leaving: bool,
}

impl<L: Leased> Default for Leases<L> {
    fn default() -> Self {
        Self { accounts: Vec::new() }
    }
}

impl<L: Leased> Leases<L> {
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Takes over new budgets, and returns whether to report early: one is short, is new, or is no longer used.
    pub(crate) fn take(&mut self, registry: &Registry, now: u64) -> bool {
        let mut is_early = false;
        registry.for_each(|target: &Arc<BudgetTarget<L>>, is_used| {
            is_early |= target.ledger.is_short() || !is_used;
            if !self.accounts.iter().any(|(known, _)| Arc::ptr_eq(known, target)) {
                self.accounts.push((Arc::clone(target), target.limits.account(now)));
                is_early = true;
            }
        });
        is_early
    }

    pub(crate) fn count(&mut self, moment: Moment<'_>) {
        for (target, account) in &mut self.accounts {
            L::count(account, &target.ledger, moment);
        }
    }

    pub(crate) fn use_local_shares(&mut self, moment: Moment<'_>) {
        for (target, account) in &mut self.accounts {
            L::use_local_share(account, &target.ledger, moment);
        }
    }

    /// Returns what to claim of each budget. One that nobody uses any more is left, and all at the end of the process.
    pub(crate) fn claims(&mut self, registry: &Registry, is_closed: bool, moment: Moment<'_>) -> Vec<Claimed<L>> {
        let mut used = Vec::new();
        registry.for_each(|target: &Arc<BudgetTarget<L>>, is_used| {
            target.ledger.settle_short();
            if is_used && !is_closed {
                used.push(Arc::clone(target));
            }
        });
        let claims = self.accounts.iter_mut().map(|(target, account)| {
            let is_leaving = !used.iter().any(|used| Arc::ptr_eq(used, target));
            let claim = if is_leaving {
                L::leave(account, &target.ledger, moment)
            } else {
                L::claim(account, &target.ledger, moment)
            };
            Claimed { target: Arc::clone(target), claim, is_leaving }
        });
        claims.collect()
    }

    /// Takes over the leases that the store has granted for these claims.
    pub(crate) fn on_leases(&mut self, registry: &Registry, claims: &[Claimed<L>], leases: Vec<Option<L::Lease>>) {
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
