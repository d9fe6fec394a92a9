//! The state shared by the clones of a retrier, and how a call accesses it.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

#[cfg(not(target_has_atomic = "64"))]
use stagger_core::Instant;
use stagger_core::guard::Limiter;
#[cfg(not(target_has_atomic = "64"))]
use stagger_core::guard::LimiterPermit;
use stagger_core::machine::{RetryPlan, Strategy};
use stagger_core::{Breaker, Budget, Guards, NestedRetries, Outcome, Policy, Seed};

use super::event::Event;
use super::limits::{Limits, Sleepers};
#[cfg(target_has_atomic = "64")]
use super::quiet_keys::QuietKeys;
#[cfg(target_has_atomic = "64")]
use super::target::TargetGuards;
use super::target::{BreakerModel, BudgetModel};
use crate::classify::marked::OperationError;
use crate::classify::rule::RuleSet;
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
#[cfg(target_has_atomic = "64")]
use crate::control::keyed::Keyed;

/// The state shared by the clones of a retrier.
#[derive(Clone)]
pub struct RetrierState {
    pub(crate) policy: Policy,
    pub(crate) name: Arc<str>,
    pub(crate) budget: Option<Arc<dyn Budget>>,
    pub(crate) breaker: Option<Arc<dyn Breaker>>,
    pub(crate) quiet: Option<Arc<dyn Limiter>>,
    /// The same quiet period, if it is known to be one of the core's.
    pub(crate) known_quiet: Option<Arc<KnownQuiet>>,
    /// The same once more, if there is no other guard. [`note_lone_quiet`](Self::note_lone_quiet) keeps it up to date.
    pub(crate) lone_quiet: Option<Arc<KnownQuiet>>,
    /// The quiet periods of the keys of a client, unless all share one.
    #[cfg(target_has_atomic = "64")]
    pub(crate) quiet_keys: Option<Arc<QuietKeys>>,
    pub(crate) pacer: Option<Arc<dyn Limiter>>,
    pub(crate) nested: NestedRetries,
    #[cfg(target_has_atomic = "64")]
    pub(crate) control: Option<Controlled>,
    pub(crate) rules: RuleSet,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) strategy: Option<Arc<dyn Strategy>>,
    pub(crate) limits: Limits,
    /// The limit on sleeping threads, if there is one.
    pub(crate) sleepers: Option<Arc<Sleepers>>,
    pub(crate) seed: Option<Seed>,
    /// The budget that was given by value.
    pub(crate) budget_model: Option<Arc<dyn BudgetModel>>,
    /// The breaker that was given by value.
    pub(crate) breaker_model: Option<Arc<dyn BreakerModel>>,
    /// The guards of targets, if the retrier can make guards for them.
    #[cfg(target_has_atomic = "64")]
    pub(crate) targets: Option<Arc<Keyed<String, TargetGuards>>>,
    /// Whether the guards of a target are created when a call to it fails, and not before.
    #[cfg(target_has_atomic = "64")]
    pub(crate) creates_targets_late: bool,
}

/// The controls of a retrier, and its budget under them.
#[cfg(target_has_atomic = "64")]
#[derive(Clone)]
pub(crate) struct Controlled {
    pub(crate) controls: RetryControls,
    pub(crate) budget: Arc<dyn Budget>,
}

pub(crate) type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

impl fmt::Debug for RetrierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrier")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .field("budget", &self.budget)
            .field("breaker", &self.breaker)
            .field("quiet", &self.quiet)
            .field("pacer", &self.pacer)
            .finish_non_exhaustive()
    }
}

impl RetrierState {
    /// Returns the policy, with the strategy if there is one.
    pub(crate) fn plan(&self) -> RetryPlan<'_> {
        RetryPlan::from(&self.policy).strategy(self.strategy.as_deref())
    }

    /// Returns the guards, and what a call does inside an attempt of another call.
    pub(crate) fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none().nested(self.nested);
        guards.budget = self.budget.as_deref().map(|budget| budget as &dyn Budget);
        #[cfg(target_has_atomic = "64")]
        if let Some(controlled) = &self.control {
            guards.budget = Some(&*controlled.budget);
        }
        guards.breaker = self.breaker.as_deref().map(|breaker| breaker as &dyn Breaker);
        guards.quiet = self.quiet();
        guards.pacer = self.pacer();
        guards
    }

    /// Returns the quiet period, if it is known to be one of the core's and there is no other guard.
    #[inline]
    pub(crate) fn lone_quiet(&self) -> Option<&KnownQuiet> {
        self.lone_quiet.as_deref()
    }

    /// Finds out whether the quiet period is the only guard, once for all calls.
    pub(crate) fn note_lone_quiet(&mut self) {
        let guards = self.guards();
        let is_lone = guards.has_only_limiters() && guards.pacer.is_none();
        self.lone_quiet = if is_lone { self.known_quiet.clone() } else { None };
    }

    /// Returns the quiet period.
    pub(crate) fn quiet(&self) -> Option<&dyn Limiter> {
        self.quiet.as_deref().map(|quiet| quiet as &dyn Limiter)
    }

    /// Returns the pacer.
    pub(crate) fn pacer(&self) -> Option<&dyn Limiter> {
        self.pacer.as_deref().map(|pacer| pacer as &dyn Limiter)
    }

    /// Returns whether there are listeners, which need the elapsed time.
    pub(crate) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Passes an event to the listeners, under the retrier's name. The event is not created if there are none.
    pub(crate) fn emit<'e>(&'e self, event: impl FnOnce() -> Event<'e>) {
        if !self.has_listeners() {
            return;
        }
        let event = Event { target: &self.name, rules: Some(&self.rules), ..event() };
        for listen in &self.listeners {
            listen(&event);
        }
    }

    /// Returns the error's mark, or the outcome by a rule of this retrier, if one applies.
    pub(crate) fn explicit<E: OperationError + Any>(&self, error: &E) -> Option<Outcome> {
        match error.mark() {
            Some(mark) => Some(mark),
            None => self.rules.explicit(error.as_any()),
        }
    }
}

/// A quiet period that is known by its type.
#[cfg(target_has_atomic = "64")]
pub(crate) type KnownQuiet = stagger_core::quiet::QuietPeriod;

/// A quiet period of a target without 64-bit atomics: there is none.
#[cfg(not(target_has_atomic = "64"))]
#[derive(Debug)]
pub(crate) enum KnownQuiet {}

#[cfg(not(target_has_atomic = "64"))]
impl KnownQuiet {
    pub(crate) const fn admit_if_open(&self) -> Option<LimiterPermit> {
        match *self {}
    }

    pub(crate) fn record_success(&self, _: LimiterPermit, _: Option<Instant>, _: impl FnOnce() -> Instant) {
        match *self {}
    }
}
