//! The options of a call that borrows nothing: one reference to its retrier provides them all.

use core::borrow::Borrow;
use core::ops::Deref;
use core::time::Duration;

use crate::event::{Event, EventError, Sink};
use crate::setup::{
    CallOptions, Guarding, HeldPermits, IsLast, Limiting as _, Limits, Listening, PermitIssuer, PermitStage,
};
use crate::shared::{Listeners, Rules, Shared};
use crate::{Guards, Instant, NestedRetries, Policy, Retrier, Seed, guard::Permits, time::Clock, time::Entropy as _};

/// The guards, listeners and limits of the retrier that `R` refers to.
#[derive(Debug)]
pub(crate) struct RetrierOptions<C, R> {
    backed: RetrierGuards<C, R>,
    limits: Limits,
    /// Whether something other than a listener needs the elapsed time.
    pub(crate) is_timed: bool,
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> RetrierOptions<C, R> {
    pub(crate) fn new(retrier: R, clock: C, deadline: Option<Instant>) -> Self {
        let limits = retrier.borrow().shared().limits_until(deadline);
        Self { backed: RetrierGuards { retrier, clock }, limits, is_timed: true }
    }

    /// Returns the reference to the retrier.
    pub(crate) const fn retrier(&self) -> &R {
        &self.backed.retrier
    }

    pub(crate) fn rules(&self) -> Rules<&Shared> {
        Rules(self.backed.shared())
    }

    fn listeners(&self) -> Listeners<&Shared> {
        Listeners(self.backed.shared())
    }
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> CallOptions for RetrierOptions<C, R> {
    type Guard = HeldPermits<RetrierGuards<C, R>>;
    type LastError<E> = Option<E>;
    const TIMED: bool = true;
    const LIMITS: bool = true;

    fn is_timed(&self) -> bool {
        self.is_timed || self.listeners().has_listeners()
    }

    fn is_plain(&self) -> bool {
        !self.is_timed() && self.limits.are_none() && self.guards().is_unguarded()
    }

    fn guards(&self) -> Guards<'_> {
        self.backed.guards()
    }

    fn nested(&self) -> NestedRetries {
        self.backed.nested()
    }

    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> Self::Guard {
        self.backed.hold(permit, stage, nested)
    }

    fn deadline(&self) -> Option<Instant> {
        self.limits.deadline()
    }

    fn timeout(&self, last: IsLast) -> Option<Duration> {
        self.limits.timeout(last)
    }

    fn seed(&self) -> Seed {
        self.backed.shared().seeds().seed()
    }
}

impl<C, R> Listening for RetrierOptions<C, R> {
    const LISTENS: bool = true;
}

impl<E: EventError, C: Clock + Clone, R: Borrow<Retrier> + Clone> Sink<E> for RetrierOptions<C, R> {
    fn target(&self) -> &str {
        self.backed.shared().name()
    }

    fn is_listening(&self) -> bool {
        self.listeners().has_listeners()
    }

    fn emit(&self, event: Event<'_>, error: Option<&E>) {
        self.listeners().emit(event, error);
    }
}

/// The policy of the call's retrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetrierPolicy;

impl<C, R: Borrow<Retrier>> PolicySource<RetrierOptions<C, R>> for RetrierPolicy {
    fn policy<'a>(&'a self, options: &'a RetrierOptions<C, R>) -> &'a Policy {
        options.backed.shared().policy()
    }
}

/// The source of a call's policy.
pub(crate) trait PolicySource<X> {
    fn policy<'a>(&'a self, options: &'a X) -> &'a Policy;
}

impl<X, P: Deref<Target = Policy>> PolicySource<X> for P {
    #[inline]
    fn policy<'a>(&'a self, _: &'a X) -> &'a Policy {
        self
    }
}

/// The guards of a retrier, kept by a permit's drop guard; the clock times an attempt that is dropped in progress.
#[derive(Clone, Debug)]
pub(crate) struct RetrierGuards<C, R> {
    retrier: R,
    clock: C,
}

impl<C, R: Borrow<Retrier>> RetrierGuards<C, R> {
    fn shared(&self) -> &Shared {
        self.retrier.borrow().shared()
    }
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> Guarding for RetrierGuards<C, R> {
    type Guard = HeldPermits<Self>;

    fn guards(&self) -> Guards<'_> {
        self.shared().guards()
    }

    fn nested(&self) -> NestedRetries {
        self.shared().nested()
    }

    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> HeldPermits<Self> {
        HeldPermits::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> PermitIssuer for RetrierGuards<C, R> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}
