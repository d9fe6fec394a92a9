//! A batch: what is left of it, and what its attempts decide.

use core::fmt;
use core::future::poll_fn;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::{FailureKind, Instant, Outcome, Seed, ServerHint, StopReason};

use super::entry::{Entry, Failed, Origin, UnknownItem};
use super::result::{BatchResult, ItemResult, Succeeded};
use crate::call::machine::{Call, Phase};
use crate::call::poll::PollCall;
use crate::call::retrier_options::RetrierOptions;
use crate::classify::marked::OperationError;
use crate::queue::Pending;
use crate::retrier::event::{EventError, Silent};
use crate::retrier::handle::Retrier;
use crate::time::{Deadline, Sleep};

/// Many items in one request, of which only the failed ones are sent again.
///
/// An attempt is one request with all remaining items. Items not reported as failed have succeeded when the next
/// attempt is requested. A request counts as one attempt under the policy, and a resent one needs one permit from each
/// guard, however many items it contains.
///
/// | failed in an attempt | outcome of the attempt, for policy and guards |
/// |---|---|
/// | items that can be retried | throttled if any was, else transient if any was, else local; the longest hint |
/// | all items, none of them processed | not processed: repeated immediately, once |
/// | only some items, not processed | a transient failure |
/// | permanent failures only | permanent: the server responded |
/// | no item | success |
///
/// - **Lease**: messages are leased for a limited time (visibility timeout, remaining time of an invocation), after
///   which they are delivered to another consumer. No attempt starts later than [`lease`](Self::lease) allows, and the
///   batch does not wait for one that could not start. The policy's initial spread is ignored.
/// - **Dead letters**: an item that fails permanently, or too many times, is passed to the
///   [`dead_letter`](Self::dead_letter) function, so that it is not redelivered forever. Without one it is among the
///   failed.
/// - **No item is lost**: [`finish`](Self::finish) returns every item with its result. In the middle of an attempt, all
///   its items count as failed, to be redelivered, although some may have succeeded.
/// - **Queue**: failed items [continue in a `RetryQueue`](crate::queue::RetryQueue::push_from_batch), and items that
///   are due in one [continue here](Self::with_pending), each with its number of attempts and its start.
/// - **Crashes**: persist [`pending`](Self::pending) before an attempt that may kill the process. Each item counts the
///   attempt, so make the next one with each item alone, or the others are given up with the one that kills.
///
/// ```
/// use stagger::batch::Batch;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(50), secs(5)).max_attempts(3));
///
/// # struct Answer { failed: Vec<(&'static str, u16)> }
/// # let mut rounds = 0;
/// # let mut send = async |items: Vec<&u32>| {
/// #     rounds += 1;
/// #     Answer { failed: if rounds == 1 { vec![("b", 503), ("c", 400)] } else { vec![] } }
/// # };
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
/// assert_eq!((result.succeeded(), result.failed().next().unwrap().error), (2, Some(400)));
/// assert_eq!(result.response().to_string(), r#"{"batchItemFailures":[{"itemIdentifier":"c"}]}"#);
/// # Ok::<(), stagger::batch::UnknownItem>(()) }).unwrap();
/// ```
pub struct Batch<T, E, S: Sleep + Clone> {
    driver: PollCall<RetrierOptions<Retrier>, S>,
    dead_letter: Option<DeadLetter<T, E>>,
    is_in_attempt: bool,
    entries: Vec<Entry<T, E>>,
    /// Where the search for an id begins: services report failures in the order of the items.
    search: usize,
    /// The results of items that have left the batch, with their places.
    results: Vec<(usize, ItemResult<T, E>)>,
}

struct DeadLetter<T, E> {
    after: NonZeroU32,
    handle: Box<dyn FnMut(&Failed<T, E>) + Send>,
}

#[cfg(feature = "tokio")]
impl<T, E> Batch<T, E, crate::time::Tokio> {
    /// Creates a batch of these items, with their ids, that retries according to a policy or through a [`Retrier`], on
    /// tokio's timer.
    pub fn new<I: Into<String>>(retrier: impl Into<Retrier>, items: impl IntoIterator<Item = (I, T)>) -> Self {
        Self::with_timer(crate::time::Tokio, retrier, items)
    }
}

