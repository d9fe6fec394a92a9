use std::sync::Arc;

use stagger_core::guard::Limiter;
use stagger_core::{Breaker, Budget, Guards};

use super::FleetBudget;

/// The guards of one client process.
///
/// A system of services asks its budget and its breaker; an outage and a mass disconnect ask all of them.
///
/// ```
/// use stagger_core::budget::Tokens;
/// use stagger_sim::outage::ProcessGuards;
///
/// let process = ProcessGuards::none().budget(Tokens::new());
/// # let _ = process;
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct ProcessGuards {
    budget: Option<Box<dyn Budget>>,
    breaker: Option<Box<dyn Breaker>>,
    quiet: Option<Box<dyn Limiter>>,
    pacer: Option<Box<dyn Limiter>>,
    /// A budget that the process shares with others.
    pub(super) shared: Option<Arc<dyn FleetBudget>>,
    /// Its part of that budget, in the course of a run.
    pub(super) share: Option<Arc<dyn Budget>>,
}

impl ProcessGuards {
    /// Creates guards of which there are none.
    pub const fn none() -> Self {
        Self { budget: None, breaker: None, quiet: None, pacer: None, shared: None, share: None }
    }

    /// Sets the retry budget.
    pub fn budget(self, budget: impl Budget + 'static) -> Self {
        Self { budget: Some(Box::new(budget)), ..self }
    }

    /// Sets the circuit breaker.
    pub fn breaker(self, breaker: impl Breaker + 'static) -> Self {
        Self { breaker: Some(Box::new(breaker)), ..self }
    }

    /// Sets the quiet period, such as [`QuietPeriod`](stagger_core::quiet::QuietPeriod): when the server asks for it, all calls of
    /// the process wait.
    pub fn quiet(self, quiet: impl Limiter + 'static) -> Self {
        Self { quiet: Some(Box::new(quiet)), ..self }
    }

    /// Sets the pacer, such as [`Pacer`](stagger_core::pacer::Pacer): when the server refuses calls, attempts start at the rate that
    /// it admits.
    pub fn pacer(self, pacer: impl Limiter + 'static) -> Self {
        Self { pacer: Some(Box::new(pacer)), ..self }
    }

    /// Sets a budget that the process shares with all others that have one. It takes the place of a budget of its own. All
    /// processes have the same settings.
    pub fn shared(self, budget: impl FleetBudget + 'static) -> Self {
        Self { shared: Some(Arc::new(budget)), ..self }
    }

    /// Returns the budget and the breaker, as [`RetryMachine`](stagger_core::machine::RetryMachine) takes them.
    #[must_use]
    pub fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none();
        guards.budget = self.budget.as_deref();
        guards.breaker = self.breaker.as_deref();
        guards
    }

    /// Returns all guards.
    #[inline]
    pub(crate) fn all(&self) -> Guards<'_> {
        let mut guards = self.guards();
        guards.quiet = self.quiet.as_deref();
        guards.pacer = self.pacer.as_deref();
        if let Some(share) = &self.share {
            guards.budget = Some(&**share);
        }
        guards
    }

    /// Returns whether calls may wait for their turn.
    pub(crate) const fn has_limiter(&self) -> bool {
        self.quiet.is_some() || self.pacer.is_some()
    }
}
