use core::time::Duration;

use stagger_core::breaker::{BreakerSnapshot, BreakerState, CircuitBreaker, CircuitBreakerBuilder};
use stagger_core::{Breaker, BreakerOpen, Instant, Jitter, Outcome, Policy, Seed, guard::BreakerPermit};

use crate::laws::support::secs;

pub(super) const FAILED: Outcome = Outcome::TRANSIENT;

/// A breaker under test, and the time.
pub(super) struct Bench {
    pub(super) breaker: CircuitBreaker,
    pub(super) now: Instant,
}

impl Bench {
    /// Its clock does not begin at zero: a length of time must be told from a point in time.
    pub(super) fn new(builder: CircuitBreakerBuilder) -> Self {
        Self { breaker: builder.build().unwrap(), now: Instant::from_nanos(1_000_000_000_000) }
    }

    pub(super) fn after(&mut self, length: Duration) -> &mut Self {
        self.now = self.now.saturating_add(length);
        self
    }

    pub(super) fn admit(&self) -> Result<BreakerPermit, BreakerOpen> {
        self.breaker.admit(&self.now)
    }

    /// A pass, which there must be.
    pub(super) fn pass(&self) -> BreakerPermit {
        self.admit().expect("it should let a call pass")
    }

    /// How long it stays open, by its refusal, which there must be.
    pub(super) fn refused(&self) -> Duration {
        self.admit().expect_err("it should refuse").retry_in
    }

    pub(super) fn record(&self, pass: BreakerPermit, outcome: Outcome) {
        self.breaker.record(pass, &outcome, &self.now);
    }

    /// A call that takes no time.
    pub(super) fn call(&self, outcome: Outcome) {
        self.record(self.pass(), outcome);
    }

    pub(super) fn calls(&self, outcomes: impl IntoIterator<Item = Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.call(outcome));
    }

    /// A call that takes this long.
    pub(super) fn long_call(&mut self, length: Duration, outcome: Outcome) {
        let pass = self.pass();
        self.after(length).record(pass, outcome);
    }

    pub(super) fn state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub(super) fn snapshot(&self) -> BreakerSnapshot {
        self.breaker.snapshot(&self.now)
    }
}

/// Nothing set but the seed, and an open time of 5 s to the nanosecond.
pub(super) fn five_seconds() -> CircuitBreakerBuilder {
    CircuitBreaker::builder(Seed::new(7)).open(exactly(secs(5)))
}

pub(super) fn exactly(length: Duration) -> Policy {
    Policy::constant(length).jitter(Jitter::None).build().unwrap()
}
