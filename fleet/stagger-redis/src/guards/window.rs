use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use stagger::guard::{Answer, Ask, End, Guard, Now, Permit};
use stagger::{FailureKind, Ratio};
use stagger_lease::claim;
use stagger_lease::window::settings::WindowSettings;

use crate::error::{SettingsError, SettingsProblem};
use crate::keys::window_keys;
use crate::leases::WindowTarget;
use crate::registry::{FleetHandle, GuardHandle, Registry};

/// Bounds the retries of a fleet by a share of its calls, plus a minimum per second for all processes together.
///
/// ```text
/// retries(t − ttl, t] ≤ ratio · calls(t − ttl − 2·p, t] + min_per_second · ttl      p = 1.25 s
/// ```
///
/// in every interval, counted over all processes: a process reports within p, and uses a lease for as long. If reports
/// are lost, a lease is used for up to 3 s.
///
/// Units: calls and retries. Defaults: ttl 10 s, ratio 20 %, 10 retries per second. Range: ttl 5 s to 60 s.
///
/// A process holds a *lease*: retries that it may make alone, which a background task renews each second. What the
/// calls of one process allow and it does not need is used by the others: one failing process of eight has nearly all
/// retries of the fleet. A retry touches local atomics only; no call waits for the store or fails because of it.
///
/// Without the store, a process has a window of its own: `ratio · own calls + min_per_second · ttl / processes`, in
/// which all its retries count, also those that were leased. The ratio needs no store, so the processes together make
/// no more retries than with it, except for what some had used of the others' share. The documentation of the
/// [crate](crate#without-the-store) has what may be exceeded then.
///
/// Clones share one lease, and so do all `SharedWindow`s of a fleet with the same target. When the last one is dropped,
/// the lease is handed back. Windows with different ttl are different windows: while a deployment changes it, each
/// version has its own calls, and the minimum for itself.
///
/// Differs from [`Window`](stagger::budget::Window) in: the ttl is at least 5 s, because calls are reported once a
/// second; its slots are half as long, and retries count until the whole ttl is over, so the bound holds in every
/// interval; there are no retries until the first lease, in a new namespace for 1.25 s.
///
/// Use it if you want to say "retries add at most 20 % to the load", and not how many there are. Compare
/// [`SharedTokens`](crate::SharedTokens), which bounds their number.
///
/// # Cost
///
/// Lock-free. A call is one addition; a retry is a few atomic operations, and wakes the task if the process runs short
/// of retries. The clock is never read.
#[derive(Clone)]
pub struct SharedWindow {
    handle: Arc<GuardHandle<WindowTarget>>,
}

/// Builds a [`SharedWindow`]. Created by [`Fleet::window`](crate::Fleet::window).
#[derive(Clone, Debug)]
#[must_use]
pub struct SharedWindowBuilder<'a> {
    fleet: &'a Arc<FleetHandle>,
    namespace: &'a str,
    target: &'a str,
    settings: WindowSettings,
}

/// A snapshot of a [`SharedWindow`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedWindowSnapshot {
    /// Retries that this process may make.
    pub held: u64,
    /// Retries that were left for all processes at the last reply of the store; negative if there were more than the
    /// calls allow.
    pub left: i64,
}

impl SharedWindow {
    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SharedWindowSnapshot {
        let target = &self.handle.target;
        SharedWindowSnapshot { held: target.ledger.held(), left: target.left.load(Ordering::Relaxed) }
    }
}

impl fmt::Debug for SharedWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedWindowSnapshot { held, left } = self.snapshot();
        let name = &self.handle.target.name;
        f.debug_struct("SharedWindow").field("target", name).field("held", &held).field("left", &left).finish()
    }
}

impl Guard for SharedWindow {
    fn name(&self) -> &'static str {
        "budget"
    }

    #[inline]
    fn ask(&self, ask: Ask, held: Permit, _: &dyn Now) -> Answer {
        if ask.is_first {
            self.handle.target.ledger.earn(1);
        }
        Answer::Go(held)
    }

    fn reserve(&self, _: FailureKind, _: &dyn Now) -> Option<Permit> {
        claim::reserve(&self.handle.target.ledger, 1, || self.handle.fleet.0.wake.notify_one())
    }

    #[inline]
    fn settle(&self, Permit(permit): Permit, end: End<'_>, _: &dyn Now) {
        if end == End::NeverMade {
            self.handle.target.ledger.release(permit);
        }
    }

    /// Returns how many retries this process may make.
    fn available(&self) -> Option<u64> {
        Some(self.handle.target.ledger.held())
    }

    fn bounds_retries(&self) -> bool {
        true
    }
}

impl<'a> SharedWindowBuilder<'a> {
    pub(crate) const fn new(fleet: &'a Arc<FleetHandle>, namespace: &'a str, target: &'a str) -> Self {
        Self { fleet, namespace, target, settings: WindowSettings::DEFAULT }
    }

    /// Sets how long a call counts, in whole milliseconds. Default: 10 s. Range: 5 s to 60 s.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// Sets how many retries each call allows. Default: 20 %.
    pub const fn ratio(mut self, ratio: Ratio) -> Self {
        self.settings.ratio = ratio;
        self
    }

    /// Sets how many retries per second all processes together are allowed in addition. Default: 10. Range: at most
    /// 1,000,000. With a ratio of 0 and a minimum of 0 there are no retries at all.
    pub const fn min_per_second(mut self, retries: u32) -> Self {
        self.settings.min_per_second = retries as u64;
        self
    }

    /// Creates the budget. It allows no retries until the store grants a lease, or until it uses its local share
    /// because there is none.
    ///
    /// # Errors
    /// Every problem at once: a target without a name or with one of more than 128 bytes; a ttl outside its range; a
    /// ratio above 1; a minimum outside its range. Then: the target has another window in this fleet, or the fleet has
    /// 64 guards.
    pub fn build(self) -> Result<SharedWindow, SettingsError> {
        let Self { fleet, namespace, target, settings } = self;
        let limits = SettingsError::of_guard(target, settings.limits(), SettingsProblem::of_window)?;
        let keys = window_keys(namespace, target, limits.ttl / 1_000);
        let handle = Registry::hold(fleet, WindowTarget::new(target, keys, limits))?;
        Ok(SharedWindow { handle })
    }
}
