//! Retrying in blocking code.
//!
//! The same policies, rules, guards and events as in async code, and the same decisions: the two share everything but
//! the waiting. No thread is started: an attempt with a time limit is told the limit, and passes it on to what it calls.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::call::{Attempt, Call, Next};
use crate::cancel::{Cancel, Cancelling};
use crate::error::Rejected;
use crate::event::{Event, OnEvent, Sink};
use crate::future::Uncancelled;
use crate::rule::{BuiltIn, Classify, Plain, Reading, Rule, Validated, When, WithMarks};
use crate::scope::Mark;
use crate::setup::{
    Ending, Explained, Explaining, Extras, Finish, Guarded, Guarding, Keep, LastAttempt, Limiting, Limits, Own,
    Reported, Setup,
};
use crate::steps::{Parts, steps};
pub use crate::ticker::blocking::{Ticker, interval};
use crate::{Budget, Guards, Instant, Outcome, Policy, time::BlockingSleep, time::Entropy, time::ThreadSleep};

/// Calls a blocking operation, and calls it again, as the policy says, until it works or there is a reason to stop.
///
/// [`run`](BlockingRetry::run) runs it. What comes back is the operation's own value or its own last error, bare. See
/// [`retry`](fn@crate::retry) for what it does without being told.
///
/// ```
/// use stagger::{Policy, blocking, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
///
/// let mut calls = 0;
/// let answer = blocking::retry(&POLICY, || {
///     calls += 1;
///     if calls < 3 { Err("not yet") } else { Ok("done") }
/// })
/// .run();
/// assert_eq!((answer, calls), (Ok("done"), 3));
/// ```
#[inline]
pub fn retry<F, O>(
    policy: &Policy,
    mut operation: F,
) -> BlockingRetry<'_, impl FnMut(Attempt) -> O, O, Plain, BuiltIn, ThreadSleep, Setup, Uncancelled>
where
    F: FnMut() -> O,
    Plain: Reading<O>,
{
    retry_with(policy, move |_| operation())
}

/// The same for an operation that is told which attempt it makes, and how long it may take.
#[inline]
pub fn retry_with<F, O>(
    policy: &Policy,
    operation: F,
) -> BlockingRetry<'_, F, O, Plain, BuiltIn, ThreadSleep, Setup, Uncancelled>
where
    F: FnMut(Attempt) -> O,
    Plain: Reading<O>,
{
    BlockingRetry::from_parts(Parts::plain(policy, ThreadSleep, operation, Uncancelled))
}

/// A blocking call that is to be retried: the builder that [`retry`] gives.
///
/// Its type parameters stand for what a call may bring along; nobody writes them.
#[must_use = "nothing is called before `run`"]
pub struct BlockingRetry<'p, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: Extras,
{
    operation: F,
    reading: P,
    rule: R,
    call: Call<&'p Policy, T, X>,
    cancel: N,
    gives: PhantomData<fn() -> O>,
}

steps!(BlockingRetry, BlockingSleep, O, where { F: FnMut(Attempt) -> O, });

impl<'p, F, O, P, R, T, X, N> BlockingRetry<'p, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: Extras,
{
    #[inline]
    pub(crate) fn from_parts(parts: Parts<'p, F, P, R, T, X, N>) -> Self {
        let Parts { policy, operation, reading, rule, timer, setup, cancel } = parts;
        Self { operation, reading, rule, call: Call::new(policy, timer, setup), cancel, gives: PhantomData }
    }

    fn into_parts(self) -> Parts<'p, F, P, R, T, X, N> {
        let Self { operation, reading, rule, call, cancel, .. } = self;
        let (policy, timer, setup) = call.into_parts();
        Parts { policy, operation, reading, rule, timer, setup, cancel }
    }
}

