//! Retries in blocking code.
//!
//! Policies, rules, guards and events are the same as in async code, and so are the decisions; only the waiting
//! differs. No thread is started. An attempt cannot be interrupted: the operation receives its time limit and must pass
//! it on to what it calls.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::{Guard, NestedRetries, Outcome, Policy, Seed, StopReason};

use super::steps::{Handle, Handlers, steps};
use crate::call::machine::{Attempt, Call, Next};
use crate::call::options::{Configure, Configured, Observed, Options};
use crate::call::output::{Bare, Detailed, ErrorSlot, Finish, InnerError, OutputMode, Reported};
use crate::call::scope::ScopeGuard;
use crate::classify::rule::{Classify, Plain, ResultReader, Validated, When};
use crate::error::call_error::Cause;
use crate::error::rejected::Rejected;
pub use crate::reconnect::ticker::blocking::{Ticker, interval};
use crate::retrier::event::{Event, OnEvent};
use crate::retrier::limits::{Asleep, LastAttempt, Limits};
use crate::time::cancel::Cancel;
use crate::time::{BlockingSleep, Deadline, ThreadSleep};

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
) -> BlockingRetry<impl FnMut(Attempt) -> O, O, ThreadSleep, &Policy, Handlers>
where
    F: FnMut() -> O,
    Plain: ResultReader<O>,
{
    retry_with(policy, move |_| operation())
}

/// Retries a blocking operation that receives the [`Attempt`], with its number and time limit.
#[inline]
pub fn retry_with<F, O>(policy: &Policy, operation: F) -> BlockingRetry<F, O, ThreadSleep, &Policy, Handlers>
where
    F: FnMut(Attempt) -> O,
    Plain: ResultReader<O>,
{
    BlockingRetry::new(ThreadSleep, policy, operation)
}

/// The builder returned by [`retry`]; [`run`](Self::run) starts the call.
///
/// The type parameters track the configured options; they are inferred.
#[must_use = "call `.run()`: the operation is not called before"]
pub struct BlockingRetry<F, O, T, X, H, M = Bare>
where
    T: BlockingSleep + Clone,
    X: Options,
{
    operation: F,
    handlers: H,
    call: Call<X, T>,
    output: PhantomData<fn() -> (O, M)>,
}

steps!(BlockingRetry, [F, O], [], BlockingSleep, O, where { F: FnMut(Attempt) -> O, });

impl<F, O, T, X, M> BlockingRetry<F, O, T, X, Handlers, M>
where
    T: BlockingSleep + Clone,
    X: Options,
{
    #[inline]
    pub(crate) fn new(timer: T, options: X, operation: F) -> Self {
        Self { operation, handlers: Handlers::DEFAULT, call: Call::new(options, timer), output: PhantomData }
    }
}

impl<F, O, T, X, H, M> BlockingRetry<F, O, T, X, H, M>
where
    T: BlockingSleep + Clone,
    X: Options,
{
    fn rebuild<T2, X2, H2, M2>(
        self,
        change: impl FnOnce(T, X, H) -> (T2, X2, H2),
    ) -> BlockingRetry<F, O, T2, X2, H2, M2>
    where
        T2: BlockingSleep + Clone,
        X2: Options,
    {
        let seed = self.call.fixed_seed();
        let (timer, options, handlers) = change(self.call.clock, self.call.options, self.handlers);
        let call = Call::new(options, timer).seeded(seed);
        BlockingRetry { operation: self.operation, handlers, call, output: PhantomData }
    }

    fn with_seed(mut self, seed: Seed) -> Self {
        self.call = self.call.seeded(Some(seed));
        self
    }

    const fn clock(&self) -> &T {
        &self.call.clock
    }

    /// Ends the call when `cancel` is cancelled: during a sleep, or after the attempt in progress. The last error so
    /// far is kept. The output becomes [`Error<E>`](crate::Error) unless it was set.
    pub fn cancelled_by<'p>(self, cancel: &'p Cancel) -> BlockingRetry<F, O, T, Configured<'p>, H, M::Rejectable>
    where
        X: Configure<'p>,
        M: OutputMode,
    {
        self.rebuild(|timer, options, handlers| {
            let mut options = options.configure();
            options.is_timed = true;
            options.cancel = Some(cancel);
            (timer, options, handlers)
        })
    }
}

impl<F, O, T, X, H, M> fmt::Debug for BlockingRetry<F, O, T, X, H, M>
where
    T: BlockingSleep + Clone,
    X: Options,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingRetry").field("policy", self.call.policy()).finish_non_exhaustive()
    }
}

impl<F, O, T, X, H, M> BlockingRetry<F, O, T, X, H, M>
where
    F: FnMut(Attempt) -> O,
    T: BlockingSleep + Clone,
    X: Options,
{
    /// Runs the call: the operation is called on the current thread, which sleeps between attempts.
    // The bounds are on the method and not on the block, so that the compiler names the one that is not satisfied.
    #[inline]
    pub fn run(mut self) -> M::Output
    where
        X: Observed<H::Error>,
        H: Handle<O>,
        M: Finish<H::Value, H::Error>,
    {
        if !self.call.starts_fast::<H::Listener>() {
            return self.run_from_start(Ok(Permits::NONE));
        }
        let mut held = self.call.first_permits();
        match held.ask() {
            Ok(true) => {}
            Ok(false) => {
                let permits = held.into_permits();
                return self.run_from_start(Ok(permits));
            }
            Err(stop) => {
                drop(held);
                return self.run_from_start(Err(stop));
            }
        }
        let scope = ScopeGuard::enter(self.call.policy());
        let out = (self.operation)(Attempt::first(self.call.policy()));
        let is_nested = scope.is_nested();
        drop(scope);
        match self.handlers.read(out) {
            Ok(value) => {
                held.succeeded();
                self.call.fast_success::<M, _, H::Error>(value)
            }
            Err(failed) => {
                let permits = held.into_permits();
                self.run_after_first(failed, is_nested, permits)
            }
        }
    }
}

