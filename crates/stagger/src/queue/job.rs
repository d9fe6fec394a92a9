use core::fmt;
use core::future::Future;
use std::sync::Arc;

use super::Pending;
use crate::scope::{self, Scoped};
use crate::{
    Breaker, Budget, Guards, Instant, Outcome, Policy, Seed, StopReason, guard::Permits, machine::Decision,
    machine::Paused, machine::RetryMachine, machine::RetryState, time::Clock,
};

/// The policy and guards shared by all jobs of a queue.
#[derive(Clone, Debug)]
pub(super) struct QueueSettings {
    pub(super) policy: Policy,
    pub(super) budget: Option<Arc<dyn Budget>>,
    pub(super) breaker: Option<Arc<dyn Breaker>>,
}

impl QueueSettings {
    pub(super) fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none();
        guards.budget = self.budget.as_deref().map(|budget| budget as &dyn Budget);
        guards.breaker = self.breaker.as_deref().map(|breaker| breaker as &dyn Breaker);
        guards
    }
}

/// The retry state of a queued item, and the permits for its next attempt.
#[derive(Debug)]
pub(super) struct ItemState {
    pub(super) retry: RetryState,
    pub(super) seed: Seed,
    pub(super) permits: HeldPermits,
}

impl ItemState {
    pub(super) const fn new(settings: Arc<QueueSettings>) -> Self {
        Self { retry: RetryState::new(), seed: Seed::new(0), permits: HeldPermits { permit: Permits::NONE, settings } }
    }

    /// Restores the state of a paused item, and acquires new permits in place of the released ones.
    pub(super) fn resumed(paused: Paused, settings: Arc<QueueSettings>, now: Instant) -> Result<Self, StopReason> {
        let mut state = Self { retry: paused.resume(now), seed: paused.seed(), ..Self::new(settings) };
        let (retry, _, guards) = state.parts();
        state.permits.permit = retry.reacquire(|| now, &guards)?;
        Ok(state)
    }

    /// Returns the state at rest, with its item.
    pub(super) const fn pending<T>(&self, item: T, due: Instant, now: Instant) -> Pending<T> {
        Pending::new(item, due.saturating_since(now), self.retry.pause(self.seed, now))
    }

    /// Returns the state machine of this item, its permits, and the guards that issued them.
    pub(super) fn parts(&mut self) -> (RetryMachine<'_>, Permits, Guards<'_>) {
        let Self { retry, seed, permits: HeldPermits { permit, settings } } = self;
        (RetryMachine::new(&settings.policy, retry, *seed), Permits::take(permit), settings.guards())
    }
}

/// The permits of a waiting attempt, with the guards that issued them; released on drop.
#[derive(Debug)]
pub(super) struct HeldPermits {
    pub(super) permit: Permits,
    pub(super) settings: Arc<QueueSettings>,
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        self.settings.guards().release(Permits::take(&mut self.permit));
    }
}

/// An item whose attempt is due. The guards have admitted it, and the attempt counts as made.
///
/// End it in one of three ways: call [`succeeded`](Self::succeeded); put it back with
/// [`RetryQueue::push_retry`](super::RetryQueue::push_retry); or drop it, which settles the attempt as cancelled and
/// counts neither for nor against the server. A job can therefore be moved to another task or dropped in a `select!`;
/// only the item is lost.
#[must_use = "an attempt that is dropped counts as cancelled"]
pub struct Job<T, S: Clock> {
    /// The item to make the attempt with.
    pub item: T,
    pub(super) attempt: JobGuard<S>,
}

/// The drop guard of a [`Job`]: settles its permits.
pub(super) struct JobGuard<S: Clock> {
    state: ItemState,
    clock: S,
    is_over: bool,
}

impl<T, S: Clock> Job<T, S> {
    pub(super) const fn new(item: T, state: ItemState, clock: S) -> Self {
        Self { item, attempt: JobGuard { state, clock, is_over: false } }
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.attempt.state.retry.attempt()
    }

    /// Returns whether no other attempt follows if this one fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.attempt.state.permits.settings.policy.max_attempts().is_some_and(|most| self.number() >= most.get())
    }

    /// Runs a future as this attempt, so that nested calls do not retry by default; see [`scope`](crate::scope).
    pub fn scoped<F: Future>(&self, attempt: F) -> Scoped<F> {
        scope::attempt(attempt, &self.attempt.state.permits.settings.policy)
    }

    /// Records the success with the guards, and returns the item.
    pub fn succeeded(mut self) -> T {
        // A success leaves nothing to decide, and draws nothing.
        let _ = self.attempt.decide(Outcome::Success, || Seed::new(0));
        self.item
    }
}

impl<S: Clock> JobGuard<S> {
    /// Ends the attempt. Returns the decision, and the state of the item from then on.
    pub(super) fn decide(&mut self, outcome: Outcome, seed: impl FnOnce() -> Seed) -> (Decision, ItemState) {
        self.is_over = true;
        // The seed is drawn at the first failure; a success does not need one.
        if outcome != Outcome::Success && self.state.retry.attempt() <= 1 {
            self.state.seed = seed();
        }
        let (mut retry, permit, guards) = self.state.parts();
        let mut decision = retry.decide(outcome, permit, || self.clock.now(), &guards);
        let mut state = ItemState::new(Arc::clone(&self.state.permits.settings));
        (state.retry, state.seed) = (self.state.retry, self.state.seed);
        if let Decision::Retry { permit, .. } = &mut decision {
            state.permits.permit = Permits::take(permit);
        }
        (decision, state)
    }
}

impl<S: Clock> Drop for JobGuard<S> {
    fn drop(&mut self) {
        if !self.is_over {
            let (_, permit, guards) = self.state.parts();
            guards.abandon(permit, || self.clock.now());
        }
    }
}

impl<T: fmt::Debug, S: Clock> fmt::Debug for Job<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("item", &self.item).field("number", &self.number()).finish_non_exhaustive()
    }
}
