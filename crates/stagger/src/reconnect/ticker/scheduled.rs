use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guards, Instant, Outcome, Seed, StopReason};

use super::times::Times;
use crate::retrier::event::{Action, Event};
use crate::retrier::handle::Retrier;
use crate::time::{Clock, entropy};

/// Tick times from a policy: a tick corresponds to an attempt, and the delay to the next tick to that of a retry.
#[derive(Clone, Debug)]
pub struct Scheduled {
    retrier: Retrier,
    state: RetryState,
    seed: Seed,
}

impl Scheduled {
    pub(super) fn new(retrier: Retrier) -> Self {
        let seed = retrier.shared().seed.unwrap_or_else(entropy::seed);
        Self { retrier, state: RetryState::new(), seed }
    }

    fn retry(&mut self) -> RetryMachine<'_> {
        let strategy = self.retrier.shared().strategy.as_deref();
        RetryMachine::new(self.retrier.policy(), &mut self.state, self.seed).strategy(strategy)
    }

    /// Counts a tick as an attempt. There is no guard that could reject it.
    fn begin(&mut self, clock: &impl Clock) {
        if self.retrier.shared().has_listeners() && self.state.attempt() == 0 {
            self.state = RetryState::started(clock.now());
        }
        let _ = self.retry().begin(Permits::NONE, || clock.now(), &Guards::none());
    }

    fn emit(&self, clock: &impl Clock, action: Action) {
        self.retrier.shared().emit(|| Event {
            target: "",
            attempt: self.state.attempt(),
            max_attempts: self.retrier.policy().max_attempts(),
            elapsed: self.state.start().map_or(Duration::ZERO, |start| clock.now().saturating_since(start)),
            budget_left: None,
            action,
            error: None,
            retry_in: None,
            unreachable: None,
            rules: None,
        });
    }
}

impl Times for Scheduled {
    fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    fn first(&mut self, clock: &impl Clock, resolution: Duration) -> Duration {
        if self.retrier.policy().spread().is_zero() {
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
        let (action, delay) = match retry.decide(Outcome::TRANSIENT, Permits::NONE, || clock.now(), &Guards::none()) {
            Decision::Retry { after, source, .. } => {
                (Action::Retry { after, source }, Some(retry.on_ticks(after, source, resolution)))
            }
            Decision::Stop(stop) => (Action::Stop(stop), None),
            _ => (Action::Stop(StopReason::Exhausted), None),
        };
        self.emit(clock, action);
        delay
    }

    fn overslept(&mut self, end: Instant, now: Instant) -> Option<Duration> {
        self.retry().spread_again(now.saturating_since(end), now)
    }

    fn restart(&mut self, clock: &impl Clock) {
        self.state = RetryState::new();
        // New draws, so that it does not repeat the previous delays.
        self.seed = self.seed.for_call(0);
        self.begin(clock);
    }
}
