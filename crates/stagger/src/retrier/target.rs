//! The guards of one target among the many that a retrier calls.

use core::fmt;
use std::sync::Arc;

use stagger_core::guard::Now;
use stagger_core::{Breaker, Budget};

/// A budget of which a retrier can make more, for further targets.
pub(crate) trait BudgetModel: Send + Sync {
    /// Returns a new budget with the same settings, or `None` if the targets share this one.
    #[cfg_attr(not(target_has_atomic = "64"), allow(dead_code, reason = "guards by target need 64-bit atomics"))]
    fn fresh(&self) -> Option<Arc<dyn Budget>>;
}

impl<B: Budget + 'static> BudgetModel for B {
    fn fresh(&self) -> Option<Arc<dyn Budget>> {
        Some(Arc::new(Budget::fresh(self)?))
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
