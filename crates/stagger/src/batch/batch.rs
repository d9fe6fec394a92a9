use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use super::combined::combined_outcome;
use super::{BatchResult, Entry, Failed, UnknownItem};
use crate::{
    Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason, guard::Permits, machine::Decision,
    machine::RetryMachine, machine::RetryState, time::Entropy, time::Sleep, time::SystemEntropy,
};

/// Many items in one request, of which only the failed ones are sent again.
///
/// An attempt is one request with all remaining items. Items not reported as failed have succeeded when the next
/// attempt is requested. A request counts as one attempt under the policy, and a resent one needs one permit from the
/// budget, however many items it contains.
///
/// | failed in an attempt | outcome of the attempt, for policy and guards |
/// |---|---|
/// | items that can be retried | failed; throttled if any item was, else transient if any was, else local exhaustion; with the longest hint |
/// | all items, none of them processed | not processed: repeated immediately, once; if only some items were not processed, a transient failure |
/// | permanent failures only | permanent: the server responded |
/// | no item | success |
///
/// - **Lease**: messages are leased for a limited time (visibility timeout, remaining time of an invocation), after
///   which they are delivered to another consumer. No attempt starts later than [`lease`](Self::lease) allows, and the
///   batch does not wait for one that could not start. The policy's initial spread is ignored.
/// - **Dead letters**: an item that fails permanently, or too many times, is passed to the
///   [`dead_letter`](Self::dead_letter) function, so that it is not redelivered forever. Without one it is among the
///   failed.
/// - **No item is lost**: [`finish`](Self::finish) returns every item that did not succeed. In the middle of an
///   attempt, all its items count as failed, to be redelivered, although some may have succeeded.
///
/// ```
/// use stagger::batch::Batch;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(50), secs(5)).max_attempts(3));
///
/// # struct Answer { failed: Vec<(&'static str, u16)> }
/// # let mut rounds = 0;
/// # let mut send = async |items: Vec<&u32>| { rounds += 1; Answer { failed: if rounds == 1 { vec![("b", 503), ("c", 400)] } else { vec![] } } };
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut batch = Batch::new(&POLICY, [("a", 1), ("b", 2), ("c", 3)]);
/// while batch.next_attempt().await {
///     let answer = send(batch.entries().iter().map(|entry| &entry.item).collect()).await;
///     for (id, status) in answer.failed {
///         let outcome = if status >= 500 { Outcome::TRANSIENT } else { Outcome::Permanent };
///         batch.failed(id, outcome, status)?;
///     }
/// }
/// let result = batch.finish();
/// assert_eq!((result.succeeded, result.failed[0].error), (2, Some(400)));
/// assert_eq!(result.response().to_string(), r#"{"batchItemFailures":[{"itemIdentifier":"c"}]}"#);
/// # Ok::<(), stagger::batch::UnknownItem>(()) }).unwrap();
/// ```
pub struct Batch<'p, T, E, S: Sleep> {
    policy: &'p Policy,
    guards: Guards<'p>,
    timer: S,
    deadline: Option<Instant>,
    dead_letter: Option<DeadLetter<T, E>>,
    state: RetryState,
    seed: Seed,
    permit: Permits,
    phase: Phase,
    entries: Vec<Entry<T, E>>,
    /// Where the search for an id begins: services report failures in the order of the items.
    search: usize,
    result: BatchResult<T, E>,
}

struct DeadLetter<T, E> {
    after: NonZeroU32,
    handle: Box<dyn FnMut(Failed<T, E>) + Send>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next attempt begins at this instant.
    Due(Instant),
    InAttempt,
    Ended,
}

#[cfg(feature = "tokio")]
impl<'p, T, E> Batch<'p, T, E, crate::time::Tokio> {
    /// Creates a batch of these items, with their ids, on tokio's timer.
    pub fn new<I: Into<String>>(policy: &'p Policy, items: impl IntoIterator<Item = (I, T)>) -> Self {
        Self::with_timer(crate::time::Tokio, policy, items)
    }
}

impl<'p, T, E, S: Sleep> Batch<'p, T, E, S> {
    /// Creates a batch of these items, with their ids, on this timer.
    pub fn with_timer<I: Into<String>>(timer: S, policy: &'p Policy, items: impl IntoIterator<Item = (I, T)>) -> Self {
        let entry =
            |(id, item): (I, T)| Entry { id: id.into(), item, attempts: 0, error: None, outcome: Outcome::Success };
        Self {
            policy,
            guards: Guards::none(),
            timer,
            deadline: None,
            dead_letter: None,
            state: RetryState::new(),
            seed: SystemEntropy.seed(),
            permit: Permits::NONE,
            phase: Phase::Due(Instant::ZERO),
            entries: items.into_iter().map(entry).collect(),
            search: 0,
            result: BatchResult { succeeded: 0, dead_lettered: 0, failed: Vec::new() },
        }
    }

