use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::error::SettingsProblem;
use crate::store::keys::Keys;
use stagger_lease::claim::Limits;
use stagger_lease::ledger::Ledger;

/// The most targets of one fleet: all are renewed by one call of the store.
const MOST_TARGETS: usize = 64;

/// One target of a fleet in this process.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: Box<str>,
    pub(crate) keys: Keys,
    pub(crate) limits: Limits,
    pub(crate) ledger: Ledger,
    /// What was left for all at the last reply, in millionths.
    pub(crate) left: AtomicI64,
}

/// What the handles and the task share.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    targets: Mutex<Vec<Registered>>,
    /// Wakes the task.
    pub(crate) wake: Notify,
    is_closed: AtomicBool,
    pub(crate) counts: Counts,
}

#[derive(Debug)]
struct Registered {
    target: Arc<Target>,
    lease: Weak<Held>,
}

/// What the task has counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) is_leased: AtomicBool,
    pub(crate) processes: AtomicU64,
    pub(crate) reports: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) losses: AtomicU64,
}

/// Keeps the task running. The last one to be dropped ends it.
#[derive(Debug)]
pub(crate) struct Alive(pub(crate) Arc<Registry>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }
}

/// A target that is in use. When the last one is dropped, its lease is handed back.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) target: Arc<Target>,
    pub(crate) alive: Arc<Alive>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.alive.0.wake.notify_one();
    }
}

impl Registry {
    /// Returns the lease of a target, which is created if it is new.
    pub(crate) fn hold(
        alive: &Arc<Alive>,
        name: &str,
        keys: Keys,
        limits: Limits,
    ) -> Result<Arc<Held>, SettingsProblem> {
        let registry = &alive.0;
        let mut targets = registry.targets.lock().unwrap_or_else(PoisonError::into_inner);
        for registered in targets.iter_mut().filter(|registered| *registered.target.name == *name) {
            let Some(held) = registered.lease.upgrade() else { continue };
            return if held.target.limits == limits { Ok(held) } else { Err(SettingsProblem::OtherLimits) };
        }
        if targets.len() >= MOST_TARGETS {
            return Err(SettingsProblem::TooManyTargets);
        }
        let target = Target { name: name.into(), keys, limits, ledger: Ledger::new(), left: AtomicI64::new(0) };
        let held = Arc::new(Held { target: Arc::new(target), alive: Arc::clone(alive) });
        targets.push(Registered { target: Arc::clone(&held.target), lease: Arc::downgrade(&held) });
        drop(targets);
        registry.wake.notify_one();
        Ok(held)
    }

    /// Calls `f` with each target, and whether it is still in use.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Arc<Target>, bool)) {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        for Registered { target, lease } in &*targets {
            f(target, lease.strong_count() > 0);
        }
    }

    /// Forgets a target whose lease was handed back.
    pub(crate) fn forget(&self, target: &Arc<Target>) {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.retain(|registered| !Arc::ptr_eq(&registered.target, target));
    }

    /// Returns whether nobody uses the fleet any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}
