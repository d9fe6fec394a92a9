//! What a call brings along that borrows nothing: one hold on its retrier, for all that it wants of it.

use core::ops::Deref;
use core::time::Duration;
use std::sync::Arc;

use crate::event::{Event, EventError, Sink};
use crate::retrier::{Listeners, Rules, Shared};
use crate::scope::Inside;
use crate::setup::{Extras, Guarding, IsLast, Lender, Lent, Limiting as _, Limits, Listening, Stage};
use crate::{Clock, Entropy as _, Guards, Instant, Nested, Permit, Policy, Seed};

/// The guards, the listeners and the limits of a retrier.
#[derive(Debug)]
pub(crate) struct Own<C> {
    backed: Backed<C>,
    limits: Limits,
    /// Whether somebody besides the listeners asks for the time.
    pub(crate) is_timed: bool,
}

impl<C: Clock + Clone> Own<C> {
    pub(crate) const fn new(shared: Arc<Shared>, clock: C, limits: Limits) -> Self {
        Self { backed: Backed { shared, clock }, limits, is_timed: true }
    }

    pub(crate) fn rules(&self) -> Rules<&Shared> {
        Rules(&self.backed.shared)
    }

    fn listeners(&self) -> Listeners<&Shared> {
        Listeners(&self.backed.shared)
    }
}

impl<C: Clock + Clone> Extras for Own<C> {
    type Held = Lent<Backed<C>>;
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

    fn inside(&self) -> Inside {
        self.backed.inside()
    }

    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> Self::Held {
        self.backed.hold(permit, stage, nested)
    }

    fn deadline(&self) -> Option<Instant> {
        self.limits.deadline()
    }

    fn timeout(&self, last: IsLast) -> Option<Duration> {
        self.limits.timeout(last)
    }

    fn seed(&self) -> Seed {
        self.backed.shared.seeds().seed()
    }
}

impl<C> Listening for Own<C> {
    const LISTENS: bool = true;
}

impl<E: EventError, C: Clock + Clone> Sink<E> for Own<C> {
    fn target(&self) -> &str {
        self.backed.shared.name()
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

impl<C> Terms<Own<C>> for OfRetrier {
    fn policy<'a>(&'a self, own: &'a Own<C>) -> &'a Policy {
        own.backed.shared.policy()
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
pub(crate) struct Backed<C> {
    shared: Arc<Shared>,
    clock: C,
}

impl<C: Clock + Clone> Guarding for Backed<C> {
    type Held = Lent<Self>;

    fn guards(&self) -> Guards<'_> {
        self.shared.guards()
    }

    fn inside(&self) -> Inside {
        self.shared.inside()
    }

    fn hold(&self, permit: Permit, stage: Stage, nested: Nested) -> Lent<Self> {
        Lent::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone> Lender for Backed<C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}