    /// Sets the guards that must admit every attempt. Default: none.
    #[must_use]
    pub const fn guards(mut self, guards: Guards<'p>) -> Self {
        self.guards = guards;
        self
    }

    /// Sets when the lease of the items ends, on the timer's clock, and how long an attempt takes at most: no attempt
    /// starts later than `margin` before the end, not even the first. Default: no lease.
    #[must_use]
    pub const fn lease(mut self, ends: Instant, margin: Duration) -> Self {
        let latest = ends.as_nanos().saturating_sub(Instant::ZERO.saturating_add(margin).as_nanos());
        // The core's deadline is the first instant that is too late.
        self.deadline = Some(Instant::from_nanos(latest.saturating_add(1)));
        self
    }

    /// Sets the function that receives items that failed permanently, that must not be sent again, or that have failed
    /// `after` times, including deliveries before this batch. Such items are not among the failed. Default: none.
    #[must_use]
    pub fn dead_letter(mut self, after: NonZeroU32, handle: impl FnMut(Failed<T, E>) + Send + 'static) -> Self {
        self.dead_letter = Some(DeadLetter { after, handle: Box::new(handle) });
        self
    }

    /// Sets how often each item was attempted before, as the service reports it (SQS: `ApproximateReceiveCount` − 1).
    /// Default: 0.
    #[must_use]
    pub fn attempts_before(mut self, attempts: impl Fn(&T) -> u32) -> Self {
        for entry in &mut self.entries {
            entry.attempts = attempts(&entry.item);
        }
        self
    }

    /// Sets the seed that the delays are drawn from, for reproducible tests. Default: the system's entropy.
    #[must_use]
    pub const fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the remaining items; during an attempt, the items in it.
    #[must_use]
    pub fn entries(&self) -> &[Entry<T, E>] {
        &self.entries
    }

    /// Waits for the next attempt, and begins it. Returns `false` if no items are left or no further attempt is made.
    ///
    /// Cancel-safe: if it is dropped while it waits, the next call continues the same wait.
    pub async fn next_attempt(&mut self) -> bool {
        if self.phase == Phase::InAttempt {
            self.settle();
        }
        let Phase::Due(due) = self.phase else { return false };
        loop {
            let now = self.timer.now();
            let left = due.saturating_since(now);
            if left.is_zero() || crate::testing::sleeps_are_skipped() {
                break;
            }
            self.timer.sleep(left).await;
            // The sleep ended and no time has passed: the clock of a test stands still.
            if self.timer.now() == now {
                break;
            }
        }
        let is_too_late = self.deadline.is_some_and(|deadline| self.timer.now() >= deadline);
        if self.entries.is_empty() || is_too_late {
            self.end(StopReason::Elapsed);
            return false;
        }
        self.begin()
    }

    /// Records that this item failed in the current attempt, with this outcome and this error. If it is called more
    /// than once for an item, the last call counts. [`Outcome::Success`] is treated as permanent.
    ///
    /// # Errors
    /// Returns [`UnknownItem`] if the item is not in the current attempt.
    pub fn failed(&mut self, id: &str, outcome: Outcome, error: E) -> Result<(), UnknownItem> {
        let (before, after) = self.entries.split_at(self.search.min(self.entries.len()));
        let ahead = after.iter().position(|entry| entry.id == id).map(|found| before.len() + found);
        let found = ahead.or_else(|| before.iter().position(|entry| entry.id == id));
        let found = found.filter(|_| self.phase == Phase::InAttempt).ok_or_else(|| UnknownItem(id.to_owned()))?;
        self.search = found + 1;
        self.failed_at(found, outcome, error);
        Ok(())
    }

    /// Records that the whole request failed with this outcome: every item failed, with the error that `error` creates
    /// for it.
    pub fn all_failed(&mut self, outcome: Outcome, mut error: impl FnMut(&T) -> E) {
        if self.phase == Phase::InAttempt {
            for index in 0..self.entries.len() {
                let error = error(&self.entries[index].item);
                self.failed_at(index, outcome, error);
            }
        }
    }

