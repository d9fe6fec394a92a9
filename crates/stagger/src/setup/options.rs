use core::time::Duration;

use super::guarding::{Guarding, PermitGuard, PermitStage};
use super::limiting::{IsLast, Limiting};
use super::output::{ErrorSlot, OutputMode};
use super::parts::Setup;
use crate::{Guards, Instant, NestedRetries, Seed, guard::Permits, time::Entropy};

/// The options of a call, as the state machine queries them.
pub trait CallOptions {
    /// The drop guard of a permit.
    type Guard: PermitGuard;
    /// Storage for the last error.
    type LastError<E>: ErrorSlot<E>;
    /// Whether the clock is read before the first attempt even if the policy does not need it, given
    /// [`is_timed`](Self::is_timed).
    const TIMED: bool;
    /// Whether an attempt can have a time limit.
    const LIMITS: bool;
    /// Whether no option is consulted before the first attempt.
    const PLAIN: bool = !Self::TIMED && !Self::LIMITS && size_of::<Self::Guard>() == 0;

    /// Returns whether the elapsed time will be needed.
    #[inline]
    fn is_timed(&self) -> bool {
        Self::TIMED
    }
    /// Returns whether, at run time, no option needs to be consulted before the first attempt.
    #[inline]
    fn is_plain(&self) -> bool {
        Self::PLAIN
    }
    /// Returns the guards.
    fn guards(&self) -> Guards<'_>;
    /// Returns what the call does inside an attempt of another call.
    fn nested(&self) -> NestedRetries;
    /// Stores a permit in a drop guard.
    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> Self::Guard;
    /// Returns the deadline of the call.
    fn deadline(&self) -> Option<Instant>;
    /// Returns the timeout of an attempt.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
    /// Returns a seed for the call.
    fn seed(&self) -> Seed;
}

/// Whether there can be a listener, whatever the error type.
pub trait Listening {
    /// Whether events are created at all.
    const LISTENS: bool;
}

impl<S: Listening, G: Guarding, L: Limiting, Y: Entropy, M: OutputMode> CallOptions for Setup<S, G, L, Y, M> {
    type Guard = G::Guard;
    type LastError<E> = M::LastError<E>;
    const TIMED: bool = M::TIMED || S::LISTENS;
    const LIMITS: bool = L::LIMITS;

    #[inline]
    fn guards(&self) -> Guards<'_> {
        self.guards.guards()
    }

    #[inline]
    fn nested(&self) -> NestedRetries {
        self.guards.nested()
    }

    #[inline]
    fn hold(&self, permit: Permits, stage: PermitStage, nested: NestedRetries) -> G::Guard {
        self.guards.hold(permit, stage, nested)
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.limits.deadline()
    }

    #[inline]
    fn timeout(&self, last: IsLast) -> Option<Duration> {
        self.limits.timeout(last)
    }

    #[inline]
    fn seed(&self) -> Seed {
        self.entropy.seed()
    }
}
