//! The state shared by the clones of a retrier, and how a call accesses it.

use core::any::Any;
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use crate::classify::RuleSet;
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
use crate::event::{Event, EventError, Sink};
use crate::marked::OperationError;
use crate::rule::Rule;
use crate::setup::{Limits, Listening};
use crate::{
    Breaker, Budget, Guards, Instant, NestedRetries, Outcome, Policy, Seed, time::Entropy, time::SystemEntropy,
};

/// The state shared by the clones of a retrier.
#[derive(Clone)]
pub struct Shared {
    pub(crate) policy: Policy,
    pub(crate) name: Arc<str>,
    pub(crate) budget: Option<Arc<dyn Budget>>,
    pub(crate) breaker: Option<Arc<dyn Breaker>>,
    pub(crate) nested: NestedRetries,
    #[cfg(target_has_atomic = "64")]
    pub(crate) control: Option<Controlled>,
    pub(crate) rules: RuleSet,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) limits: Limits,
    pub(crate) seeds: Seeds,
}

/// The controls of a retrier, and its budget under them.
#[cfg(target_has_atomic = "64")]
#[derive(Clone)]
pub(crate) struct Controlled {
    pub(crate) controls: RetryControls,
    pub(crate) budget: Arc<dyn Budget>,
}

pub(crate) type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrier")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .field("budget", &self.budget)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn limits_until(&self, deadline: Option<Instant>) -> Limits {
        Limits { deadline, ..self.limits }
    }

    pub(crate) const fn nested(&self) -> NestedRetries {
        self.nested
    }

    pub(crate) const fn seeds(&self) -> Seeds {
        self.seeds
    }

    pub(crate) fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none();
        guards.budget = self.budget.as_deref().map(|budget| budget as &dyn Budget);
        #[cfg(target_has_atomic = "64")]
        if let Some(controlled) = &self.control {
            guards.budget = Some(&*controlled.budget);
        }
        guards.breaker = self.breaker.as_deref().map(|breaker| breaker as &dyn Breaker);
        guards
    }
}

/// The rules of a retrier. Consulted only on failure.
#[derive(Clone, Copy)]
pub struct Rules<H>(pub(crate) H);

impl<H: Deref<Target = Shared>> fmt::Debug for Rules<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.rules.fmt(f)
    }
}

impl<H: Deref<Target = Shared>> Rules<H> {
    /// Returns the error's mark, or the outcome by a rule of this retrier, if one applies.
    pub(crate) fn explicit<E: OperationError + Any>(&self, error: &E) -> Option<Outcome> {
        error.mark().or_else(|| self.0.rules.explicit(error.as_any()))
    }
}

impl<E: OperationError + Any, H: Deref<Target = Shared>> Rule<E> for Rules<H> {
    fn outcome(&self, error: &E) -> Outcome {
        error.mark().unwrap_or_else(|| self.0.rules.outcome(error.as_any()))
    }
}

/// The listeners of a retrier.
#[derive(Clone, Copy)]
pub struct Listeners<H>(pub(crate) H);

impl<H: Deref<Target = Shared>> fmt::Debug for Listeners<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listeners({})", self.0.listeners.len())
    }
}

impl<H: Deref<Target = Shared>> Listeners<H> {
    pub(crate) fn has_listeners(&self) -> bool {
        !self.0.listeners.is_empty()
    }
}

impl<H> Listening for Listeners<H> {
    const LISTENS: bool = true;
}

impl<E: EventError, H: Deref<Target = Shared>> Sink<E> for Listeners<H> {
    fn target(&self) -> &str {
        &self.0.name
    }

    fn is_listening(&self) -> bool {
        self.has_listeners()
    }

    fn emit(&self, event: Event<'_>, error: Option<&E>) {
        let event = Event { error: error.map(|error| error as &dyn EventError), ..event };
        for listen in &self.0.listeners {
            listen(&event);
        }
    }
}

/// The fixed seed, or else the system's entropy.
#[derive(Clone, Copy, Debug)]
pub struct Seeds(pub(crate) Option<Seed>);

impl Entropy for Seeds {
    fn seed(&self) -> Seed {
        self.0.unwrap_or_else(|| SystemEntropy.seed())
    }
}
