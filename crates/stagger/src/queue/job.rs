//! One attempt of an item of a queue, and how an item ends without success.

use core::error::Error;
use core::fmt;
use core::future::Future;
use core::time::Duration;

use stagger_core::{Outcome, StopReason};

use super::restore::Pending;
use crate::call::machine::Call;
use crate::call::queued::QueuedCall;
use crate::call::retrier_options::RetrierOptions;
use crate::call::scope::{self, Scoped};
use crate::classify::marked::OperationError;
use crate::retrier::event::Silent;
use crate::retrier::handle::Retrier;
use crate::time::Clock;

/// The retry state of a queued item, and the permits for its next attempt, which are released when it is dropped.
pub(super) type ItemState<S> = QueuedCall<Retrier, S>;

/// The call of an item.
pub(super) type ItemCall<S> = Call<RetrierOptions<Retrier>, S>;

/// An item whose attempt is due. The guards have admitted it, and the attempt counts as made.
///
/// End it in one of three ways: call [`succeeded`](Self::succeeded); put it back with
/// [`RetryQueue::push_retry`](super::RetryQueue::push_retry) or
/// [`RetryQueue::push_failed`](super::RetryQueue::push_failed); or drop it, which settles the attempt as cancelled and
/// counts neither for nor against the server. A job can therefore be moved to another task or dropped in a `select!`;
/// only the item is lost.
#[must_use = "an attempt that is dropped counts as cancelled"]
pub struct Job<T, S: Clock + Clone> {
    /// The item to make the attempt with.
    pub item: T,
    pub(super) call: ItemCall<S>,
}

impl<T, S: Clock + Clone> Job<T, S> {
    /// Begins the next attempt of an item, if no guard lets it wait or rejects it.
    pub(super) fn begin(item: T, mut call: ItemCall<S>) -> Result<Self, GaveUp<T>> {
        match call.begin() {
            Ok(()) => Ok(Self::begun(item, call)),
            Err((stop, _)) => Err(GaveUp::stopped(item, &call, stop)),
        }
    }

    /// Creates the job of an attempt that has begun.
    pub(super) fn begun(item: T, mut call: ItemCall<S>) -> Self {
        call.attempting();
        Self { item, call }
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.call.attempts()
    }

    /// Returns whether no other attempt follows if this one fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self.call.policy().max_attempts() {
            Some(most) => self.number() >= most.get(),
            None => false,
        }
    }

    /// Runs a future as this attempt, so that nested calls do not retry by default; see [`scope`](crate::scope).
    pub fn scoped<F: Future>(&self, attempt: F) -> Scoped<F> {
        scope::attempt(attempt, self.call.policy())
    }

    /// Classifies an error of this attempt by the rules of the queue's retrier, or the
    /// [built-in rules](crate::classify::built_in).
    pub fn outcome<E: OperationError + 'static>(&self, error: &E) -> Outcome {
        self.call.classify(error)
    }

    /// Returns a snapshot of the item that counts this attempt, for a process that must not lose it even if the attempt
    /// kills it: persist the snapshot before the attempt is made. If the process is killed,
    /// [`restore`](super::RetryQueue::restore) treats the attempt as failed, so the item waits before it is attempted
    /// again, and is given up when it has killed as many workers as the policy allows attempts.
    #[must_use]
    pub fn pending(&self) -> Pending<&T> {
        let (state, seed) = self.call.state();
        Pending::new(&self.item, Duration::ZERO, state.pause(seed, self.call.clock.now()))
    }

    /// Records the success with the guards, and returns the item.
    pub fn succeeded(mut self) -> T {
        self.call.succeeded(&Silent);
        self.item
    }
}

/// Continues the call of an item.
pub(super) fn resume<S: Clock + Clone>(retrier: &Retrier, state: ItemState<S>, clock: S) -> ItemCall<S> {
    let options = RetrierOptions { source: retrier.clone(), deadline: None, is_timed: false };
    Call::resume(options, clock, state)
}

impl<T: fmt::Debug, S: Clock + Clone> fmt::Debug for Job<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("item", &self.item).field("number", &self.number()).finish_non_exhaustive()
    }
}

/// An item that is not attempted again; contains the item.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GaveUp<T> {
    /// The item.
    pub item: T,
    /// Why the item is not attempted again.
    pub reason: GiveUpReason,
    /// Number of attempts made.
    pub attempts: u32,
}

impl<T> GaveUp<T> {
    /// Ends the call of an item, and tells the listeners.
    pub(super) fn stopped<S: Clock + Clone>(item: T, call: &ItemCall<S>, stop: StopReason) -> Self {
        call.emit_stop(&Silent, stop);
        Self { item, reason: GiveUpReason::Stop(stop), attempts: call.attempts() }
    }
}

/// Why a queue does not accept an item for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The policy or a guard decided to stop.
    Stop(StopReason),
    /// The queue is at capacity. The item's permits were released.
    Full,
}

impl<T> fmt::Debug for GaveUp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item: _, reason, attempts } = self;
        f.debug_struct("GaveUp").field("reason", reason).field("attempts", attempts).finish_non_exhaustive()
    }
}

/// Formats as a lower-case fragment: "gave up after 3 attempts: every attempt was used".
impl<T> fmt::Display for GaveUp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{plural}: ", self.attempts)?;
        match self.reason {
            GiveUpReason::Stop(stop) => stop.fmt(f),
            GiveUpReason::Full => f.write_str("the queue is at capacity; raise its capacity"),
        }
    }
}

impl<T> Error for GaveUp<T> {}
