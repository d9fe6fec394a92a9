//! What a call brings along that borrows nothing: one hold on its retrier, for all that it wants of it.

use core::borrow::Borrow;
use core::ops::Deref;
use core::time::Duration;

use crate::event::{Event, EventError, Sink};
use crate::setup::{Extras, Guarding, IsLast, Lender, Lent, Limiting as _, Limits, Listening, Stage};
use crate::shared::{Listeners, Rules, Shared};
use crate::{Guards, Instant, NestedRetries, Policy, Retrier, Seed, guard::Permits, time::Clock, time::Entropy as _};

/// The guards, the listeners and the limits of the retrier that `R` holds.
#[derive(Debug)]
pub(crate) struct Own<C, R> {
    backed: Backed<C, R>,
    limits: Limits,
    /// Whether somebody besides the listeners asks for the time.
    pub(crate) is_timed: bool,
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> Own<C, R> {
    pub(crate) fn new(retrier: R, clock: C, deadline: Option<Instant>) -> Self {
        let limits = retrier.borrow().shared().limits_until(deadline);
        Self { backed: Backed { retrier, clock }, limits, is_timed: true }
    }

    /// What holds the retrier.
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

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> Extras for Own<C, R> {
    type Held = Lent<Backed<C, R>>;
    type Kept<E> = Option<E>;
    const TIMED: bool = true;
    const LIMITS: bool = true;

    fn is_timed(&self) -> bool {
        self.is_timed || self.listeners().is_anybody()
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

    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Self::Held {
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

impl<C, R> Listening for Own<C, R> {
    const LISTENS: bool = true;
}

impl<E: EventError, C: Clock + Clone, R: Borrow<Retrier> + Clone> Sink<E> for Own<C, R> {
    fn target(&self) -> &str {
        self.backed.shared().name()
    }

    fn is_listening(&self) -> bool {
        self.listeners().is_anybody()
    }

    fn emit(&self, event: Event<'_>, error: Option<&E>) {
        self.listeners().emit(event, error);
    }
}

/// Where such a call finds its policy: with the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfRetrier;

impl<C, R: Borrow<Retrier>> Terms<Own<C, R>> for OfRetrier {
    fn policy<'a>(&'a self, own: &'a Own<C, R>) -> &'a Policy {
        own.backed.shared().policy()
    }
}

/// Where a call finds its policy.
pub(crate) trait Terms<X> {
    fn policy<'a>(&'a self, extras: &'a X) -> &'a Policy;
}

impl<X, P: Deref<Target = Policy>> Terms<X> for P {
    #[inline]
    fn policy<'a>(&'a self, _: &'a X) -> &'a Policy {
        self
    }
}

/// The guards, held by whoever has borrowed of them; the clock is for what is dropped in the middle of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Backed<C, R> {
    retrier: R,
    clock: C,
}

impl<C, R: Borrow<Retrier>> Backed<C, R> {
    fn shared(&self) -> &Shared {
        self.retrier.borrow().shared()
    }
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> Guarding for Backed<C, R> {
    type Held = Lent<Self>;

    fn guards(&self) -> Guards<'_> {
        self.shared().guards()
    }

    fn nested(&self) -> NestedRetries {
        self.shared().nested()
    }

    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Lent<Self> {
        Lent::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone, R: Borrow<Retrier> + Clone> Lender for Backed<C, R> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}
