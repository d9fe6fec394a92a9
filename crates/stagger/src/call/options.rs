//! What a call takes from its caller, and which parts of it there are at compile time.
//!
//! There are three sources: a policy alone, a retrier that the call owns or borrows, and [`Configured`] for one call.
//! Only the policy alone is told apart at compile time, because its call must stay at 64 bytes. Whether the others have
//! guards, limits or listeners is found out at run time.

use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::{Guard, Permits};
use stagger_core::machine::Strategy;
use stagger_core::{Guards, Instant, NestedRetries, Policy};

use super::permits::{CallGuards, GuardSource, HeldPermits, PermitSlot, PermitStage};
use crate::retrier::event::EventError;
use crate::retrier::limits::{IsLast, Limits, Sleepers};
use crate::retrier::shared::RetrierState;
use crate::time::Clock;
use crate::time::cancel::Cancel;

/// What a call takes from its caller: the policy, and optionally guards, limits, rules and listeners.
///
/// A policy alone has no options, and its call contains no code for them.
pub trait Options: Sized {
    /// Whether there is nothing but a policy.
    const PLAIN: bool;
    /// The source of the guards that grant the call's permits.
    type GuardSource: GuardSource;
    /// The permits of the call; zero-sized if there is nothing but a policy.
    type Permits<C: Clock + Clone>: PermitSlot<Self, C>;

    /// Returns the policy.
    fn policy(&self) -> &Policy;

    /// Returns the guards, and what the call does inside an attempt of another call.
    fn guards(&self) -> Guards<'_, <Self::GuardSource as GuardSource>::Guard>;

    /// Returns the source of the guards that grant the call's permits.
    fn guard_source(&self) -> Self::GuardSource;

    /// Returns whether there are no guards, and therefore no permits.
    #[inline]
    fn is_unguarded(&self) -> bool {
        self.guards().is_unguarded()
    }

    /// Returns the deadline of the call.
    fn deadline(&self) -> Option<Instant>;

    /// Returns the timeout of an attempt that is the last one allowed, or is not.
    fn timeout(&self, is_last: IsLast) -> Option<Duration>;

    /// Returns the retrier that the call is made through, if there is one.
    fn retrier(&self) -> Option<&RetrierState>;

    /// Returns the strategy that computes the delays, if there is one.
    #[inline]
    fn strategy(&self) -> Option<&dyn Strategy> {
        self.retrier()?.strategy.as_deref()
    }

    /// Returns the limit on sleeping threads, if there is one.
    #[inline]
    fn sleepers(&self) -> Option<&Arc<Sleepers>> {
        self.retrier()?.sleepers.as_ref()
    }

    /// Returns whether something other than a retrier's listener needs the elapsed time.
    fn is_timed(&self) -> bool;

    /// Returns the handle that cancels a blocking call, if there is one.
    #[inline]
    fn cancel(&self) -> Option<&Cancel> {
        None
    }
}

impl<X: Options, C: Clock + Clone> PermitSlot<X, C> for HeldPermits<X::GuardSource, C> {
    const EMPTY: Self = Self::EMPTY;

    #[inline]
    fn put(&mut self, permits: Permits, stage: PermitStage, nested: NestedRetries, options: &X, clock: &C) {
        if !options.is_unguarded() {
            self.hold(permits, stage, nested, || Some((options.guard_source(), clock.clone())));
        }
    }

    #[inline]
    fn take(&mut self) -> Permits {
        self.take()
    }

    #[inline]
    fn set_stage(&mut self, stage: PermitStage) {
        self.set_stage(stage);
    }

    #[inline]
    fn settle(&mut self) {
        self.settle();
    }
}

/// Options whose calls can be observed by a retrier's listeners if they fail with `E`.
pub trait Observed<E>: Options {
    /// Returns the error as the listeners receive it; `None` if there are no listeners.
    fn describe(error: &E) -> Option<&dyn EventError>;
}

impl Options for &Policy {
    const PLAIN: bool = true;
    type GuardSource = CallGuards<'static>;
    type Permits<C: Clock + Clone> = ();

    #[inline]
    fn policy(&self) -> &Policy {
        self
    }

    #[inline]
    fn guards(&self) -> Guards<'_, &'static dyn Guard> {
        Guards::of(&[]).nested(NestedRetries::Disable)
    }

