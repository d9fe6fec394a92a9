use core::time::Duration;

use stagger_core::breaker::{BreakerSnapshot, BreakerState, CircuitBreaker, CircuitBreakerBuilder};
use stagger_core::guard::{Answer, End, Permit};
use stagger_core::{Guard, Instant, Jitter, Outcome, Policy, Seed};

use crate::laws::support::{Start, go, secs};

pub(super) const FAILED: Outcome = Outcome::TRANSIENT;

/// A breaker under test and the current time.
pub(super) struct Harness {
    pub(super) breaker: CircuitBreaker,
    pub(super) now: Instant,
}

impl Harness {
    /// The clock does not start at zero, so that a test notices if a duration and an instant are confused.
    pub(super) fn new(builder: CircuitBreakerBuilder) -> Self {
        Self { breaker: builder.build().unwrap(), now: Instant::from_nanos(1_000_000_000_000) }
    }

    pub(super) fn after(&mut self, length: Duration) -> &mut Self {
        self.now = self.now.saturating_add(length);
        self
    }

    pub(super) fn admit(&self) -> Answer {
        self.breaker.first(&self.now)
    }

    /// Returns a permit; panics if the breaker rejects.
    pub(super) fn permit(&self) -> Permit {
        go(self.admit())
    }

    /// Returns the `retry_in` of a rejection; panics if the breaker admits.
    pub(super) fn rejected(&self) -> Duration {
        match self.admit() {
            Answer::No { retry_in } => retry_in,
            answer => panic!("the breaker should reject: {answer:?}"),
        }
    }

    pub(super) fn record(&self, permit: Permit, outcome: Outcome) {
        self.breaker.settle(permit, End::Made(&outcome), &self.now);
    }

    /// Makes a call that takes no time.
    pub(super) fn call(&self, outcome: Outcome) {
        self.record(self.permit(), outcome);
    }

    pub(super) fn calls(&self, outcomes: impl IntoIterator<Item = Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.call(outcome));
    }

    /// Makes a call that takes `length`.
    pub(super) fn long_call(&mut self, length: Duration, outcome: Outcome) {
        let permit = self.permit();
        self.after(length).record(permit, outcome);
    }

    pub(super) fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub(super) fn snapshot(&self) -> BreakerSnapshot {
        self.breaker.snapshot(&self.now)
    }
}

/// Returns a builder with only a seed and an open time of exactly 5 s.
pub(super) fn five_seconds() -> CircuitBreakerBuilder {
    CircuitBreaker::builder(Seed::new(7)).open(exactly(secs(5)))
}

pub(super) fn exactly(length: Duration) -> Policy {
    Policy::constant(length).jitter(Jitter::None).build().unwrap()
}
