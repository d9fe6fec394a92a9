use core::fmt;
use core::future::Future;
use std::sync::Arc;

use super::Pending;
use crate::scope::{self, Scoped};
use crate::{
    Breaker, Budget, Guards, Instant, Outcome, Policy, Seed, StopReason, guard::Permits, machine::Decision,
    machine::Paused, machine::RetryMachine, machine::RetryState, time::Clock,
};

/// What all jobs of a queue share.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) policy: Policy,
    pub(super) budget: Option<Arc<dyn Budget>>,
    pub(super) breaker: Option<Arc<dyn Breaker>>,
}

impl Terms {
    pub(super) fn guards(&self) -> Guards<'_> {
        let mut guards = Guards::none();
        guards.budget = self.budget.as_deref().map(|budget| budget as &dyn Budget);
        guards.breaker = self.breaker.as_deref().map(|breaker| breaker as &dyn Breaker);
        guards
    }
}

/// What a job remembers between two attempts, and what is lent for the next one.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) state: RetryState,
    pub(super) seed: Seed,
    pub(super) lent: Lent,
}

impl Course {
    pub(super) const fn new(terms: Arc<Terms>) -> Self {
        Self { state: RetryState::new(), seed: Seed::new(0), lent: Lent { permit: Permits::NONE, terms } }
    }

    /// Taken up again: what was given back for it is borrowed once more.
    pub(super) fn resumed(paused: Paused, terms: Arc<Terms>, now: Instant) -> Result<Self, StopReason> {
        let mut course = Self { state: paused.resume(now), seed: paused.seed(), ..Self::new(terms) };
        let (retry, _, guards) = course.parts();
        course.lent.permit = retry.borrow_again(|| now, &guards)?;
        Ok(course)
    }

    /// It at rest, with its item.
    pub(super) const fn pending<T>(&self, item: T, due: Instant, now: Instant) -> Pending<T> {
        Pending::new(item, due.saturating_since(now), self.state.pause(self.seed, now))
    }

    /// The machine that decides about this job, what was lent for it, and by whom.
    pub(super) fn parts(&mut self) -> (RetryMachine<'_>, Permits, Guards<'_>) {
        let Self { state, seed, lent: Lent { permit, terms } } = self;
        (RetryMachine::new(&terms.policy, state, *seed), Permits::take(permit), terms.guards())
    }
}

/// A permit for an attempt that waits, with those who lent it: dropped, it is given back to them.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) permit: Permits,
    pub(super) terms: Arc<Terms>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.terms.guards().release(Permits::take(&mut self.permit));
    }
}

/// An item whose attempt is to be made now: it has begun, its guards have been asked.
///
/// It ends in one of three ways: [`succeeded`](Self::succeeded); back into the queue with
/// [`RetryQueue::push_retry`](super::RetryQueue::push_retry); or dropped, which is an attempt that was cancelled, and
/// for which nobody is blamed. So it can be taken to another task, or dropped in a `select!`, and nothing is lost but
/// the item.
#[must_use = "an attempt that is dropped counts as cancelled"]
pub struct Job<T, S: Clock> {
    /// What the attempt is made with.
    pub item: T,
    pub(super) attempt: InAttempt<S>,
}

/// The part of a [`Job`] that settles what was borrowed, when it is dropped.
pub(super) struct InAttempt<S: Clock> {
    course: Course,
    clock: S,
    is_over: bool,
}

impl<T, S: Clock> Job<T, S> {
    pub(super) const fn new(item: T, course: Course, clock: S) -> Self {
        Self { item, attempt: InAttempt { course, clock, is_over: false } }
    }

    /// The number of the attempt, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.attempt.course.state.attempt()
    }

    /// Whether no other follows it if it fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.attempt.course.lent.terms.policy.max_attempts().is_some_and(|most| self.number() >= most.get())
    }

    /// Marks a future as this attempt, so that calls made in it stand down; see [`scope`](crate::scope).
    pub fn scoped<F: Future>(&self, attempt: F) -> Scoped<F> {
        scope::attempt(attempt, &self.attempt.course.lent.terms.policy)
    }

    /// It worked: tells the guards, and gives the item back.
    pub fn succeeded(mut self) -> T {
        // The decision after a success is that nothing is left to do, and no draw is made for it.
        let _ = self.attempt.decide(Outcome::Success, || Seed::new(0));
        self.item
    }
}

impl<S: Clock> InAttempt<S> {
    /// The attempt has come to its end: the decision, and what the job remembers from there on.
    pub(super) fn decide(&mut self, outcome: Outcome, seed: impl FnOnce() -> Seed) -> (Decision, Course) {
        self.is_over = true;
        // A call draws its seed at its first failure; one that succeeds needs none.
        if outcome != Outcome::Success && self.course.state.attempt() <= 1 {
            self.course.seed = seed();
        }
        let (mut retry, permit, guards) = self.course.parts();
        let mut decision = retry.decide(outcome, permit, || self.clock.now(), &guards);
        let mut course = Course::new(Arc::clone(&self.course.lent.terms));
        (course.state, course.seed) = (self.course.state, self.course.seed);
        if let Decision::Retry { permit, .. } = &mut decision {
            course.lent.permit = Permits::take(permit);
        }
        (decision, course)
    }
}

impl<S: Clock> Drop for InAttempt<S> {
    fn drop(&mut self) {
        if !self.is_over {
            let (_, permit, guards) = self.course.parts();
            guards.abandon(permit, || self.clock.now());
        }
    }
}

impl<T: fmt::Debug, S: Clock> fmt::Debug for Job<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("item", &self.item).field("number", &self.number()).finish_non_exhaustive()
    }
}
