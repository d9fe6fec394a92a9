//! The guards of one target among the many that a retrier calls.

use core::fmt;
use std::sync::Arc;

use stagger_core::guard::Now;
use stagger_core::{Breaker, Budget, Instant};

#[cfg(target_has_atomic = "64")]
use crate::control::keyed::Keyed;
#[cfg(target_has_atomic = "64")]
use crate::retrier::quiet_keys::KeyQuiet;
use crate::retrier::shared::RetrierState;

/// A budget of which a retrier can make more, for further targets.
pub(crate) trait BudgetModel: Send + Sync {
    /// Returns a new budget with the same settings, or `None` if the targets share this one.
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    fn fresh(&self) -> Option<Arc<dyn Budget>>;

    /// Returns whether a target's budget must be told of every call: see [`Budget::needs_every_call`].
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    fn needs_every_call(&self) -> bool;
}

impl<B: Budget + 'static> BudgetModel for B {
    fn fresh(&self) -> Option<Arc<dyn Budget>> {
        Some(Arc::new(Budget::fresh(self)?))
    }

    fn needs_every_call(&self) -> bool {
        Budget::needs_every_call(self)
    }
}

/// A breaker of which a retrier can make more, for further targets.
pub(crate) trait BreakerModel: Send + Sync {
    /// Returns a new breaker with the same settings, or `None` if the targets share this one.
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    fn fresh(&self) -> Option<Arc<dyn Breaker>>;
}

impl<B: Breaker + 'static> BreakerModel for B {
    fn fresh(&self) -> Option<Arc<dyn Breaker>> {
        Some(Arc::new(Breaker::fresh(self)?))
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

/// Whose quiet period a call asks.
#[derive(Clone, Debug)]
pub(crate) enum QuietTarget {
    /// The retrier's.
    Retrier,
    /// That of a key, of which the server has asked for no quiet as far as is known.
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "quiet periods by key need 64-bit atomics"))]
    Unasked,
    /// That of a key.
    #[cfg(target_has_atomic = "64")]
    Key(Arc<KeyQuiet>),
}

/// The guards of one target; those that are `None` are the retrier's.
#[derive(Default)]
pub(crate) struct TargetGuards {
    pub(crate) budget: Option<Arc<dyn Budget>>,
    pub(crate) breaker: Option<Arc<dyn Breaker>>,
}

impl TargetGuards {
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    pub(crate) fn is_at_rest(&self, now: &dyn Now) -> bool {
        let has_busy_budget = matches!(&self.budget, Some(budget) if !budget.is_at_rest(now));
        let has_busy_breaker = matches!(&self.breaker, Some(breaker) if !breaker.is_at_rest(now));
        !has_busy_budget && !has_busy_breaker
    }
}

impl fmt::Debug for TargetGuards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetGuards").field("budget", &self.budget).field("breaker", &self.breaker).finish()
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
    /// each target has a budget that need not be told of every call, and nothing else.
    pub(crate) fn can_create_targets_late(&self) -> bool {
        let (Some(_), Some(budget)) = (&self.targets, &self.budget_model) else { return false };
        self.breaker.is_none() && self.control.is_none() && !budget.needs_every_call()
    }

    /// Creates an empty table of targets, if there is a guard to make more of. They come under the control of the name.
    pub(crate) fn new_targets(&self) -> Option<Arc<Keyed<String, TargetGuards>>> {
        let budget = self.budget_model.clone().filter(|model| model.fresh().is_some());
        let breaker = self.breaker_model.clone().filter(|model| model.fresh().is_some());
        if budget.is_none() && breaker.is_none() {
            return None;
        }
        let name = Arc::clone(&self.name);
        let controls = self.control.as_ref().map(|control| control.controls.clone());
        let make = move || {
            let budget = budget.as_ref().and_then(|model| model.fresh());
            let breaker = breaker.as_ref().and_then(|model| model.fresh());
            let Some(controls) = &controls else { return TargetGuards { budget, breaker } };
            if let Some(breaker) = &breaker {
                controls.breaker(&name, breaker);
            }
            TargetGuards { budget: budget.map(|budget| controls.shared_budget(&name, budget)), breaker }
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
