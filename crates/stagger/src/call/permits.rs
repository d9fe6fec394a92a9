//! The permits of one call, which are settled even if the call is dropped.
//!
//! Permits are kept with the guards that granted them, so a call can be dropped in any state. A call without guards has
//! nothing to drop. Outside of calls, a waiting item of a queue holds permits in [`WaitingPermits`], and the machine of
//! a `ReconnectDriver` holds its own, which the driver settles when it is dropped.

use stagger_core::guard::{BudgetPermit, LimiterPermit, Permits};
use stagger_core::{Guards, Instant, NestedRetries, Outcome};

use crate::time::Clock;

/// The progress of an attempt, which decides how its permits are settled if the call ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitStage {
    /// There are no permits.
    Settled,
    /// The attempt is waiting: the permits are released.
    Waiting,
    /// The attempt is admitted but not started: the budget's permit is released, the breaker's is settled as cancelled.
    Admitted,
    /// The attempt is in progress: the permits are settled as cancelled.
    Attempting,
}

/// A source of guards, which granted a permit and settle it.
pub trait GuardSource {
    /// Returns the guards.
    fn guards(&self) -> Guards<'_>;
}

impl GuardSource for Guards<'_> {
    fn guards(&self) -> Guards<'_> {
        *self
    }
}

/// The permits that a call holds.
pub trait PermitSlot<X, C> {
    /// A slot without permits.
    const EMPTY: Self;

    /// Stores the permits of an attempt that has come this far.
    fn put(&mut self, permits: Permits, stage: PermitStage, nested: NestedRetries, options: &X, clock: &C);

    /// Takes the permits out, to settle them with the outcome of their attempt.
    fn take(&mut self) -> Permits;

    /// Returns whether there is no permit of a limiter.
    fn has_no_turn(&self) -> bool;

    /// Adds the permits of limiters that hold no calls, which need not be settled.
    fn add_turn(&mut self, turn: Permits);

    /// Records how far the attempt has come.
    fn set_stage(&mut self, stage: PermitStage);

    /// Settles the permits of an attempt that ends here.
    fn settle(&mut self);
}

/// The slot of a call that has no guards.
impl<X, C> PermitSlot<X, C> for () {
    const EMPTY: Self = ();

    #[inline]
    fn put(&mut self, _: Permits, _: PermitStage, _: NestedRetries, _: &X, _: &C) {}

    #[inline]
    fn take(&mut self) -> Permits {
        Permits::NONE
    }

    #[inline]
    fn has_no_turn(&self) -> bool {
        true
    }

    #[inline]
    fn add_turn(&mut self, _: Permits) {}

    #[inline]
    fn set_stage(&mut self, _: PermitStage) {}

    #[inline]
    fn settle(&mut self) {}
}

/// Permits with the guards that granted them. Dropping it settles an attempt that does not complete.
#[derive(Debug)]
pub struct HeldPermits<L: GuardSource, C: Clock> {
    /// Absent until the first permits; the clock times an attempt that is dropped in progress.
    guard_source: Option<(L, C)>,
    permits: Permits,
    stage: PermitStage,
    nested: NestedRetries,
}

impl<L: GuardSource, C: Clock> HeldPermits<L, C> {
    /// Holds nothing.
    pub(crate) const EMPTY: Self =
        Self { guard_source: None, permits: Permits::NONE, stage: PermitStage::Settled, nested: NestedRetries::Allow };

    /// Continues to hold the permits of an attempt that waited elsewhere.
    pub(crate) fn resume(mut waiting: WaitingPermits<L>, clock: C) -> Self {
        let permits = waiting.take();
        let guard_source = waiting.guard_source.take().map(|guard_source| (guard_source, clock));
        Self { guard_source, permits, stage: PermitStage::Waiting, nested: NestedRetries::Allow }
    }

    /// Hands over the permits of an attempt that waits elsewhere.
    pub(crate) fn into_waiting(mut self) -> WaitingPermits<L> {
        let mut permits = self.take();
        if let Some((guard_source, _)) = &self.guard_source {
            guard_source.guards().leave_pacer(&mut permits);
        }
        WaitingPermits::new(permits, self.guard_source.take().map(|(guard_source, _)| guard_source))
    }