/// Cancelling from another thread.
impl<'p, F, O, P, R, T, S, G, L, Y, M, N> BlockingRetry<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    P: Reading<O>,
    T: BlockingSleep,
    Setup<S, G, L, Y, M>: Extras,
    Setup<S, G, L, Y, Explained>: Extras,
{
    /// Ends the call when this handle is cancelled: in the middle of a sleep, or after the attempt that is being made.
    /// The last error so far is kept.
    pub fn cancelled_by(self, cancel: &Cancel) -> BlockingRetry<'p, F, O, P, R, T, Explaining<S, G, L, Y>, &Cancel> {
        BlockingRetry::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Explained)).with_cancel(cancel))
    }
}

impl<F, O, P, R, T, X, N> fmt::Debug for BlockingRetry<'_, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: Extras,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingRetry").field("policy", self.call.policy()).finish_non_exhaustive()
    }
}

impl<F, O, P, R, T, S, G, L, Y, M, N> BlockingRetry<'_, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    F: FnMut(Attempt) -> O,
    P: Reading<O>,
    R: Rule<P::Error>,
    T: BlockingSleep,
    S: Sink<P::Error>,
    G: Guarding,
    L: Limiting,
    Y: Entropy,
    M: Finish<P::Value, P::Error>,
    N: Cancelling,
{
    /// Runs it: the operation is called in this thread, which sleeps in between.
    #[inline]
    pub fn run(mut self) -> M::Output {
        if !self.call.begins_at_once() {
            return self.run_from_start();
        }
        let mark = Mark::deeper(self.call.policy());
        let out = (self.operation)(Attempt::first(self.call.policy()));
        let is_inside = mark.is_inside();
        drop(mark);
        match self.reading.read(out) {
            Ok(value) => M::finish(Call::<&Policy, T, Setup<S, G, L, Y, M>>::end_at_once(value)),
            Err(failed) => self.run_after_first(failed, is_inside),
        }
    }

    #[cold]
    #[inline(never)]
    fn run_after_first(mut self, failed: (P::Error, P::Mark), is_inside: bool) -> M::Output {
        self.call.first_ended(is_inside);
        self.run_on(Some(failed))
    }

    fn run_from_start(mut self) -> M::Output {
        let ask = self.call.start(Duration::ZERO);
        if !ask.is_zero() {
            self.wait(ask);
        }
        self.run_on(None)
    }

    /// One attempt after the other. `failed` is what the first one failed with, if it was made.
    fn run_on(&mut self, mut failed: Option<(P::Error, P::Mark)>) -> M::Output {
        let mut kept = M::Kept::EMPTY;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = mark.into().unwrap_or_else(|| self.rule.outcome(&error));
                match self.call.failed(outcome, Some(&error), Duration::ZERO) {
                    Next::Stop(stop) => return M::finish(self.call.end(Err((stop, Ending::Failed(error))))),
                    Next::Wait(ask) => {
                        kept.put(error);
                        if !ask.is_zero() {
                            self.wait(ask);
                        }
                    }
                }
            }
            // The first attempt is made even if it was cancelled before.
            if self.call.attempt() > 0 && self.cancel.is_cancelled() {
                match self.call.cancelled::<M, _, _>(&mut kept) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            if let Err(stop) = self.call.begin() {
                self.call.refused::<P::Error>(stop);
                let why = Rejected::BreakerOpen(self.call.breaker_open());
                match self.call.given_up::<M, _, _>(&mut kept, stop, why) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            let time_limit = if L::LIMITS { self.call.time_limit() } else { None };
            let out = {
                let _mark = Mark::deeper(self.call.policy());
                (self.operation)(Attempt::of(&self.call, time_limit))
            };
            match self.reading.read(out) {
                Ok(value) => {
                    self.call.succeeded::<P::Error>();
                    return M::finish(self.call.end(Ok(value)));
                }
                Err(ended) => failed = Some(ended),
            }
        }
    }

    fn wait(&mut self, ask: Duration) {
        let mut left = Some(ask);
        while let Some(length) = left {
            match self.cancel.handle() {
                Some(cancel) if cancel.is_cancelled() => return,
                Some(cancel) => self.call.clock.sleep_unless(length, cancel),
                None => self.call.clock.sleep(length),
            }
            left = self.call.left();
        }
    }
}