impl<T, E, S: Sleep + Clone> Batch<T, E, S> {
    /// Creates a batch of these items, with their ids, that retries according to a policy or through a [`Retrier`], on
    /// this timer. The guards, rules and listeners of the retrier apply to the attempts of the batch; its timeout does
    /// not, because the caller makes the attempts.
    pub fn with_timer<I: Into<String>>(
        timer: S,
        retrier: impl Into<Retrier>,
        items: impl IntoIterator<Item = (I, T)>,
    ) -> Self {
        let entry = |(position, (id, item)): (usize, (I, T))| Entry {
            id: id.into(),
            item,
            attempts: 0,
            error: None,
            outcome: Outcome::Success,
            position,
            origin: Origin::New,
            start: None,
            seed: Seed::new(0),
            was_attempted: false,
        };
        let options = RetrierOptions { source: retrier.into(), deadline: None, is_timed: false };
        Self {
            driver: PollCall::new(Call::new(options, timer)),
            dead_letter: None,
            is_in_attempt: false,
            entries: items.into_iter().enumerate().map(entry).collect(),
            search: 0,
            results: Vec::new(),
        }
    }

    /// Adds items that wait for a retry, as [`RetryQueue::next_batch`](crate::queue::RetryQueue::next_batch) returns
    /// them, with their ids. They keep their number of attempts, their start and their seed.
    ///
    /// If every item of the batch is a retry, its first attempt is reserved with the guards as one.
    #[must_use]
    pub fn with_pending<I: Into<String>>(mut self, items: impl IntoIterator<Item = (I, Pending<T>)>) -> Self {
        let now = self.driver.call.clock.now();
        for (id, Pending { item, left: _, paused }) in items {
            let attempts = paused.attempt();
            self.entries.push(Entry {
                id: id.into(),
                item,
                attempts,
                error: None,
                outcome: Outcome::Success,
                position: self.entries.len(),
                origin: if attempts > 0 { Origin::Retry } else { Origin::New },
                start: paused.resume(now).start(),
                seed: paused.seed(),
                was_attempted: false,
            });
        }
        self
    }

    /// Sets when the lease of the items ends, as an instant of the timer's clock, of std's or of tokio's, and how long
    /// an attempt takes at most: no attempt starts later than `margin` before the end, not even the first. Default: no
    /// lease.
    #[must_use]
    pub fn lease(mut self, ends: impl Deadline, margin: Duration) -> Self {
        let ends = ends.on_clock(&self.driver.call.clock);
        let latest = ends.as_nanos().saturating_sub(Instant::ZERO.saturating_add(margin).as_nanos());
        // The core's deadline is the first instant that is too late.
        self.driver.call.options.deadline = Some(Instant::from_nanos(latest.saturating_add(1)));
        self
    }

    /// Sets the function that receives items that failed permanently, that must not be sent again, or that have failed
    /// `after` times, including deliveries before this batch, when they are given up. The service does not deliver them
    /// again: they are no part of the [response](BatchResult::response). Default: none.
    #[must_use]
    pub fn dead_letter(mut self, after: NonZeroU32, handle: impl FnMut(&Failed<T, E>) + Send + 'static) -> Self {
        self.dead_letter = Some(DeadLetter { after, handle: Box::new(handle) });
        self
    }

