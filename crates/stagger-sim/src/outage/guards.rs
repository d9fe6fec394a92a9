use stagger_core::{Breaker, Budget, Guards};

/// The guards of one client process.
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
}

impl ProcessGuards {
    /// Creates guards without a budget or a breaker.
    pub const fn none() -> Self {
        Self { budget: None, breaker: None }
    }

    /// Sets the retry budget.
    pub fn budget(self, budget: impl Budget + 'static) -> Self {
        Self { budget: Some(Box::new(budget)), ..self }
    }

    /// Sets the circuit breaker.
    pub fn breaker(self, breaker: impl Breaker + 'static) -> Self {
        Self { breaker: Some(Box::new(breaker)), ..self }
    }

    pub(crate) fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none();
        guards.budget = self.budget.as_deref();
        guards.breaker = self.breaker.as_deref();
        guards
    }
}
