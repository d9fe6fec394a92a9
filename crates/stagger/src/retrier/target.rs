//! The guards of one target among the many that a retrier calls.

use core::fmt;
use std::sync::Arc;

use stagger_core::Instant;
use stagger_core::guard::{Guard, Now};

#[cfg(target_has_atomic = "64")]
use crate::control::keyed::Keyed;
use crate::retrier::shared::{RetrierState, under_control};

/// A guard of a retrier, and how to make more of it.
#[derive(Clone)]
pub(crate) struct OwnGuard {
    pub(crate) guard: Arc<dyn Guard>,
    /// The guard again if it was given by value, so that further targets get their own.
    pub(crate) model: Option<Arc<dyn GuardModel>>,
}

/// A guard of which a retrier can make more, for further targets.
pub(crate) trait GuardModel: Send + Sync {
    /// Returns a new guard with the same settings, or `None` if the targets share this one.
    fn fresh(&self) -> Option<Arc<dyn Guard>>;
}

impl<G: Guard + 'static> GuardModel for G {
    fn fresh(&self) -> Option<Arc<dyn Guard>> {
        Some(Arc::new(Guard::fresh(self)?))
    }
}

impl OwnGuard {
    /// Returns a guard for another target: a new one with the same settings, or the same if there can be no other.
    pub(crate) fn for_target(&self) -> Arc<dyn Guard> {
        let fresh = self.model.as_ref().and_then(|model| model.fresh());
        fresh.unwrap_or_else(|| Arc::clone(&self.guard))
    }

    /// Returns whether further targets get guards of their own.
    pub(crate) fn is_by_target(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.fresh().is_some())
    }
}

/// Whose guards a call uses.
#[derive(Clone, Debug)]
pub(crate) enum CallTarget {
    /// The retrier's.
    Retrier,
    /// Those of a target that is named only if they have something to remember. Until then there are none.
    Late,
    /// Those of a target that was named at the start of the call.
    Named(Arc<TargetGuards>),
    /// Those of a target that was named late. They are removed when they are at rest again.
    NamedLate(Arc<TargetGuards>),
}

/// The guards of one target, in the order of the retrier's.
#[derive(Default)]
pub(crate) struct TargetGuards {
    pub(crate) guards: Vec<Arc<dyn Guard>>,
}

impl TargetGuards {
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    pub(crate) fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.guards.iter().all(|guard| guard.is_at_rest(now))
    }
}

impl fmt::Debug for TargetGuards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.guards).finish()
    }
}

/// The table of targets.
#[cfg(target_has_atomic = "64")]
impl RetrierState {
    /// Returns the guards of this target, if the retrier makes guards for each.
    #[inline]
    pub(crate) fn target<D: fmt::Display>(
        &self,
        name: impl FnOnce() -> D,
        now: impl FnOnce() -> Instant,
    ) -> Option<Arc<TargetGuards>> {
        let targets = self.targets.as_ref()?;
        Some(targets.of(&*key(&name()), now()))
    }

    /// Returns whether the guards of a target are created when a call to it fails. Listeners are told how many retries
    /// are left, so with listeners they are there from the start.
    #[inline]
    pub(crate) fn creates_targets_late(&self) -> bool {
        self.creates_targets_late && !self.has_listeners()
    }

    /// Returns the guards of the target of this name that an earlier call created, if there are any.
    #[inline]
    pub(crate) fn known_target<D: fmt::Display>(
        &self,
        name: impl FnOnce() -> D,
        now: impl FnOnce() -> Instant,
    ) -> Option<Arc<TargetGuards>> {
        let targets = self.targets.as_ref()?;
        if targets.is_empty() { None } else { targets.find(&*key(&name()), now()) }
    }

    /// Removes guards of targets that have nothing to remember and that no call holds.
    #[cold]
    pub(crate) fn sweep_targets(&self, now: Instant) {
        if let Some(targets) = &self.targets {
            targets.sweep(now);
        }
    }

    /// Returns whether a target's guards can be created late, once it has failed: the table of targets is there, and
    /// none of the guards need be told of every call.
    pub(crate) fn can_create_targets_late(&self) -> bool {
        self.targets.is_some() && self.control.is_none() && !self.own.iter().any(|own| own.guard.needs_every_call())
    }

    /// Creates an empty table of targets, if there is a guard to make more of. They come under the control of the name.
    pub(crate) fn new_targets(&self) -> Option<Arc<Keyed<String, TargetGuards>>> {
        if !self.own.iter().any(OwnGuard::is_by_target) {
            return None;
        }
        let (own, control) = (self.own.clone(), self.control_of_name());
        let make = move || {
            let guards = own.iter().map(OwnGuard::for_target);
            TargetGuards { guards: under_control(guards, control.as_ref()) }
        };
        Some(Arc::new(Keyed::new(make, TargetGuards::is_at_rest)))
    }
}

/// The table of targets needs 64-bit atomics: without them there are no guards by target.
#[cfg(not(target_has_atomic = "64"))]
impl RetrierState {
    pub(crate) fn target<D: fmt::Display>(
        &self,
        _: impl FnOnce() -> D,
        _: impl FnOnce() -> Instant,
    ) -> Option<Arc<TargetGuards>> {
        None
    }

    pub(crate) const fn creates_targets_late(&self) -> bool {
        false
    }

    pub(crate) fn known_target<D: fmt::Display>(
        &self,
        _: impl FnOnce() -> D,
        _: impl FnOnce() -> Instant,
    ) -> Option<Arc<TargetGuards>> {
        None
    }

    pub(crate) const fn sweep_targets(&self, _: Instant) {}
}

/// Room for most targets, so that writing one allocates once.
#[cfg(target_has_atomic = "64")]
const KEY_CAPACITY: usize = 64;

/// Writes the name of a target.
#[cfg(target_has_atomic = "64")]
fn key(target: &impl fmt::Display) -> String {
    let mut key = String::with_capacity(KEY_CAPACITY);
    // Writing to a string does not fail.
    let _ = fmt::Write::write_fmt(&mut key, format_args!("{target}"));
    key
}
