//! Retries in blocking code.
//!
//! Policies, rules, guards and events are the same as in async code, and so are the decisions; only the waiting
//! differs. No thread is started. An attempt cannot be interrupted: the operation receives its time limit and must pass
//! it on to what it calls.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::call::{Attempt, Call, Next};
use crate::cancel::{Cancel, Cancelling};
use crate::error::Rejected;
use crate::event::{Event, OnEvent, Sink};
use crate::future::Uncancelled;
use crate::rule::{BuiltIn, Classify, Plain, ResultReader, Rule, Validated, When};
use crate::scope::ScopeGuard;
use crate::setup::{
    CallOptions, Detailed, DetailedSetup, Ending, ErrorSlot, Finish, Guarded, Guarding, InnerError, LastAttempt,
    Limiting, Limits, Reported, Setup,
};
use crate::steps::{Parts, steps};
pub use crate::ticker::blocking::{Ticker, interval};
use crate::{Budget, Guards, Instant, Outcome, Policy, time::BlockingSleep, time::Entropy, time::ThreadSleep};

/// Retries a blocking operation until it succeeds or there is a reason to stop.
///
/// Call [`run`](BlockingRetry::run) to start it. The output is the operation's own value, or its own last error,
/// unwrapped. See [`retry`](fn@crate::retry) for the defaults.
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
    Plain: ResultReader<O>,
{
    retry_with(policy, move |_| operation())
}

/// Retries a blocking operation that receives the [`Attempt`], with its number and time limit.
#[inline]
pub fn retry_with<F, O>(
    policy: &Policy,
    operation: F,
) -> BlockingRetry<'_, F, O, Plain, BuiltIn, ThreadSleep, Setup, Uncancelled>
where
    F: FnMut(Attempt) -> O,
    Plain: ResultReader<O>,
{
    BlockingRetry::from_parts(Parts::plain(policy, ThreadSleep, operation, Uncancelled))
}

/// The builder returned by [`retry`]; [`run`](Self::run) starts the call.
///
/// The type parameters track the configured options; they are inferred.
#[must_use = "nothing is called before `run`"]
pub struct BlockingRetry<'p, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: CallOptions,
{
    operation: F,
    reader: P,
    rule: R,
    call: Call<&'p Policy, T, X>,
    cancel: N,
    output: PhantomData<fn() -> O>,
}

steps!(BlockingRetry, BlockingSleep, O, where { F: FnMut(Attempt) -> O, });

impl<'p, F, O, P, R, T, X, N> BlockingRetry<'p, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: CallOptions,
{
    #[inline]
    pub(crate) fn from_parts(parts: Parts<'p, F, P, R, T, X, N>) -> Self {
        let Parts { policy, operation, reader, rule, timer, setup, cancel } = parts;
        Self { operation, reader, rule, call: Call::new(policy, timer, setup), cancel, output: PhantomData }
    }

    fn into_parts(self) -> Parts<'p, F, P, R, T, X, N> {
        let Self { operation, reader, rule, call, cancel, .. } = self;
        let (policy, timer, setup) = call.into_parts();
        Parts { policy, operation, reader, rule, timer, setup, cancel }
    }
}

/// Cancellation from another thread.
impl<'p, F, O, P, R, T, S, G, L, Y, M, N> BlockingRetry<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    P: ResultReader<O>,
    T: BlockingSleep,
    Setup<S, G, L, Y, M>: CallOptions,
    Setup<S, G, L, Y, Detailed>: CallOptions,
{
    /// Ends the call when `cancel` is cancelled: during a sleep, or after the attempt in progress. The last error so
    /// far is kept.
    pub fn cancelled_by(self, cancel: &Cancel) -> BlockingRetry<'p, F, O, P, R, T, DetailedSetup<S, G, L, Y>, &Cancel> {
        BlockingRetry::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Detailed)).with_cancel(cancel))
    }
}

impl<F, O, P, R, T, X, N> fmt::Debug for BlockingRetry<'_, F, O, P, R, T, X, N>
where
    T: BlockingSleep,
    X: CallOptions,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingRetry").field("policy", self.call.policy()).finish_non_exhaustive()
    }
}

impl<F, O, P, R, T, S, G, L, Y, M, N> BlockingRetry<'_, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
where
    F: FnMut(Attempt) -> O,
    P: ResultReader<O>,
    R: Rule<P::Error>,
    T: BlockingSleep,
    S: Sink<P::Error>,
    G: Guarding,
    L: Limiting,
    Y: Entropy,
    M: Finish<P::Value, P::Error>,
    N: Cancelling,
{
    /// Runs the call: the operation is called on the current thread, which sleeps between attempts.
    #[inline]
    pub fn run(mut self) -> M::Output {
        if !self.call.has_fast_path() {
            return self.run_from_start();
        }
        let scope = ScopeGuard::enter(self.call.policy());
        let out = (self.operation)(Attempt::first(self.call.policy()));
        let is_nested = scope.is_nested();
        drop(scope);
        match self.reader.read(out) {
            Ok(value) => M::finish(Call::<&Policy, T, Setup<S, G, L, Y, M>>::fast_path_success(value)),
            Err(failed) => self.run_after_first(failed, is_nested),
        }
    }

    #[cold]
    #[inline(never)]
    fn run_after_first(mut self, failed: (P::Error, P::Mark), is_nested: bool) -> M::Output {
        self.call.leave_fast_path(is_nested);
        self.run_on(Some(failed))
    }

    fn run_from_start(mut self) -> M::Output {
        let delay = self.call.start(Duration::ZERO);
        if !delay.is_zero() {
            self.wait(delay);
        }
        self.run_on(None)
    }

    /// Runs one attempt after another. `failed` is the result of the first attempt, if it was already made.
    fn run_on(&mut self, mut failed: Option<(P::Error, P::Mark)>) -> M::Output {
        let mut last_error = M::LastError::EMPTY;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = mark.into().unwrap_or_else(|| self.rule.outcome(&error));
                match self.call.failed(outcome, Some(&error), Duration::ZERO) {
                    Next::Stop(stop) => return M::finish(self.call.end(Err((stop, Ending::Failed(error))))),
                    Next::Wait(delay) => {
                        last_error.put(error);
                        if !delay.is_zero() {
                            self.wait(delay);
                        }
                    }
                }
            }
            // The first attempt is made even if the call was cancelled before it.
            if self.call.attempt() > 0 && self.cancel.is_cancelled() {
                match self.call.cancelled::<M, _, _>(&mut last_error) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            if let Err(stop) = self.call.begin() {
                self.call.emit_rejection::<P::Error>(stop);
                let reason = Rejected::BreakerOpen(self.call.breaker_open());
                match self.call.given_up::<M, _, _>(&mut last_error, stop, reason) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            let time_limit = if L::LIMITS { self.call.time_limit() } else { None };
            let out = {
                let _scope = ScopeGuard::enter(self.call.policy());
                (self.operation)(Attempt::of(&self.call, time_limit))
            };
            match self.reader.read(out) {
                Ok(value) => {
                    self.call.succeeded::<P::Error>();
                    return M::finish(self.call.end(Ok(value)));
                }
                Err(ended) => failed = Some(ended),
            }
        }
    }

    fn wait(&mut self, delay: Duration) {
        let mut left = Some(delay);
        while let Some(length) = left {
            match self.cancel.handle() {
                Some(cancel) if cancel.is_cancelled() => return,
                Some(cancel) => self.call.clock.sleep_unless(length, cancel),
                None => self.call.clock.sleep(length),
            }
            left = self.call.remaining_wait();
        }
    }
}
