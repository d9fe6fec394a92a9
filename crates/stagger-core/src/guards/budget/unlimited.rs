use crate::guards::guard::{Budget, BudgetPermit};
use crate::guards::now::Now;
use crate::outcome::{FailureKind, Outcome};

/// A budget without a bound: it grants every retry.
///
/// Use it behind a [`ControlledBudget`](super::ControlledBudget) if only the operator control should bound retries and
/// hedges. It costs nothing.
///
/// ```
/// use stagger_core::budget::{ControlledBudget, ControlMode, Unlimited};
/// use stagger_core::{Budget, Instant, FailureKind};
///
/// static RETRIES: ControlledBudget<Unlimited> = ControlledBudget::new(Unlimited);
///
/// assert!(RETRIES.try_acquire(FailureKind::Transient, &Instant::ZERO).is_some());
/// RETRIES.set(ControlMode::NoRetries);
/// assert!(RETRIES.try_acquire(FailureKind::Transient, &Instant::ZERO).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn try_acquire(&self, _: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        Some(BudgetPermit::NONE)
    }

    #[inline]
    fn record(&self, _: BudgetPermit, _: &Outcome, _: &dyn Now) {}

    fn release(&self, _: BudgetPermit) {}

    fn is_unlimited(&self) -> bool {
        true
    }

    fn is_at_rest(&self, _: &dyn Now) -> bool {
        true
    }

    fn needs_every_call(&self) -> bool {
        false
    }

    fn fresh(&self) -> Option<Self> {
        Some(Self)
    }
}
