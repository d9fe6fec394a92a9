use crate::{Guards, Instant, NestedRetries, guard::Permits, time::Clock};

/// The guards of a call.
pub trait Guarding {
    /// The drop guard of a permit; zero-sized if there are no guards.
    type Guard: PermitGuard;

    /// Returns the guards.
    fn guards(&self) -> Guards<'_>;

    /// Returns what the call does inside an attempt of another call.
    fn nested(&self) -> NestedRetries {
        NestedRetries::Disable
    }

    /// Stores the permit of an attempt that is waiting or in progress in a drop guard.
    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> Self::Guard;
}

/// The progress of an attempt, which decides how its permit is settled if the call is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitStage {
    /// The attempt is waiting: the permit is released.
    Waiting,
    /// The attempt is admitted but not started: the budget permit is released, the breaker permit is settled as
    /// cancelled.
    Admitted,
    /// The attempt is in progress: it is settled as cancelled.
    Attempting,
}

/// The drop guard of a permit: dropping it settles the permit.
pub trait PermitGuard {
    /// A guard without a permit.
    const EMPTY: Self;

    /// Takes the permit out, leaving the guard empty.
    fn take(&mut self) -> Permits;

    /// Records how far the attempt has come.
    fn set_stage(&mut self, stage: PermitStage);
}

/// A call without guards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl Guarding for Unguarded {
    type Guard = ();

    #[inline]
    fn guards(&self) -> Guards<'_> {
        Guards::none()
    }

    #[inline]
    fn hold(&self, _: Permits, _: PermitStage, _: NestedRetries) {}
}

impl PermitGuard for () {
    const EMPTY: Self = ();

    #[inline]
    fn take(&mut self) -> Permits {
        Permits::NONE
    }

    #[inline]
    fn set_stage(&mut self, _: PermitStage) {}
}

/// The guards of a call; the clock times an attempt that is dropped in progress.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<'g, C> {
    pub(crate) guards: Guards<'g>,
    pub(crate) nested: NestedRetries,
    pub(crate) clock: C,
}

impl<C: Clock + Clone> Guarding for Guarded<'_, C> {
    type Guard = HeldPermits<Self>;

    fn guards(&self) -> Guards<'_> {
        self.guards
    }

    fn nested(&self) -> NestedRetries {
        self.nested
    }

    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> HeldPermits<Self> {
        HeldPermits::new(self, permit, stage, nested)
    }
}

impl<C: Clock + Clone> PermitIssuer for Guarded<'_, C> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

/// Guards that a permit's drop guard can keep.
pub trait PermitIssuer: Guarding + Clone {
    /// Returns the current instant, for a permit that is dropped while its attempt is in progress.
    fn now(&self) -> Instant;
}

/// A permit, with the guards that issued it.
#[derive(Debug)]
pub struct HeldPermits<I: PermitIssuer> {
    issuer: Option<I>,
    permit: Permits,
    stage: PermitStage,
    nested: NestedRetries,
}

impl<I: PermitIssuer> HeldPermits<I> {
    /// Creates a drop guard. Issuers without a budget or breaker have nothing to settle, and are not kept.
    pub(crate) fn new(issuer: &I, permit: Permits, stage: PermitStage, nested: NestedRetries) -> Self {
        let issuer = if issuer.guards().is_unguarded() { None } else { Some(issuer.clone()) };
        Self { issuer, permit, stage, nested }
    }
}

impl<I: PermitIssuer> PermitGuard for HeldPermits<I> {
    const EMPTY: Self =
        Self { issuer: None, permit: Permits::NONE, stage: PermitStage::Waiting, nested: NestedRetries::Allow };

    fn take(&mut self) -> Permits {
        self.issuer = None;
        Permits::take(&mut self.permit)
    }

    fn set_stage(&mut self, stage: PermitStage) {
        self.stage = stage;
    }
}

impl<I: PermitIssuer> Drop for HeldPermits<I> {
    fn drop(&mut self) {
        let Some(issuer) = self.issuer.take() else { return };
        let (guards, permit) = (issuer.guards().nested(self.nested), Permits::take(&mut self.permit));
        match self.stage {
            PermitStage::Waiting => guards.release(permit),
            PermitStage::Admitted => guards.release_begun(permit, || issuer.now()),
            PermitStage::Attempting => guards.abandon(permit, || issuer.now()),
        }
    }
}
