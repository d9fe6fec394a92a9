use crate::guard::Now;
use crate::{Budget, FailureKind, Loan, Outcome};

/// No bound at all: it lends whatever is asked for.
///
/// It stands behind a [`Lever`](super::Lever) where nothing else shall bound retries and hedges, and costs nothing.
///
/// ```
/// use stagger_core::budget::{Lever, Mode, Unlimited};
/// use stagger_core::{Budget, Instant, FailureKind};
///
/// static RETRIES: Lever<Unlimited> = Lever::new(Unlimited);
///
/// assert!(RETRIES.lend(FailureKind::Transient, &Instant::ZERO).is_some());
/// RETRIES.set(Mode::NoRetries);
/// assert!(RETRIES.lend(FailureKind::Transient, &Instant::ZERO).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn lend(&self, _: FailureKind, _: &dyn Now) -> Option<Loan> {
        Some(Loan::NOTHING)
    }

    #[inline]
    fn settle(&self, _: Loan, _: &Outcome, _: &dyn Now) {}

    fn give_back(&self, _: Loan) {}

    fn is_unlimited(&self) -> bool {
        true
    }
}
