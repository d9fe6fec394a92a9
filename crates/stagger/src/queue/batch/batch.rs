use core::fmt;
use core::future::poll_fn;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::{Instant, Outcome, ServerHint, StopReason};

use super::combined::combined_outcome;
use super::entry::{BatchResult, Entry, Failed, UnknownItem};
use crate::call::machine::{Call, Phase};
use crate::call::options::Through;
use crate::call::poll::PollCall;
use crate::classify::marked::OperationError;
use crate::retrier::event::{EventError, Silent};
use crate::retrier::handle::Retrier;
use crate::time::{Deadline, Sleep};

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
pub struct Batch<T, E, S: Sleep + Clone> {
    call: PollCall<Through<Retrier>, S>,
    dead_letter: Option<DeadLetter<T, E>>,
    is_in_attempt: bool,
    entries: Vec<Entry<T, E>>,
    /// Where the search for an id begins: services report failures in the order of the items.
    search: usize,
    result: BatchResult<T, E>,
}

struct DeadLetter<T, E> {
    after: NonZeroU32,
    handle: Box<dyn FnMut(Failed<T, E>) + Send>,
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
        let entry =
            |(id, item): (I, T)| Entry { id: id.into(), item, attempts: 0, error: None, outcome: Outcome::Success };
        let options = Through { retrier: retrier.into(), deadline: None, is_timed: false };
        Self {
            call: PollCall::new(Call::new(options, timer)),
            dead_letter: None,
            is_in_attempt: false,
            entries: items.into_iter().map(entry).collect(),
            search: 0,
            result: BatchResult { succeeded: 0, dead_lettered: 0, failed: Vec::new() },
        }
    }

    /// Sets when the lease of the items ends, as an instant of the timer's clock, of std's or of tokio's, and how long
    /// an attempt takes at most: no attempt starts later than `margin` before the end, not even the first. Default: no
    /// lease.
    #[must_use]
    pub fn lease(mut self, ends: impl Deadline, margin: Duration) -> Self {
        let ends = ends.on_clock(&self.call.call.clock);
        let latest = ends.as_nanos().saturating_sub(Instant::ZERO.saturating_add(margin).as_nanos());
        // The core's deadline is the first instant that is too late.
        self.call.call.options.deadline = Some(Instant::from_nanos(latest.saturating_add(1)));
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
        match self.call.call.phase {
            Phase::Ended => return false,
            // The last items were given up by their own counts, and not by the policy.
            _ if self.entries.is_empty() => {
                self.call.call.emit_stop(&Silent, StopReason::Attempts);
                self.end(StopReason::Attempts);
                return false;
            }
            Phase::Fresh => self.call.call.start_without_spread(),
            _ => {}
        }
        let before = self.call.call.attempts();
        match poll_fn(|cx| self.call.poll_begin(cx)).await {
            Ok(attempt) => {
                self.call.call.attempting();
                self.is_in_attempt = true;
                self.search = 0;
                // The immediate repeat of an unprocessed request does not count.
                let counts = attempt.number - before;
                for entry in &mut self.entries {
                    entry.attempts = entry.attempts.saturating_add(counts);
                    entry.outcome = Outcome::Success;
                }
                true
            }
            Err((stop, _)) => {
                self.call.call.emit_stop(&Silent, stop);
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
        let mut indexes = (self.search..self.entries.len()).chain(0..self.search);
        let found = indexes.find(|&index| self.entries.get(index).is_some_and(|entry| entry.id == id));
        let found = found.filter(|_| self.is_in_attempt).ok_or_else(|| UnknownItem(id.to_owned()))?;
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
        let outcome = self.call.call.classify(&error);
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

    /// Ends the batch. Returns every item that did not succeed; during an attempt, these are all items in it.
    #[must_use]
    pub fn finish(mut self) -> BatchResult<T, E> {
        self.end(StopReason::Cancelled);
        self.result
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
            self.call.call.succeeded(&Silent);
            None
        } else {
            // The listeners receive the error that decided, or the first one.
            let failed = |entry: &&Entry<T, E>| entry.outcome != Outcome::Success;
            let decisive = self.entries.iter().find(|entry| entry.outcome == outcome);
            let error = decisive.or_else(|| self.entries.iter().find(failed)).and_then(|entry| entry.error.as_ref());
            self.call.failed(&Silent, outcome, error)
        };
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
        if let Some(stop) = stop {
            self.give_up(stop);
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

    /// Ends the batch; permits that it holds are settled.
    fn end(&mut self, stop: StopReason) {
        self.call.call.abandon();
        self.is_in_attempt = false;
        self.give_up(stop);
    }
}

impl<T, E, S: Sleep + Clone> fmt::Debug for Batch<T, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("left", &self.entries.len())
            .field("succeeded", &self.result.succeeded)
            .field("attempts", &self.call.call.attempts())
            .finish_non_exhaustive()
    }
}
