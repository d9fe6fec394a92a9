//! The permits of one call, which are settled even if the call is dropped.
//!
//! Permits are kept with the guards that granted them, so a call can be dropped in any state. A call without guards has
//! nothing to drop. Outside of calls, a waiting item of a queue holds permits in [`WaitingPermits`], and the machine of
//! a `ReconnectDriver` holds its own, which the driver settles when it is dropped.

use core::fmt;
use core::ops::Deref;

use stagger_core::guard::{End, Guard, MAX_GUARDS, Now, Permit, Permits};
use stagger_core::{Guards, NestedRetries};
#[cfg(feature = "hedge")]
use stagger_core::{Instant, Outcome};

use crate::time::Clock;

/// The progress of an attempt, which decides how its permits are settled if the call ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitStage {
    /// There are no permits.
    Settled,
    /// The attempt waits, or is about to start: the permits are given back.
    Waiting,
    /// The attempt is in progress: the permits are settled as cancelled.
    Attempting,
}

/// A source of guards, which granted a permit and settle it.
pub trait GuardSource {
    /// How its list holds a guard.
    type Guard: Deref<Target: Guard>;

    /// Returns the guards.
    fn guards(&self) -> Guards<'_, Self::Guard>;
}

/// The guards of one call, which borrows them.
#[derive(Clone, Copy)]
pub struct CallGuards<'p> {
    /// One more than may be: the call is then rejected.
    list: [&'p dyn Guard; MAX_GUARDS + 1],
    len: usize,
    pub(crate) nested: NestedRetries,
}

impl<'p> CallGuards<'p> {
    /// No guards. A call inside an attempt of another one does not retry.
    pub(crate) const NONE: Self = Self { list: [&NoGuard; MAX_GUARDS + 1], len: 0, nested: NestedRetries::Disable };

    /// Adds a guard behind the others.
    pub(crate) fn push(&mut self, guard: &'p dyn Guard) {
        if let Some(place) = self.list.get_mut(self.len) {
            *place = guard;
            self.len += 1;
        }
    }

    /// Adds these guards behind the others.
    #[cfg(feature = "hedge")]
    pub(crate) fn extend(&mut self, others: &Self) {
        for guard in others.list.iter().take(others.len) {
            self.push(*guard);
        }
    }
}

impl<'p> GuardSource for CallGuards<'p> {
    type Guard = &'p dyn Guard;

    #[inline]
    fn guards(&self) -> Guards<'_, &'p dyn Guard> {
        Guards::of(self.list.get(..self.len).unwrap_or_default()).nested(self.nested)
    }
}

impl fmt::Debug for CallGuards<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.guards().iter()).finish()
    }
}

/// Fills the places of a list that have no guard.
#[derive(Debug)]
struct NoGuard;

impl Guard for NoGuard {
    fn name(&self) -> &'static str {
        "none"
    }

    fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}
}

/// The permits that a call holds.
pub trait PermitSlot<X, C> {
    /// A slot without permits.
    const EMPTY: Self;

    /// Stores the permits of an attempt that has come this far.
    fn put(&mut self, permits: Permits, stage: PermitStage, nested: NestedRetries, options: &X, clock: &C);

    /// Takes the permits out, to settle them with the outcome of their attempt.
    fn take(&mut self) -> Permits;

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
    #[cfg(feature = "queue")]
    pub(crate) fn resume(mut waiting: WaitingPermits<L, C>) -> Self {
        let permits = waiting.take();
        let guard_source = waiting.guard_source.take();
        Self { guard_source, permits, stage: PermitStage::Waiting, nested: NestedRetries::Allow }
    }

    /// Hands over the permits of an attempt that waits elsewhere.
    #[cfg(feature = "queue")]
    pub(crate) fn into_waiting(mut self) -> WaitingPermits<L, C> {
        let permits = self.take();
        WaitingPermits::new(permits, self.guard_source.take())
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

    /// Records how far the attempt has come. Does nothing if there are no permits.
    pub(crate) fn set_stage(&mut self, stage: PermitStage) {
        if self.stage != PermitStage::Settled {
            self.stage = stage;
        }
    }

    /// Settles the permits of an attempt that has completed, with its outcome.
    #[cfg(feature = "hedge")]
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
            PermitStage::Waiting => guards.release(permits, || clock.now()),
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

/// Permits of an attempt that waits elsewhere. Dropping it gives them back.
#[cfg(feature = "queue")]
#[derive(Debug)]
pub(crate) struct WaitingPermits<L: GuardSource, C: Clock> {
    guard_source: Option<(L, C)>,
    permits: Permits,
}

#[cfg(feature = "queue")]
impl<L: GuardSource, C: Clock> WaitingPermits<L, C> {
    /// Holds nothing.
    pub(crate) const EMPTY: Self = Self::new(Permits::NONE, None);

    /// Holds these permits, which `guard_source` granted.
    pub(crate) const fn new(permits: Permits, guard_source: Option<(L, C)>) -> Self {
        Self { guard_source, permits }
    }

    fn take(&mut self) -> Permits {
        Permits::take(&mut self.permits)
    }
}

#[cfg(feature = "queue")]
impl<L: GuardSource, C: Clock> Drop for WaitingPermits<L, C> {
    fn drop(&mut self) {
        let permits = self.take();
        if let Some((guard_source, clock)) = &self.guard_source {
            guard_source.guards().release(permits, || clock.now());
        }
    }
}