    /// Sets how often each item so far was attempted before, as the service reports it (SQS: `ApproximateReceiveCount`
    /// − 1). Default: 0, and for [pending](Self::with_pending) items their own number.
    #[must_use]
    pub fn attempts_before(mut self, attempts: impl Fn(&T) -> u32) -> Self {
        for entry in &mut self.entries {
            entry.attempts = attempts(&entry.item);
        }
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
    pub async fn next_attempt(&mut self) -> bool
    where
        E: EventError,
    {
        if self.is_in_attempt {
            self.settle();
        }
        match self.driver.call.phase {
            Phase::Ended => return false,
            // The last items were given up by their own counts, and not by the policy.
            _ if self.entries.is_empty() => {
                self.driver.call.emit_stop(&Silent, StopReason::Attempts);
                self.end(StopReason::Attempts);
                return false;
            }
            Phase::Fresh => {
                self.driver.call.start_without_spread();
                if self.entries.iter().all(|entry| entry.origin == Origin::Retry) {
                    if let Err(stop) = self.driver.call.begin_as_retry() {
                        self.driver.call.emit_stop(&Silent, stop);
                        self.end(stop);
                        return false;
                    }
                }
            }
            _ => {}
        }
        let before = self.driver.call.attempts();
        match poll_fn(|cx| self.driver.poll_begin(&Silent, cx)).await {
            Ok(attempt) => {
                self.driver.call.attempting();
                self.is_in_attempt = true;
                self.search = 0;
                // The immediate repeat of an unprocessed request does not count.
                let counts = attempt.number - before;
                let now = self.driver.call.clock.now();
                for entry in &mut self.entries {
                    entry.attempts = entry.attempts.saturating_add(counts);
                    entry.outcome = Outcome::Success;
                    entry.start = entry.start.or(Some(now));
                    entry.was_attempted = true;
                }
                true
            }
            Err((stop, _)) => {
                self.driver.call.emit_stop(&Silent, stop);
                self.give_up(stop);
                false
            }
        }
    }

    /// Records that this item failed in the current attempt, with this outcome and this error. If it is called more
    /// than once for an item, the last call counts. [`Outcome::Success`] is treated as permanent.
    ///
    /// # Errors
    /// Returns [`UnknownItem`] if the item is not in the current attempt.
    pub fn failed(&mut self, id: &str, outcome: Outcome, error: E) -> Result<(), UnknownItem> {
        let found = if self.is_in_attempt { self.find(id) } else { None };
        let Some(found) = found else { return Err(UnknownItem(id.to_owned())) };
        self.search = found + 1;
        self.failed_at(found, outcome, error);
        Ok(())
    }

    /// Records that this item failed in the current attempt, with this error, which is classified by the rules of the
    /// batch's retrier, or the [built-in rules](crate::classify::built_in); see [`failed`](Self::failed).
    ///
    /// # Errors
    /// Returns [`UnknownItem`] if the item is not in the current attempt.
    pub fn failed_with(&mut self, id: &str, error: E) -> Result<(), UnknownItem>
    where
        E: OperationError + 'static,
    {
        let outcome = self.driver.call.classify(&error);
        self.failed(id, outcome, error)
    }

    /// Records that the whole request failed with this outcome: every item failed, with the error that `error` creates
    /// for it.
    pub fn all_failed(&mut self, outcome: Outcome, mut error: impl FnMut(&T) -> E) {
        if self.is_in_attempt {
            for index in 0..self.entries.len() {
                let error = error(&self.entries[index].item);
                self.failed_at(index, outcome, error);
            }
        }
    }

    /// Returns a snapshot of each remaining item, with its id, that counts the attempt in progress, for a process that
    /// must not lose them even if the attempt kills it: see [`Job::pending`](crate::queue::Job::pending).
    pub fn pending(&self) -> impl Iterator<Item = (&str, Pending<&T>)> {
        let now = self.driver.call.clock.now();
        self.entries.iter().map(move |entry| {
            let paused = entry.history().state(entry.attempts).pause(entry.seed, now);
            (entry.id.as_str(), Pending::new(&entry.item, Duration::ZERO, paused))
        })
    }

    /// Ends the batch. Returns the result of each item; during an attempt, all items in it count as failed.
    #[must_use]
    pub fn finish(mut self) -> BatchResult<T, E> {
        self.end(StopReason::Cancelled);
        self.results.sort_unstable_by_key(|(position, _)| *position);
        BatchResult { items: self.results.into_iter().map(|(_, result)| result).collect() }
    }

    /// Returns the index of the item with this id: the next one, or else the first of all.
    fn find(&self, id: &str) -> Option<usize> {
        let (before, from_here) = self.entries.split_at(self.search.min(self.entries.len()));
        match from_here.iter().position(|entry| entry.id == id) {
            Some(distance) => Some(before.len() + distance),
            None => before.iter().position(|entry| entry.id == id),
        }
    }

    fn failed_at(&mut self, index: usize, outcome: Outcome, error: E) {
        let entry = &mut self.entries[index];
        entry.outcome = if outcome == Outcome::Success { Outcome::Permanent } else { outcome };
        entry.error = Some(error);
    }

    /// Ends the attempt: removes items that succeeded or failed for good, and decides about the rest.
    fn settle(&mut self)
    where
        E: EventError,
    {
        self.is_in_attempt = false;
        let outcome = combined_outcome(self.entries.iter().map(|entry| entry.outcome));
        let stop = if outcome == Outcome::Success {
            self.driver.call.succeeded(&Silent);
            None
        } else {
            self.driver.failed(&Silent, outcome, decisive_error(&self.entries, outcome))
        };
        for entry in core::mem::take(&mut self.entries) {
            let is_exhausted = match &self.dead_letter {
                Some(dead) => entry.attempts >= dead.after.get(),
                None => false,
            };
            let stop = match entry.outcome {
                Outcome::Success => {
                    let Entry { id, item, attempts, position, .. } = entry;
                    self.results.push((position, ItemResult::Succeeded(Succeeded { id, item, attempts })));
                    continue;
                }
                Outcome::Permanent => StopReason::Permanent,
                Outcome::UnsafeToRetry { .. } => StopReason::UnsafeToRetry,
                Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. } => StopReason::Hint,
                Outcome::Cancelled => StopReason::Cancelled,
                _ if is_exhausted => StopReason::Attempts,
                _ => {
                    self.entries.push(entry);
                    continue;
                }
            };
            self.leave(entry, stop);
        }
        if let Some(stop) = stop {
            self.give_up(stop);
        }
    }

