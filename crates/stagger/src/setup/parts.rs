use super::guarding::Unguarded;
use super::limiting::{Limits, Unlimited};
use super::output::{Bare, Detailed};
use crate::event::Silent;
use crate::time::SystemEntropy;

/// The options of a call: listener, guards, time limits, source of seeds, and output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<S = Silent, G = Unguarded, L = Unlimited, Y = SystemEntropy, M = Bare> {
    pub(crate) sink: S,
    pub(crate) guards: G,
    pub(crate) limits: L,
    pub(crate) entropy: Y,
    pub(crate) mode: M,
}

/// A setup whose call returns [`Error<E>`].
pub(crate) type DetailedSetup<S, G, L, Y> = Setup<S, G, L, Y, Detailed>;

impl<S, G, L, Y, M> Setup<S, G, L, Y, M> {
    pub(crate) fn with_sink<S2>(self, sink: S2) -> Setup<S2, G, L, Y, M> {
        Setup { sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    pub(crate) fn with_guards<G2>(self, guards: G2) -> Setup<S, G2, L, Y, M> {
        Setup { sink: self.sink, guards, limits: self.limits, entropy: self.entropy, mode: self.mode }
    }

    /// Changes the time limits, which can end a call without an operation error.
    pub(crate) fn limited(self, change: impl FnOnce(&mut Limits)) -> Setup<S, G, Limits, Y, Detailed>
    where
        L: Into<Limits>,
    {
        let mut limits = self.limits.into();
        change(&mut limits);
        Setup { sink: self.sink, guards: self.guards, limits, entropy: self.entropy, mode: Detailed }
    }

    pub(crate) fn with_entropy<Y2>(self, entropy: Y2) -> Setup<S, G, L, Y2, M> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy, mode: self.mode }
    }

    pub(crate) fn with_mode<M2>(self, mode: M2) -> Setup<S, G, L, Y, M2> {
        Setup { sink: self.sink, guards: self.guards, limits: self.limits, entropy: self.entropy, mode }
    }
}
