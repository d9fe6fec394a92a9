use super::guarding::Unguarded;
use super::limiting::{Limits, Unlimited};
use super::mode::{Bare, Explained};
use crate::event::Silent;
use crate::time::SystemEntropy;

/// The parts: who listens, which guards are asked, what limits an attempt, where the seed comes from, what the caller
/// gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<S = Silent, G = Unguarded, L = Unlimited, Y = SystemEntropy, M = Bare> {
    pub(crate) sink: S,
    pub(crate) guards: G,
    pub(crate) limits: L,
    pub(crate) entropy: Y,
    pub(crate) mode: M,
}

/// A setup whose call gives [`Error<E>`].
pub(crate) type Explaining<S, G, L, Y> = Setup<S, G, L, Y, Explained>;

impl<S, G, L, Y, M> Setup<S, G, L, Y, M> {
    pub(crate) fn with_sink<S2>(self, sink: S2) -> Setup<S2, G, L, Y, M> {
        Setup { sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    pub(crate) fn with_guards<G2>(self, guards: G2) -> Setup<S, G2, L, Y, M> {
        Setup { sink: self.sink, guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    /// Limited, which can end a call without an error of the operation's.
    pub(crate) fn limited(self, change: impl FnOnce(&mut Limits)) -> Setup<S, G, Limits, Y, Explained>
    where
        L: Into<Limits>,
    {
        let mut limits = self.limits.into();
        change(&mut limits);
        Setup { sink: self.sink, guards: self.guards, limits, entropy: self.entropy, mode: Explained }
    }

    pub(crate) fn with_entropy<Y2>(self, entropy: Y2) -> Setup<S, G, L, Y2, M> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy, mode: self.mode }
    }

    pub(crate) fn with_mode<M2>(self, mode: M2) -> Setup<S, G, L, Y, M2> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode }
    }
}
