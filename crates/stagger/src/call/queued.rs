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
use crate::error::rejected::Rejected;
use crate::retrier::event::{EventError, Silent};
use crate::time::Clock;

/// The shortest and the longest wait before a queued item asks guards again that rejected it.
const SOONEST: Duration = Duration::from_millis(1);
const LATEST: Duration = Duration::from_secs(10);

/// What is left of a call while it waits in a queue: without a clock, a driver and options.
#[derive(Debug)]
pub(crate) struct QueuedCall<L: GuardSource, C: Clock> {
    pub(crate) state: RetryState,
    /// Zero until it is drawn.
    pub(crate) seed: Seed,
    pub(crate) permits: WaitingPermits<L, C>,
}

impl<L: GuardSource, C: Clock> QueuedCall<L, C> {
    /// A call that has not started.
    pub(crate) const FRESH: Self =
        Self { state: RetryState::new(), seed: Seed::new(0), permits: WaitingPermits::EMPTY };
}

impl<R: RetrierSource, C: Clock + Clone> Call<RetrierOptions<R>, C> {
    /// Continues a call that waited in a queue: its next attempt is due.
    pub(crate) fn resume(options: RetrierOptions<R>, clock: C, queued: QueuedCall<R, C>) -> Self {
        let QueuedCall { state, seed, permits } = queued;
        let permits = HeldPermits::resume(permits);
        let mut call = Self::new(options, clock);
        call.state = state;
        call.seed = seed;
        call.permits = permits;
        call.phase = Phase::Due;
        if seed != QueuedCall::<R, C>::FRESH.seed {
            call.flags |= SEEDED;
        }
        if state.attempt() == 0 && state.start().is_none() && call.is_timed() {
            call.state = RetryState::started(call.clock.now());
        }
        call
    }

    /// Decides what follows when a guard has rejected the attempt of a queued item: how long to wait before asking
    /// again. The retry is reserved again, since its permits were given back.
    ///
    /// # Errors
    /// The reason to stop, if the policy's time is over before, or no retry is left.
    pub(crate) fn ask_again(&mut self, stop: StopReason, rejected: Rejected) -> Result<Duration, StopReason> {
        let (StopReason::Guard(_), Some(retry_in)) = (stop, rejected.retry_in()) else { return Err(stop) };
        if stop == StopReason::TOO_MANY_GUARDS {
            return Err(stop);
        }
        // A breaker that an operator forces open does not know for how long.
        let after = retry_in.clamp(SOONEST, LATEST);
        let now = self.clock.now();
        let retry = RetryMachine::new(self.options.policy(), &mut self.state, self.seed);
        if let Some(latest) = retry.latest_start() {
            if latest < now.saturating_add(after) {
                return Err(stop);
            }
        }
        let permits = retry.reacquire(|| now, &self.options.guards())?;
        self.permits.put(permits, PermitStage::Waiting, NestedRetries::Allow, &self.options, &self.clock);
        Ok(after)
    }

    /// Takes the call apart, to wait in a queue.
    pub(crate) fn into_queued(self) -> QueuedCall<R, C> {
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
    /// The reason to stop, if a guard has no retry left.
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