    #[inline]
    fn guard_source(&self) -> CallGuards<'static> {
        CallGuards::NONE
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }

    #[inline]
    fn timeout(&self, _: IsLast) -> Option<Duration> {
        None
    }

    #[inline]
    fn retrier(&self) -> Option<&RetrierState> {
        None
    }

    #[inline]
    fn is_timed(&self) -> bool {
        false
    }
}

impl<E> Observed<E> for &Policy {
    fn describe(_: &E) -> Option<&dyn EventError> {
        None
    }
}

/// A retrier as the only source of options.
impl<'p> Options for &'p RetrierState {
    const PLAIN: bool = false;
    type GuardSource = &'p RetrierState;
    type Permits<C: Clock + Clone> = HeldPermits<&'p RetrierState, C>;

    #[inline]
    fn policy(&self) -> &Policy {
        &self.policy
    }

    #[inline]
    fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        RetrierState::guards(self)
    }

    #[inline]
    fn guard_source(&self) -> &'p RetrierState {
        self
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        None
    }

    #[inline]
    fn timeout(&self, is_last: IsLast) -> Option<Duration> {
        self.limits.timeout(is_last)
    }

    #[inline]
    fn retrier(&self) -> Option<&RetrierState> {
        Some(self)
    }

    #[inline]
    fn is_timed(&self) -> bool {
        true
    }
}

impl GuardSource for &RetrierState {
    type Guard = Arc<dyn Guard>;

    #[inline]
    fn guards(&self) -> Guards<'_, Arc<dyn Guard>> {
        RetrierState::guards(self)
    }
}

impl<E: EventError> Observed<E> for &RetrierState {
    fn describe(error: &E) -> Option<&dyn EventError> {
        Some(error)
    }
}

impl<'p> Configure<'p> for &'p RetrierState {
    fn configure(self) -> Configured<'p> {
        Configured::through(self)
    }
}

/// A policy, or a retrier, with options that were set for one call.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'p> {
    policy: &'p Policy,
    retrier: Option<&'p RetrierState>,
    pub(crate) guards: CallGuards<'p>,
    pub(crate) limits: Limits,
    pub(crate) cancel: Option<&'p Cancel>,
    pub(crate) is_timed: bool,
}

impl<'p> Configured<'p> {
    /// Takes every option from a retrier.
    pub(crate) fn through(retrier: &'p RetrierState) -> Self {
        Self {
            policy: &retrier.policy,
            retrier: Some(retrier),
            guards: retrier.call_guards(),
            limits: retrier.limits,
            cancel: None,
            is_timed: true,
        }
    }
}

/// Options that can be changed, before the call starts.
pub trait Configure<'p>: Options {
    /// Returns the options in the form that can be changed.
    fn configure(self) -> Configured<'p>;
}

impl<'p> Configure<'p> for &'p Policy {
    fn configure(self) -> Configured<'p> {
        Configured {
            policy: self,
            retrier: None,
            guards: CallGuards::NONE,
            limits: Limits::NONE,
            cancel: None,
            is_timed: false,
        }
    }
}

impl<'p> Configure<'p> for Configured<'p> {
    fn configure(self) -> Self {
        self
    }
}

impl<'p> Options for Configured<'p> {
    const PLAIN: bool = false;
    type GuardSource = CallGuards<'p>;
    type Permits<C: Clock + Clone> = HeldPermits<CallGuards<'p>, C>;

    #[inline]
    fn policy(&self) -> &Policy {
        self.policy
    }

    #[inline]
    fn guards(&self) -> Guards<'_, &'p dyn Guard> {
        self.guards.guards()
    }

    #[inline]
    fn guard_source(&self) -> CallGuards<'p> {
        self.guards
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.limits.deadline
    }

    #[inline]
    fn timeout(&self, is_last: IsLast) -> Option<Duration> {
        self.limits.timeout(is_last)
    }

    #[inline]
    fn retrier(&self) -> Option<&RetrierState> {
        self.retrier
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.is_timed
    }

    #[inline]
    fn cancel(&self) -> Option<&Cancel> {
        self.cancel
    }
}

impl<E: EventError> Observed<E> for Configured<'_> {
    fn describe(error: &E) -> Option<&dyn EventError> {
        Some(error)
    }
}