impl<F, O, T, X, H, M> BlockingRetry<F, O, T, X, H, M>
where
    F: FnMut(Attempt) -> O,
    T: BlockingSleep + Clone,
    X: Observed<H::Error>,
    H: Handle<O>,
    M: Finish<H::Value, H::Error>,
{
    #[cold]
    #[inline(never)]
    fn run_after_first(mut self, failed: (H::Error, H::Mark), is_nested: bool, permits: Permits) -> M::Output {
        self.call.leave_fast_path(is_nested, permits);
        self.run_on(Some(failed))
    }

    /// Runs a call from its start, or ends it if a guard has rejected it.
    fn run_from_start(mut self, place: Result<Permits, StopReason>) -> M::Output {
        match place {
            Ok(permits) => self.call.keep_place(permits),
            Err(stop) => {
                let (rejection, mut last_error) = (self.call.rejection(stop), M::LastError::EMPTY);
                if let Some(output) = self.call.rejected::<M, _, _>(&mut last_error, stop, rejection) {
                    return output;
                }
            }
        }
        let delay = self.call.start(Duration::ZERO);
        let mut asleep = None;
        // The first attempt is made in any case.
        if !delay.is_zero() && fall_asleep(&self.call.options, delay, &mut asleep).is_ok() {
            self.wait(delay);
        }
        drop(asleep);
        self.run_on(None)
    }

    /// Runs one attempt after another. `failed` is the result of the first attempt, if it was already made.
    ///
    /// An output is `None` for a plain call that something else than its operation would end. Nothing can, so
    /// `continue` is not reachable there.
    fn run_on(&mut self, mut failed: Option<(H::Error, H::Mark)>) -> M::Output {
        let mut last_error = M::LastError::EMPTY;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = self.handlers.outcome(&error, mark, self.call.rules());
                let mut asleep = None;
                let listener = self.handlers.listener();
                match self.call.failed_unless(listener, outcome, Some(&error), Duration::ZERO, |options, delay| {
                    fall_asleep(options, delay, &mut asleep).err()
                }) {
                    Next::Stop(stop) => match self.call.stopped::<M, _, _>(Cause::Operation(error), stop) {
                        Some(output) => return output,
                        None => continue,
                    },
                    Next::Wait { delay, .. } => {
                        last_error.put(error);
                        if !delay.is_zero() {
                            self.wait(delay);
                        }
                        drop(asleep);
                    }
                }
            }
            // The first attempt is made even if the call was cancelled before it.
            if self.call.attempts() > 0 && self.is_cancelled() {
                match self.call.cancelled::<M, _, _, _>(self.handlers.listener(), &mut last_error) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            if let Err((stop, rejected)) = self.wait_for_turn() {
                self.call.emit_stop(self.handlers.listener(), stop);
                match self.call.rejected::<M, _, _>(&mut last_error, stop, rejected) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            self.call.attempting();
            let attempt = self.call.attempt();
            let scope = ScopeGuard::enter(self.call.policy());
            let out = (self.operation)(attempt);
            drop(scope);
            match self.handlers.read(out) {
                Ok(value) => {
                    self.call.succeeded(self.handlers.listener());
                    return self.call.success::<M, _, H::Error>(value);
                }
                Err(ended) => failed = Some(ended),
            }
        }
    }

    #[inline]
    fn wait(&mut self, delay: Duration) {
        self.call.watch_wait(delay);
        let mut left = Some(delay);
        while let Some(length) = left {
            if !self.sleep(length) {
                return;
            }
            left = self.call.remaining_wait();
        }
    }

    #[inline]
    fn is_cancelled(&self) -> bool {
        match self.call.options.cancel() {
            Some(cancel) => cancel.is_cancelled(),
            None => false,
        }
    }

    /// Sleeps, and returns true; returns false if the call was cancelled before.
    #[inline]
    fn sleep(&self, length: Duration) -> bool {
        match self.call.options.cancel() {
            Some(cancel) if cancel.is_cancelled() => return false,
            Some(cancel) => self.call.clock.sleep_unless(length, cancel),
            None => self.call.clock.sleep(length),
        }
        true
    }

    /// Waits until the guards let the next attempt start.
    #[inline]
    fn wait_for_turn(&mut self) -> Result<(), (StopReason, Rejected)> {
        let mut asleep = None;
        loop {
            let wait = self.call.turn(self.handlers.listener())?;
            if wait.is_zero() {
                return Ok(());
            }
            if asleep.is_none() {
                if let Err(stop) = fall_asleep(&self.call.options, wait, &mut asleep) {
                    self.call.abandon();
                    return Err((stop, self.call.rejection(stop)));
                }
            }
            if !self.sleep(wait) || self.is_cancelled() {
                self.call.abandon();
                return Err((StopReason::Cancelled, Rejected::Cancelled));
            }
        }
    }
}

/// Counts the current thread among the sleeping ones of the retrier, if it has a limit and there is something to wait
/// for.
///
/// # Errors
/// The reason to stop, if as many as allowed are asleep.
#[inline]
fn fall_asleep<X: Options>(options: &X, delay: Duration, asleep: &mut Option<Asleep>) -> Result<(), StopReason> {
    match options.sleepers() {
        Some(sleepers) if !delay.is_zero() => {
            *asleep = Some(sleepers.enter().ok_or(StopReason::Threads)?);
            Ok(())
        }
        _ => Ok(()),
    }
}
