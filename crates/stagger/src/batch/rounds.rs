use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use super::whole::whole;
use super::{BatchResult, Entry, Failed, UnknownItem};
use crate::{
    Guards, Instant, Outcome, Policy, Seed, ServerHint, StopReason, guard::Permits, machine::Decision,
    machine::RetryMachine, machine::RetryState, time::Entropy, time::Sleep, time::SystemEntropy,
};

/// Many items in one request, of which only the failed are sent again.
///
/// A round is one request with everything that is still to be done. What is not said to have failed in it has worked,
/// when the next round is asked for. A round is one attempt under the policy, with one payment to the budget, however
/// many items are in it.
///
/// | what failed in a round | the round, for policy and guards |
/// |---|---|
/// | something that may pass | failed; throttled if any item was, else transient if any was, else local; with the longest hint |
/// | nothing was processed, of any item | unprocessed: repeated at once, once; of some items only, it is a transient failure |
/// | only what is permanent | permanent: the server answered |
/// | nothing | a success |
///
/// - **Lease**: messages are lent for a time (visibility time-out, what is left of an invocation), after which somebody
///   else gets them. No round starts later than [`lease`](Self::lease) allows, and none is waited for in vain. The
///   policy's spread is not waited for.
/// - **Dead letters**: an item that fails permanently, or for too many times, is put aside, so that it is not delivered
///   for ever. Without a [`dead_letter`](Self::dead_letter) it is among the failed.
/// - **Nothing is lost**: [`finish`](Self::finish) gives every item back that did not work, also in the middle of a
///   round, whose items may have worked: they count as failed, to be delivered again.
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
/// let finished = batch.finish();
/// assert_eq!((finished.succeeded, finished.failed[0].error), (2, Some(400)));
/// assert_eq!(finished.response().to_string(), r#"{"batchItemFailures":[{"itemIdentifier":"c"}]}"#);
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
    /// Where the search for an id begins: services speak of failures in the order of the items.
    search: usize,
    done: BatchResult<T, E>,
}

struct DeadLetter<T, E> {
    after: NonZeroU32,
    put_aside: Box<dyn FnMut(Failed<T, E>) + Send>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The next round begins then.
    Due(Instant),
    InRound,
    Ended,
}

#[cfg(feature = "tokio")]
impl<'p, T, E> Batch<'p, T, E, crate::time::Tokio> {
    /// These items, with their ids; on tokio's timer.
    pub fn new<I: Into<String>>(policy: &'p Policy, items: impl IntoIterator<Item = (I, T)>) -> Self {
        Self::with_timer(crate::time::Tokio, policy, items)
    }
}

