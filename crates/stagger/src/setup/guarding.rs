use crate::{Guards, Instant, NestedRetries, guard::Permits, time::Clock};

/// The guards of a call.
pub trait Guarding {
    /// The drop guard of a permit; zero-sized if there are no guards.
    type Held: Hold;

    /// Returns the guards.
    fn guards(&self) -> Guards<'_>;

    /// Returns what the call does inside an attempt of another call.
    fn nested(&self) -> NestedRetries {
        NestedRetries::Disable
    }

    /// Stores the permit of an attempt that is waiting or in progress in a drop guard.
    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Self::Held;
}

/// How a permit is settled if its call is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The attempt is waiting: the permit is released.
    Waiting,
    /// The attempt is admitted but not started: the budget permit is released, the breaker permit is settled as
    /// cancelled.
    LetIn,
    /// The attempt is in progress: it is settled as cancelled.
    Attempting,
}

/// The drop guard of a permit: dropping it settles the permit.
pub trait Hold {
    /// A guard without a permit.
    const EMPTY: Self;

    /// Takes the permit out, leaving the guard empty.
    fn take(&mut self) -> Permits;

    /// Records how far the attempt has come.
    fn stands_at(&mut self, stage: Stage);
}

/// A call without guards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Guarding for Unguarded {
    type Held = ();

    #[inline]
    fn guards(&self) -> Guards<'_> {
        Guards::none()
    }

    #[inline]
    fn hold(&self, _: Permits, _: Stage, _: NestedRetries) {}
}

impl Hold for () {
    const EMPTY: Self = ();

    #[inline]
    fn take(&mut self) -> Permits {
        Permits::NONE
    }

    #[inline]
    fn stands_at(&mut self, _: Stage) {}
}

/// The guards of a call; the clock times an attempt that is dropped in progress.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<'g, C> {
    pub(crate) guards: Guards<'g>,
    pub(crate) nested: NestedRetries,
    pub(crate) clock: C,
}

impl<C: Clock + Clone> Guarding for Guarded<'_, C> {
    type Held = Lent<Self>;

    fn guards(&self) -> Guards<'_> {
        self.guards
    }

    fn nested(&self) -> NestedRetries {
        self.nested
    }

    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Lent<Self> {
        Lent::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone> Lender for Guarded<'_, C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// Guards that a permit's drop guard can keep.
pub trait Lender: Guarding + Clone {
    /// Returns the current instant, for a permit that is dropped while its attempt is in progress.
    fn now(&self) -> Instant;
}

/// A permit, with the guards that issued it.
#[derive(Debug)]
pub struct Lent<L: Lender> {
    lender: Option<L>,
    permit: Permits,
    stage: Stage,
    nested: NestedRetries,
}

impl<L: Lender> Lent<L> {
    /// Creates a drop guard. Issuers without a budget or breaker have nothing to settle, and are not kept.
    pub(crate) fn new(lender: &L, permit: Permits, stage: Stage, nested: NestedRetries) -> Self {
        let lender = if lender.guards().is_unguarded() { None } else { Some(lender.clone()) };
        Self { lender, permit, stage, nested }
    }
}

impl<L: Lender> Hold for Lent<L> {
    const EMPTY: Self =
        Self { lender: None, permit: Permits::NONE, stage: Stage::Waiting, nested: NestedRetries::Allow };

    fn take(&mut self) -> Permits {
        self.lender = None;
        Permits::take(&mut self.permit)
    }

    fn stands_at(&mut self, stage: Stage) {
        self.stage = stage;
    }
}

impl<L: Lender> Drop for Lent<L> {
    fn drop(&mut self) {
        let Some(lender) = self.lender.take() else { return };
        let (guards, permit) = (lender.guards().nested(self.nested), Permits::take(&mut self.permit));
        match self.stage {
            Stage::Waiting => guards.release(permit),
            Stage::LetIn => guards.release_begun(permit, || lender.now()),
            Stage::Attempting => guards.abandon(permit, || lender.now()),
        }
    }
}
