use core::time::Duration;

use super::guarding::{Guarding, Hold, Stage};
use super::limiting::{IsLast, Limiting};
use super::mode::{Keep, Mode};
use super::parts::Setup;
use crate::{Guards, Instant, NestedRetries, Seed, guard::Permits, time::Entropy};

/// Everything that a call asks its setup.
pub trait Extras {
    /// What holds a permit.
    type Held: Hold;
    /// Where the last error waits.
    type Kept<E>: Keep<E>;
    /// Whether the clock is read before attempt 1 whatever the policy says, if it [`is_timed`](Self::is_timed).
    const TIMED: bool;
    /// Whether an attempt can have a limit of time.
    const LIMITS: bool;
    /// Whether nothing at all is asked before the first attempt.
    const PLAIN: bool = !Self::TIMED && !Self::LIMITS && size_of::<Self::Held>() == 0;

    /// Whether anybody will ask how long the call has taken.
    #[inline]
    fn is_timed(&self) -> bool {
        Self::TIMED
    }
    /// Whether, as it happens, nothing at all is asked before the first attempt.
    #[inline]
    fn is_plain(&self) -> bool {
        Self::PLAIN
    }
    /// The guards.
    fn guards(&self) -> Guards<'_>;
    /// What the call does inside an attempt of another.
    fn nested(&self) -> NestedRetries;
    /// Holds a permit.
    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> Self::Held;
    /// When the call ends.
    fn deadline(&self) -> Option<Instant>;
    /// How long one attempt may take.
    fn timeout(&self, last: IsLast) -> Option<Duration>;
    /// A seed for the call.
    fn seed(&self) -> Seed;
}

/// Whether anybody listens, whatever the error.
pub trait Listening {
    /// Somebody does.
    const LISTENS: bool;
}

impl<S: Listening, G: Guarding, L: Limiting, Y: Entropy, M: Mode> Extras for Setup<S, G, L, Y, M> {
    type Held = G::Held;
    type Kept<E> = M::Kept<E>;
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
    fn hold(&self, permit: Permits, stage: Stage, nested: NestedRetries) -> G::Held {
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