impl<'p, T, E, S: Sleep> Batch<'p, T, E, S> {
    /// These items, with their ids; on this timer.
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
            done: BatchResult { succeeded: 0, dead_lettered: 0, failed: Vec::new() },
        }
    }

    /// Asks these guards before every round.
    #[must_use]
    pub const fn guards(mut self, guards: Guards<'p>) -> Self {
        self.guards = guards;
        self
    }

    /// The items are lent until `ends`, by the timer's clock, and a round takes up to `margin`: none starts later than
    /// `margin` before the end, not even the first.
    #[must_use]
    pub const fn lease(mut self, ends: Instant, margin: Duration) -> Self {
        let latest = ends.as_nanos().saturating_sub(Instant::ZERO.saturating_add(margin).as_nanos());
        // The core's deadline is the first instant that is too late.
        self.deadline = Some(Instant::from_nanos(latest.saturating_add(1)));
        self
    }

    /// An item that has failed so often, deliveries before this batch included, or permanently, is given to this
    /// function, and is not among the failed.
    #[must_use]
    pub fn dead_letter(mut self, after: NonZeroU32, put_aside: impl FnMut(Failed<T, E>) + Send + 'static) -> Self {
        self.dead_letter = Some(DeadLetter { after, put_aside: Box::new(put_aside) });
        self
    }

    /// How often each item was tried before, as the service tells it (SQS: `ApproximateReceiveCount` − 1).
    #[must_use]
    pub fn attempts_before(mut self, attempts: impl Fn(&T) -> u32) -> Self {
        for entry in &mut self.entries {
            entry.attempts = attempts(&entry.item);
        }
        self
    }

    /// Draws the delays from this seed, so that they can be repeated: for tests.
    #[must_use]
    pub const fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// What is still to be done: in a round, what is in it.
    #[must_use]
    pub fn entries(&self) -> &[Entry<T, E>] {
        &self.entries
    }

    /// Waits for the next round, and begins it. `false` when nothing is left to do, or nothing more will be done.
    ///
    /// Cancel-safe: dropped in its wait, it goes on with the same wait when it is called again.
    pub async fn next_attempt(&mut self) -> bool {
        if self.phase == Phase::InRound {
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
            // It has slept and no time has passed: the clock of a test, which stands still.
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

    /// This item failed in this round, with this outcome and this error. Said again, the last time counts; a success
    /// with an error beside it counts as permanent.
    ///
    /// # Errors
    /// [`UnknownItem`] if there is no such item in this round.
    pub fn failed(&mut self, id: &str, outcome: Outcome, error: E) -> Result<(), UnknownItem> {
        let (before, after) = self.entries.split_at(self.search.min(self.entries.len()));
        let ahead = after.iter().position(|entry| entry.id == id).map(|found| before.len() + found);
        let found = ahead.or_else(|| before.iter().position(|entry| entry.id == id));
        let found = found.filter(|_| self.phase == Phase::InRound).ok_or_else(|| UnknownItem(id.to_owned()))?;
        self.search = found + 1;
        self.failed_at(found, outcome, error);
        Ok(())
    }

    /// The whole request failed with this outcome: every item of this round did, with the error that is made for it.
    pub fn all_failed(&mut self, outcome: Outcome, mut error: impl FnMut(&T) -> E) {
        if self.phase == Phase::InRound {
            for index in 0..self.entries.len() {
                let error = error(&self.entries[index].item);
                self.failed_at(index, outcome, error);
            }
        }
    }

    /// What came of it: every item that did not work is given back. In the middle of a round, that is all that are in
    /// it.
    #[must_use]
    pub fn finish(mut self) -> BatchResult<T, E> {
        self.end(StopReason::Cancelled);
        core::mem::replace(&mut self.done, BatchResult { succeeded: 0, dead_lettered: 0, failed: Vec::new() })
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
                self.phase = Phase::InRound;
                self.search = 0;
                // The one immediate repeat does not count.
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

    /// The round is over: what worked and what will not work leaves, and the core decides about the rest.
    fn settle(&mut self) {
        let outcome = whole(self.entries.iter().map(|entry| entry.outcome));
        for entry in core::mem::take(&mut self.entries) {
            let is_dead = self.dead_letter.as_ref().is_some_and(|dead| entry.attempts >= dead.after.get());
            match entry.outcome {
                Outcome::Success => self.done.succeeded += 1,
                Outcome::Permanent => self.put_aside(entry.failed(StopReason::Permanent)),
                Outcome::UnsafeToRetry(_) => self.put_aside(entry.failed(StopReason::UnsafeToRetry)),
                Outcome::Failed { hint: Some(ServerHint::DoNotRetry), .. } => {
                    self.done.failed.push(entry.failed(StopReason::Hint))
                }
                Outcome::Cancelled => self.done.failed.push(entry.failed(StopReason::Cancelled)),
                _ if is_dead => self.put_aside(entry.failed(StopReason::Attempts)),
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
                let ask = retry.on_ticks(after, source, self.timer.resolution());
                let due = if ask.is_zero() { Instant::ZERO } else { self.timer.now().saturating_add(ask) };
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

    fn put_aside(&mut self, failed: Failed<T, E>) {
        match &mut self.dead_letter {
            Some(dead) => {
                self.done.dead_lettered += 1;
                (dead.put_aside)(failed);
            }
            None => self.done.failed.push(failed),
        }
    }

    fn give_up(&mut self, stop: StopReason) {
        self.done.failed.extend(self.entries.drain(..).map(|entry| entry.failed(stop)));
    }

    /// Settles what was borrowed; nothing more will be done.
    fn end(&mut self, stop: StopReason) {
        let permit = Permits::take(&mut self.permit);
        match core::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Due(_) => self.guards.release(permit),
            Phase::InRound => self.guards.abandon(permit, || self.timer.now()),
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
            .field("worked", &self.done.succeeded)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
