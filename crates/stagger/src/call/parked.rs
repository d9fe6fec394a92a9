//! Calls that wait elsewhere, in a queue.

use stagger_core::machine::RetryState;
use stagger_core::{Outcome, Seed};

use super::machine::{Call, Phase, SEEDED};
use super::options::{RetrierSource, Through};
use super::permits::{GuardSource, HeldPermits, WaitingPermits};
use crate::classify::marked::OperationError;
use crate::classify::rule::{BuiltIn, Rule};
use crate::time::Clock;

/// What is left of a call while it waits elsewhere, in a queue.
#[derive(Debug)]
pub(crate) struct Parked<L: GuardSource> {
    pub(crate) state: RetryState,
    /// Zero until it is drawn.
    pub(crate) seed: Seed,
    pub(crate) permits: WaitingPermits<L>,
}

impl<L: GuardSource> Parked<L> {
    /// A call that has not started.
    pub(crate) const FRESH: Self =
        Self { state: RetryState::new(), seed: Seed::new(0), permits: WaitingPermits::EMPTY };
}

impl<R: RetrierSource, C: Clock + Clone> Call<Through<R>, C> {
    /// Continues a call that waited elsewhere: its next attempt is due.
    pub(crate) fn resume(options: Through<R>, clock: C, parked: Parked<R>) -> Self {
        let Parked { state, seed, permits } = parked;
        let permits = HeldPermits::resume(permits, clock.clone());
        let mut call = Self::new(options, clock);
        call.state = state;
        call.seed = seed;
        call.permits = permits;
        call.phase = Phase::Due;
        if seed != Parked::<R>::FRESH.seed {
            call.flags |= SEEDED;
        }
        if state.attempt() == 0 && state.start().is_none() && call.is_timed() {
            call.state = RetryState::started(call.clock.now());
        }
        call
    }

    /// Takes the call apart, to wait elsewhere.
    pub(crate) fn park(self) -> Parked<R> {
        Parked { state: self.state, seed: self.seed, permits: self.permits.park() }
    }

    /// Sets the seed if it has not been drawn.
    pub(crate) fn seed_with(&mut self, seed: impl FnOnce() -> Seed) {
        if self.flags & SEEDED == 0 {
            self.seed = seed();
            self.flags |= SEEDED;
        }
    }

    /// Returns the state of the retries, and the seed.
    pub(crate) const fn state(&self) -> (RetryState, Seed) {
        (self.state, self.seed)
    }

    /// Classifies an error by the rules of the retrier, or the built-in rules.
    pub(crate) fn classify<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        BuiltIn.outcome(error, self.rules())
    }
}