    /// Stores the permits of an attempt that has come this far; `guard_source` is asked once.
    pub(crate) fn hold(
        &mut self,
        permits: Permits,
        stage: PermitStage,
        nested: NestedRetries,
        guard_source: impl FnOnce() -> Option<(L, C)>,
    ) {
        if self.guard_source.is_none() {
            self.guard_source = guard_source();
        }
        self.permits = permits;
        self.stage = stage;
        self.nested = nested;
    }

    /// Replaces the source of the guards, which grants more kinds of permits than before.
    #[cold]
    pub(crate) fn replace_guard_source(&mut self, guard_source: impl FnOnce() -> L) {
        if let Some((held, _)) = &mut self.guard_source {
            *held = guard_source();
        }
    }

    /// Takes the permits out, to settle them with the outcome of their attempt.
    #[inline]
    pub(crate) fn take(&mut self) -> Permits {
        if self.stage == PermitStage::Settled {
            return Permits::NONE;
        }
        self.stage = PermitStage::Settled;
        Permits::take(&mut self.permits)
    }

    /// Returns whether there is no permit of a limiter.
    #[inline]
    pub(crate) fn has_no_turn(&self) -> bool {
        self.stage == PermitStage::Settled || self.permits.has_no_turn()
    }

    /// Adds the permits of limiters that hold no calls, which need not be settled.
    #[inline]
    pub(crate) fn add_turn(&mut self, turn: Permits) {
        self.permits.add_turn(turn);
        if self.stage == PermitStage::Settled {
            self.stage = PermitStage::Waiting;
        }
    }

    /// Records how far the attempt has come. Does nothing if there are no permits.
    pub(crate) fn set_stage(&mut self, stage: PermitStage) {
        if self.stage != PermitStage::Settled {
            self.stage = stage;
        }
    }

    /// Settles the permits of an attempt that has completed, with its outcome.
    pub(crate) fn record(&mut self, outcome: &Outcome, now: Instant) {
        let permits = self.take();
        if let Some((guard_source, _)) = &self.guard_source {
            guard_source.guards().nested(self.nested).settle(permits, outcome, || now);
        }
    }

    /// Settles the permits of an attempt that ends here.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.stage != PermitStage::Settled {
            self.settle_by_stage();
        }
    }

    #[cold]
    fn settle_by_stage(&mut self) {
        let stage = self.stage;
        let permits = self.take();
        let Some((guard_source, clock)) = &self.guard_source else { return };
        let guards = guard_source.guards().nested(self.nested);
        match stage {
            PermitStage::Settled => {}
            PermitStage::Waiting => guards.release(permits),
            PermitStage::Admitted => guards.release_begun(permits, || clock.now()),
            PermitStage::Attempting => guards.abandon(permits, || clock.now()),
        }
    }
}

impl<L: GuardSource, C: Clock> Drop for HeldPermits<L, C> {
    #[inline]
    fn drop(&mut self) {
        self.settle();
    }
}

/// Permits of an attempt that waits elsewhere, in as little memory as possible: without a clock, which their release
/// does not need. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct WaitingPermits<L: GuardSource> {
    guard_source: Option<L>,
    budget: BudgetPermit,
    quiet: LimiterPermit,
}

impl<L: GuardSource> WaitingPermits<L> {
    /// Holds nothing.
    pub(crate) const EMPTY: Self = Self::new(Permits::NONE, None);

    /// Holds these permits, which `guard_source` granted.
    pub(crate) const fn new(permits: Permits, guard_source: Option<L>) -> Self {
        let (budget, quiet) = permits.into_waiting();
        Self { guard_source, budget, quiet }
    }

    /// Adds the permit of a quiet period, which `guard_source` granted.
    pub(crate) fn with_quiet(mut self, quiet: LimiterPermit, guard_source: impl FnOnce() -> L) -> Self {
        self.guard_source.get_or_insert_with(guard_source);
        self.quiet = quiet;
        self
    }

    fn take(&mut self) -> Permits {
        let budget = core::mem::replace(&mut self.budget, BudgetPermit::NONE);
        let quiet = core::mem::replace(&mut self.quiet, LimiterPermit::NONE);
        Permits::from_waiting(budget, quiet)
    }
}

impl<L: GuardSource> Drop for WaitingPermits<L> {
    fn drop(&mut self) {
        let permits = self.take();
        if let Some(guard_source) = &self.guard_source {
            guard_source.guards().release(permits);
        }
    }
}
