use crate::{Guards, Instant, NestedRetries, guard::Permits, time::Clock};

/// Which guards are asked.
pub trait Guarding {
    /// What holds a permit between two steps; nothing, if nothing is ever lent.
    type Held: Hold;

    /// The guards.
    fn guards(&self) -> Guards<'_>;

    /// What the call does inside an attempt of another.
    fn nested(&self) -> NestedRetries {
        NestedRetries::Disable
    }

    /// Holds a permit for an attempt that is not yet made, or is being made.
    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Self::Held;
}

/// What happens to a permit whose call is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The attempt is not yet made: the permit is given back.
    Waiting,
    /// The attempt is let in, and not yet made: the permit is given back, and the breaker's pass is settled as cancelled.
    LetIn,
    /// The attempt is being made: it is settled as cancelled.
    Attempting,
}

/// What holds a permit. Dropping it settles what is in it.
pub trait Hold {
    /// With nothing in it.
    const EMPTY: Self;

    /// Takes the permit out.
    fn take(&mut self) -> Permits;

    /// The attempt has come to this stage.
    fn stands_at(&mut self, stage: Stage);
}

/// Nothing is asked.
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

/// These guards are asked; the clock is for what is dropped in the middle of an attempt.
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

/// Guards that can be kept beside a permit.
pub trait Lender: Guarding + Clone {
    /// The time, for a permit that is dropped in the middle of an attempt.
    fn now(&self) -> Instant;
}

/// A permit with those who lent it.
#[derive(Debug)]
pub struct Lent<L: Lender> {
    lender: Option<L>,
    permit: Permits,
    stage: Stage,
    nested: NestedRetries,
}

impl<L: Lender> Lent<L> {
    /// Those who have lent nothing, and hear of nothing, are not kept.
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
