use core::time::Duration;

use super::Times;
use crate::{
    DelaySource, Guards, Outcome, Policy, Seed, guard::Permits, machine::Decision, machine::RetryMachine,
    machine::RetryState, time::Clock, time::Entropy as _, time::SystemEntropy,
};

/// Tick times from a policy: a tick corresponds to an attempt, and the delay to the next tick to that of a retry.
#[derive(Clone, Debug)]
pub struct Scheduled<'p> {
    policy: &'p Policy,
    state: RetryState,
    seed: Seed,
}

impl<'p> Scheduled<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self { policy, state: RetryState::new(), seed: SystemEntropy.seed() }
    }

    pub(super) const fn with_seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    fn retry(&mut self) -> RetryMachine<'_> {
        RetryMachine::new(self.policy, &mut self.state, self.seed)
    }

    /// Counts a tick as an attempt. There is no guard that could reject it.
    fn begin(&mut self, clock: &impl Clock) {
        let _ = self.retry().begin(Permits::NONE, || clock.now(), &Guards::none());
    }
}

impl Times for Scheduled<'_> {
    fn first(&mut self, clock: &impl Clock, resolution: Duration) -> Duration {
        if self.policy.spread().is_zero() {
            return Duration::ZERO;
        }
        let mut retry = self.retry();
        let spread = retry.spread(|| clock.now());
        retry.on_ticks(spread, DelaySource::Spread, resolution)
    }

    fn ticked(&mut self, clock: &impl Clock) -> u64 {
        self.begin(clock);
        0
    }

    fn next(&mut self, clock: &impl Clock, resolution: Duration) -> Option<Duration> {
        let mut retry = self.retry();
        // A ticker does not know the result of the work; requesting the next tick corresponds to a failure.
        match retry.decide(Outcome::TRANSIENT, Permits::NONE, || clock.now(), &Guards::none()) {
            Decision::Retry { after, source, .. } => Some(retry.on_ticks(after, source, resolution)),
            _ => None,
        }
    }

    fn restart(&mut self, clock: &impl Clock) {
        self.state = RetryState::new();
        // New draws, so that it does not repeat the previous delays.
        self.seed = self.seed.for_call(0);
        self.begin(clock);
    }
}
