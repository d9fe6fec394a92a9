//! The state shared by the clones of a retrier, and how a call accesses it.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

#[cfg(target_has_atomic = "64")]
use stagger_core::budget::{Controlled, RetryControl};
use stagger_core::guard::Guard;
use stagger_core::machine::{RetryPlan, Strategy};
use stagger_core::{Guards, NestedRetries, Outcome, Policy, Seed};

use super::event::Event;
use super::limits::{Limits, Sleepers};
use super::target::OwnGuard;
#[cfg(target_has_atomic = "64")]
use super::target::TargetGuards;
use crate::call::permits::CallGuards;
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
    /// The guards as they were given.
    pub(crate) own: Vec<OwnGuard>,
    /// The guards as they are asked: those that were given, under the operator control if there is one.
    pub(crate) guards: Vec<Arc<dyn Guard>>,
    pub(crate) nested: NestedRetries,
    #[cfg(target_has_atomic = "64")]
    pub(crate) control: Option<RetryControls>,
    pub(crate) rules: RuleSet,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) strategy: Option<Arc<dyn Strategy>>,
    pub(crate) limits: Limits,
    /// The limit on sleeping threads, if there is one.
    pub(crate) sleepers: Option<Arc<Sleepers>>,
    pub(crate) seed: Option<Seed>,
    /// The guards of targets, if the retrier can make guards for them.
    #[cfg(target_has_atomic = "64")]
    pub(crate) targets: Option<Arc<Keyed<String, TargetGuards>>>,
    /// Whether the guards of a target are created when a call to it fails, and not before.
    #[cfg(target_has_atomic = "64")]
    pub(crate) creates_targets_late: bool,
}

pub(crate) type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

impl fmt::Debug for RetrierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrier")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .field("guards", &self.guards)
            .finish_non_exhaustive()
    }
}

impl RetrierState {
    /// Returns the policy, with the strategy if there is one.
    pub(crate) fn plan(&self) -> RetryPlan<'_> {
        RetryPlan::from(&self.policy).strategy(self.strategy.as_deref())
    }

    /// Returns the guards, and what a call does inside an attempt of another call.
    #[inline]
    pub(crate) fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        Guards::of(&self.guards).nested(self.nested)
    }

    /// Returns the same for a call that may add guards of its own.
    pub(crate) fn call_guards(&self) -> CallGuards<'_> {
        let mut guards = CallGuards::NONE;
        guards.nested = self.nested;
        for guard in &self.guards {
            guards.push(&**guard);
        }
        guards
    }

    /// Brings the guards that are asked, and those of targets, up to date.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn refresh_guards(&mut self) {
        let given = self.own.iter().map(|own| Arc::clone(&own.guard));
        self.guards = under_control(given, self.control_of_name().as_ref());
        self.targets = self.new_targets();
        self.creates_targets_late = self.can_create_targets_late();
    }

    /// Brings the guards that are asked up to date.
    #[cfg(not(target_has_atomic = "64"))]
    pub(crate) fn refresh_guards(&mut self) {
        self.guards = self.own.iter().map(|own| Arc::clone(&own.guard)).collect();
    }

    /// Returns the operator control of the target of this retrier's name, if there is one.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn control_of_name(&self) -> Option<Arc<RetryControl>> {
        Some(self.control.as_ref()?.control(&self.name))
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

/// Puts guards under a control, if there is one: each of them, and the retries as a whole.
#[cfg(target_has_atomic = "64")]
pub(crate) fn under_control(
    guards: impl Iterator<Item = Arc<dyn Guard>>,
    control: Option<&Arc<RetryControl>>,
) -> Vec<Arc<dyn Guard>> {
    let Some(control) = control else { return guards.collect() };
    let controlled = guards.map(|guard| Arc::new(Controlled::new(guard, Arc::clone(control))) as Arc<dyn Guard>);
    controlled.chain([Arc::clone(control) as Arc<dyn Guard>]).collect()
}
