//! Calls that wait in a queue, and not in their driver.

use core::time::Duration;

use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::{NestedRetries, Outcome, Seed, StopReason};

use super::machine::{Call, Next, Phase, SEEDED};
use super::options::{Observed, Options};
use super::permits::{GuardSource, HeldPermits, PermitSlot, PermitStage, WaitingPermits};
use super::retrier_options::{RetrierOptions, RetrierSource};
use crate::classify::marked::OperationError;
use crate::classify::rule::{BuiltIn, Rule};
use crate::retrier::event::{EventError, Silent};
use crate::time::Clock;

/// What is left of a call while it waits in a queue: without a clock, a driver and options.
#[derive(Debug)]
pub(crate) struct QueuedCall<L: GuardSource> {
    pub(crate) state: RetryState,
    /// Zero until it is drawn.
    pub(crate) seed: Seed,
    pub(crate) permits: WaitingPermits<L>,
}

impl<L: GuardSource> QueuedCall<L> {
    /// A call that has not started.
    pub(crate) const FRESH: Self =
        Self { state: RetryState::new(), seed: Seed::new(0), permits: WaitingPermits::EMPTY };
}

impl<R: RetrierSource, C: Clock + Clone> Call<RetrierOptions<R>, C> {
    /// Continues a call that waited in a queue: its next attempt is due.
    pub(crate) fn resume(options: RetrierOptions<R>, clock: C, queued: QueuedCall<R>) -> Self {
        let QueuedCall { state, seed, permits } = queued;
        let permits = HeldPermits::resume(permits, clock.clone());
        let mut call = Self::new(options, clock);
        call.state = state;
        call.seed = seed;
        call.permits = permits;
        call.phase = Phase::Due;
        if seed != QueuedCall::<R>::FRESH.seed {
            call.flags |= SEEDED;
        }
        if state.attempt() == 0 && state.start().is_none() && call.is_timed() {
            call.state = RetryState::started(call.clock.now());
        }
        call
    }

    /// Takes the call apart, to wait in a queue.
    pub(crate) fn into_queued(self) -> QueuedCall<R> {
        QueuedCall { state: self.state, seed: self.seed, permits: self.permits.into_waiting() }
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

    /// Decides about an attempt that was not made with this call: another layer has settled its permits, or they were
    /// lost with its process.
    pub(crate) fn failed_elsewhere<E: EventError>(
        &mut self,
        outcome: Outcome,
        error: Option<&E>,
        resolution: Duration,
    ) -> Next {
        // A queued item is not nested, even if it was pushed inside an attempt of another call.
        let nested = NestedRetries::Allow;
        let clock = &self.clock;
        let guards = self.options.guards().nested(nested);
        let mut retry =
            RetryMachine::new(self.options.policy(), &mut self.state, self.seed).strategy(self.options.strategy());
        let decision = retry.decide_unrecorded(outcome, || clock.now(), &guards);
        let next = Next::after(&decision, &retry, resolution);
        self.follow(&Silent, decision, nested, next, error.and_then(<RetrierOptions<R> as Observed<E>>::describe))
    }

    /// Makes the first attempt of this call a retry, for a call that repeats what other calls have attempted.
    ///
    /// # Errors
    /// The reason to stop, if the budget rejects it.
    pub(crate) fn begin_as_retry(&mut self) -> Result<(), StopReason> {
        self.state = self.state.as_retry();
        let clock = &self.clock;
        let retry = RetryMachine::new(self.options.policy(), &mut self.state, self.seed);
        let permits = retry.reacquire(|| clock.now(), &self.options.guards())?;
        self.permits.put(permits, PermitStage::Waiting, NestedRetries::Allow, &self.options, &self.clock);
        Ok(())
    }

    /// Classifies an error by the rules of the retrier, or the built-in rules.
    pub(crate) fn classify<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        BuiltIn.outcome(error, self.rules())
    }
}
