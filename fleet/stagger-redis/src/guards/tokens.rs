use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use stagger::FailureKind;
use stagger::guard::{End, Guard, Now, Permit};
use stagger_lease::settings::TokenSettings;

use crate::error::{SettingsError, SettingsProblem};
use crate::keys::keys;
use crate::leases::TokenTarget;
use crate::registry::{FleetHandle, GuardHandle, Registry};

const WHOLE: u64 = 1_000_000;

/// A token bucket that all processes of a fleet share: every retry takes tokens, every success puts tokens back.
///
/// ```text
/// retries of the fleet in T seconds · cost ≤ capacity + refill · T + reward · successes
/// ```
///
/// A process holds a *lease*: tokens that it may spend alone for three seconds, and that a background task renews each
/// second. A retry touches local atomics only; no call waits for the store or fails because of it. Leases count against
/// the capacity, so the bound holds however many processes there are.
///
/// Without the store, a process uses its share: what it holds, at most its part of the capacity, and its part of the
/// refill. They are divided by the number of processes, which is the expected one, or the largest that it has seen. A
/// process that starts then begins with nothing. The documentation of the [crate](crate#without-the-store)
/// has what may be exceeded then.
///
/// Units: whole tokens. Clones share one lease, and so do all `SharedTokens` of a fleet with the same target. When the
/// last one is dropped, the lease is handed back.
///
/// Differs from [`Tokens`](stagger::budget::Tokens) in: there is one cost for every failure, and a success adds to the
/// bucket of the fleet, so that its reward reaches a process with a later lease.
///
/// # Cost
///
/// Lock-free. A retry is a few atomic operations, and wakes the task if the process runs short of tokens; a success is
/// one addition if there is a reward. The clock is never read.
#[derive(Clone)]
pub struct SharedTokens {
    handle: Arc<GuardHandle<TokenTarget>>,
}

/// Builds [`SharedTokens`]. Created by [`Fleet::tokens`](crate::Fleet::tokens).
#[derive(Clone, Debug)]
#[must_use]
pub struct SharedTokensBuilder<'a> {
    fleet: &'a Arc<FleetHandle>,
    namespace: &'a str,
    target: &'a str,
    settings: TokenSettings,
}

/// A snapshot of [`SharedTokens`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedTokensSnapshot {
    /// Whole tokens that this process holds.
    pub held: u64,
    /// Whole tokens that were left for all processes at the last reply of the store; negative if the fleet has spent
    /// more than it had.
    pub left: i64,
}

impl SharedTokens {
    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SharedTokensSnapshot {
        let target = &self.handle.target;
        let left = target.left.load(Ordering::Relaxed).div_euclid(WHOLE as i64);
        SharedTokensSnapshot { held: target.ledger.held() / WHOLE, left }
    }
}

impl fmt::Debug for SharedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedTokensSnapshot { held, left } = self.snapshot();
        let name = &self.handle.target.name;
        f.debug_struct("SharedTokens").field("target", name).field("held", &held).field("left", &left).finish()
    }
}

impl Guard for SharedTokens {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        let target = &self.handle.target;
        target.limits.reserve(&target.ledger, || self.handle.fleet.0.wake.notify_one())
    }

    #[inline]
    fn settle(&self, Permit(permit): Permit, end: End<'_>, _: &dyn Now) {
        let target = &self.handle.target;
        match end {
            End::Made(outcome) => target.limits.record(&target.ledger, outcome),
            End::NeverMade => target.ledger.release(permit),
        }
    }

    /// Returns how many retries this process can make with the tokens that it holds.
    fn available(&self) -> Option<u64> {
        let target = &self.handle.target;
        target.limits.available(&target.ledger)
    }

    fn bounds_retries(&self) -> bool {
        true
    }
}

impl<'a> SharedTokensBuilder<'a> {
    pub(crate) const fn new(fleet: &'a Arc<FleetHandle>, namespace: &'a str, target: &'a str) -> Self {
        Self { fleet, namespace, target, settings: TokenSettings::DEFAULT }
    }

    /// Sets the maximum number of tokens of the fleet, leases included. Default: 500. Range: 1 to 1,000,000,000.
    ///
    /// With a refill, use at least five times what it adds in a second: unspent leases hold back refill.
    pub const fn capacity(mut self, tokens: u32) -> Self {
        self.settings.capacity = tokens as u64;
        self
    }

    /// Sets the number of tokens at the start. Default: the capacity.
    pub const fn initial(mut self, tokens: u32) -> Self {
        self.settings.initial = Some(tokens as u64);
        self
    }

    /// Sets the cost of a retry. Default: 5.
    pub const fn cost(mut self, tokens: u32) -> Self {
        self.settings.cost = tokens as u64;
        self
    }

    /// Sets what a success puts back. Default: 1, so that a fifth of all calls may be retries. With 0, only time
    /// refills the bucket.
    pub const fn reward(mut self, tokens: u32) -> Self {
        self.settings.reward = tokens as u64;
        self
    }

    /// Adds `tokens` for the fleet in each period `per`, evenly. Default: none.
    pub const fn refill(mut self, tokens: u32, per: Duration) -> Self {
        self.settings.refill = (tokens as u64, per);
        self
    }

    /// Creates the budget. It has no tokens until the store grants a lease, or until it uses its local share because
    /// there is none.
    ///
    /// # Errors
    /// Every problem at once: a target without a name or with one of more than 128 bytes; a capacity outside its range;
    /// more initial tokens, a higher cost or a larger reward than the capacity; a cost of 0; a refill period of 0, or
    /// more than 1,000,000,000 tokens per second. Then: the target has other limits in this fleet, or the fleet has 64
    /// guards.
    pub fn build(self) -> Result<SharedTokens, SettingsError> {
        let Self { fleet, namespace, target, settings } = self;
        let limits = SettingsError::of_guard(target, settings.limits(), SettingsProblem::of)?;
        let handle = Registry::hold(fleet, TokenTarget::new(target, keys(namespace, target), limits))?;
        Ok(SharedTokens { handle })
    }
}