    /// Ends the batch. Returns every item that did not succeed; during an attempt, these are all items in it.
    #[must_use]
    pub fn finish(mut self) -> BatchResult<T, E> {
        self.end(StopReason::Cancelled);
        core::mem::replace(&mut self.result, BatchResult { succeeded: 0, dead_lettered: 0, failed: Vec::new() })
    }

    fn failed_at(&mut self, index: usize, outcome: Outcome, error: E) {
        let entry = &mut self.entries[index];
        entry.outcome = if outcome == Outcome::Success { Outcome::Permanent } else { outcome };
        entry.error = Some(error);
    }

    fn begin(&mut self) -> bool {
        let timer = &self.timer;
        let permit = Permits::take(&mut self.permit);
        let before = self.state.attempt();
        match RetryMachine::new(self.policy, &mut self.state, self.seed).begin(permit, || timer.now(), &self.guards) {
            Ok(permit) => {
                self.permit = permit;
                self.phase = Phase::InAttempt;
                self.search = 0;
                // The immediate repeat of an unprocessed request does not count.
                let counts = self.state.attempt() - before;
                for entry in &mut self.entries {
                    entry.attempts = entry.attempts.saturating_add(counts);
                    entry.outcome = Outcome::Success;
                }
                true
            }
            Err(stop) => {
                self.phase = Phase::Ended;
                self.give_up(stop);
                false
            }
        }
    }

    /// Ends the attempt: removes items that succeeded or failed for good, and decides about the rest.
    fn settle(&mut self) {
        let outcome = combined_outcome(self.entries.iter().map(|entry| entry.outcome));
        for entry in core::mem::take(&mut self.entries) {
            let is_exhausted = self.dead_letter.as_ref().is_some_and(|dead| entry.attempts >= dead.after.get());
            match entry.outcome {
                Outcome::Success => self.result.succeeded += 1,
                Outcome::Permanent => self.dead_letter_or_fail(entry.failed(StopReason::Permanent)),
                Outcome::UnsafeToRetry(_) => self.dead_letter_or_fail(entry.failed(StopReason::UnsafeToRetry)),
                Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. } => {
                    self.result.failed.push(entry.failed(StopReason::Hint))
                }
                Outcome::Cancelled => self.result.failed.push(entry.failed(StopReason::Cancelled)),
                _ if is_exhausted => self.dead_letter_or_fail(entry.failed(StopReason::Attempts)),
                _ => self.entries.push(entry),
            }
        }
        let timer = &self.timer;
        let permit = Permits::take(&mut self.permit);
        let mut retry = RetryMachine::new(self.policy, &mut self.state, self.seed).deadline(self.deadline);
        let decision = retry.decide(outcome, permit, || timer.now(), &self.guards);
        match decision {
            Decision::Retry { after, source, permit } => {
                self.permit = permit;
                let delay = retry.on_ticks(after, source, self.timer.resolution());
                let due = if delay.is_zero() { Instant::ZERO } else { self.timer.now().saturating_add(delay) };
                self.phase = Phase::Due(due);
                if self.entries.is_empty() {
                    self.end(StopReason::Exhausted);
                }
            }
            Decision::Stop(stop) => {
                self.phase = Phase::Ended;
                self.give_up(stop);
            }
            _ => self.phase = Phase::Ended,
        }
    }

    fn dead_letter_or_fail(&mut self, failed: Failed<T, E>) {
        match &mut self.dead_letter {
            Some(dead) => {
                self.result.dead_lettered += 1;
                (dead.handle)(failed);
            }
            None => self.result.failed.push(failed),
        }
    }

    fn give_up(&mut self, stop: StopReason) {
        self.result.failed.extend(self.entries.drain(..).map(|entry| entry.failed(stop)));
    }

    /// Settles the permits and ends the batch.
    fn end(&mut self, stop: StopReason) {
        let permit = Permits::take(&mut self.permit);
        match core::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Due(_) => self.guards.release(permit),
            Phase::InAttempt => self.guards.abandon(permit, || self.timer.now()),
            Phase::Ended => {}
        }
        self.give_up(stop);
    }
}

impl<T, E, S: Sleep> Drop for Batch<'_, T, E, S> {
    fn drop(&mut self) {
        self.end(StopReason::Cancelled);
    }
}

impl<T, E, S: Sleep> fmt::Debug for Batch<'_, T, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("left", &self.entries.len())
            .field("succeeded", &self.result.succeeded)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