    /// Records the result of an item that failed for good.
    fn leave(&mut self, entry: Entry<T, E>, stop: StopReason) {
        let position = entry.position;
        let failed = entry.failed(stop);
        let is_hopeless = matches!(stop, StopReason::Permanent | StopReason::UnsafeToRetry | StopReason::Attempts);
        let result = match &mut self.dead_letter {
            Some(dead) if is_hopeless => {
                (dead.handle)(&failed);
                ItemResult::DeadLettered(failed)
            }
            _ => ItemResult::GaveUp(failed),
        };
        self.results.push((position, result));
    }

    /// Gives up all remaining items.
    fn give_up(&mut self, stop: StopReason) {
        let results = self.entries.drain(..).map(|entry| {
            let position = entry.position;
            let was_attempted = entry.was_attempted;
            let failed = entry.failed(stop);
            (position, if was_attempted { ItemResult::GaveUp(failed) } else { ItemResult::NotAttempted(failed) })
        });
        self.results.extend(results);
    }

    /// Ends the batch; permits that it holds are settled.
    fn end(&mut self, stop: StopReason) {
        self.driver.call.abandon();
        self.is_in_attempt = false;
        self.give_up(stop);
    }
}

impl<T, E, S: Sleep + Clone> fmt::Debug for Batch<T, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("left", &self.entries.len())
            .field("done", &self.results.len())
            .field("attempts", &self.driver.call.attempts())
            .finish_non_exhaustive()
    }
}

/// Returns the error for the listeners: that of the item whose outcome is that of the attempt, or else the first one.
fn decisive_error<T, E>(entries: &[Entry<T, E>], outcome: Outcome) -> Option<&E> {
    let mut first = None;
    for entry in entries {
        if entry.outcome == outcome {
            return entry.error.as_ref();
        }
        if first.is_none() && entry.outcome != Outcome::Success {
            first = entry.error.as_ref();
        }
    }
    first
}

/// Combines the outcomes of the items into one outcome of the attempt, for policy and guards.
pub(super) fn combined_outcome(outcomes: impl Iterator<Item = Outcome> + Clone) -> Outcome {
    if outcomes.clone().all(|outcome| outcome == Outcome::NotProcessed) {
        return Outcome::NotProcessed;
    }
    outcomes.fold(Outcome::Success, worse)
}

/// Returns the worse of two outcomes, with the longer hint.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    let worst = if rank(&other) > rank(&one) { other } else { one };
    match worst {
        Outcome::Failed { kind, .. } => {
            let hint = if !is_retried(&one) && !is_retried(&other) {
                Some(ServerHint::DoNotRetry)
            } else if asked(&other) > asked(&one) {
                hint(&other)
            } else {
                hint(&one)
            };
            Outcome::Failed { kind, hint }
        }
        // Other items were processed, so an immediate repeat is not appropriate.
        Outcome::NotProcessed => Outcome::Failed { kind: FailureKind::Transient, hint: hint(&one) },
        _ => worst,
    }
}

const fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Success => 0,
        Outcome::Cancelled => 1,
        Outcome::Permanent | Outcome::UnsafeToRetry { .. } => 2,
        Outcome::Failed { kind: FailureKind::LocalExhaustion, .. } => 3,
        Outcome::Failed { kind: FailureKind::Throttled, .. } => 5,
        _ => 4,
    }
}

/// Returns whether the item is sent again if the policy allows it.
const fn is_retried(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { hint, .. } => !matches!(hint, Some(ServerHint::DoNotRetry)),
        Outcome::NotProcessed => true,
        _ => false,
    }
}

/// Returns the hint that applies to the whole attempt. An item that must not be retried leaves the batch, and its hint
/// does not affect the others.
const fn hint(outcome: &Outcome) -> Option<ServerHint> {
    match outcome {
        Outcome::Failed { hint: hint @ Some(ServerHint::AtLeast(_) | ServerHint::Reserved(_)), .. } => *hint,
        _ => None,
    }
}

fn asked(outcome: &Outcome) -> Option<Duration> {
    match hint(outcome) {
        Some(ServerHint::AtLeast(length) | ServerHint::Reserved(length)) => Some(length),
        _ => None,
    }
}
