//! The guards of one target among the many that a retrier calls.

use core::fmt;
use std::sync::Arc;

use stagger_core::guard::Now;
use stagger_core::{Breaker, Budget};

#[cfg(target_has_atomic = "64")]
use crate::retrier::quiet_keys::KeyQuiet;

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
        self.budget.as_ref().is_none_or(|budget| budget.is_at_rest(now))
            && self.breaker.as_ref().is_none_or(|breaker| breaker.is_at_rest(now))
    }
}

impl fmt::Debug for TargetGuards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetGuards").field("budget", &self.budget).field("breaker", &self.breaker).finish()
    }
}
