//! The async driver: a future that is also the builder of its call.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger_core::{Guard, NestedRetries, Outcome, Policy, Seed};

use super::steps::{Handle, Handlers, steps};
use crate::call::machine::{Call, Phase};
use crate::call::options::{Configure, Configured, Observed, Options};
use crate::call::output::{Bare, Detailed, ErrorSlot, Finish, InnerError, OutputMode, Reported};
use crate::call::poll::PollCall;
use crate::call::scope::ScopeGuard;
use crate::classify::rule::{Classify, Plain, ResultReader, Validated, When};
use crate::error::call_error::Cause;
use crate::error::rejected::Rejected;
use crate::retrier::event::{Event, OnEvent};
use crate::retrier::limits::{LastAttempt, Limits};
use crate::time::cancel::Uncancelled;
use crate::time::{Deadline, Sleep};

/// Retries an async operation until it succeeds or there is a reason to stop.
///
/// The output is the operation's own value, or its own last error, unwrapped, so `?` works with every error type. The
/// returned builder is itself the future: it is not boxed, it can be spawned, joined and selected, and it does nothing
/// until polled.
///
/// - The operation is called after the sleep, not before, and at least once.
/// - Without a rule, `io::Error`s are classified by kind and all other errors are transient; see
///   [`classify`](crate::classify).
/// - Dropping the future stops the call immediately and releases everything it holds: cancel-safe.
/// - Inside an attempt of another call it does not retry; see [`scope`](crate::scope).
///
/// ```
/// use stagger::{Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let calls = std::cell::Cell::new(0);
/// let answer = stagger::retry(&POLICY, async || {
///     calls.set(calls.get() + 1);
///     if calls.get() < 3 { Err("not yet") } else { Ok("done") }
/// })
/// .await;
/// assert_eq!((answer, calls.get()), (Ok("done"), 3));
/// # });
/// ```
#[cfg(feature = "tokio")]
#[inline]
pub fn retry<F>(policy: &Policy, operation: F) -> RetryFuture<F, crate::time::Tokio, &Policy, Handlers>
where
    F: Operation,
    Plain: ResultReader<Returned<F>>,
{
    retry_with_timer(policy, crate::time::Tokio, operation)
}

/// Retries an async operation on another timer: `retry_with_timer(&POLICY, AsyncIo, operation)`. See
/// [`retry`](fn@crate::retry).
#[inline]
pub fn retry_with_timer<F, T>(policy: &Policy, timer: T, operation: F) -> RetryFuture<F, T, &Policy, Handlers>
where
    F: Operation,
    T: Sleep + Clone,
    Plain: ResultReader<Returned<F>>,
{
    RetryFuture::new(timer, policy, operation)
}

pin_project! {
    /// The future returned by [`retry`](fn@crate::retry), and the builder that configures it.
    ///
    /// The type parameters track the configured options; they are inferred. Builder steps come before the first poll.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct RetryFuture<F, T, X, H, M = Bare, N = Uncancelled>
    where
        F: Operation,
        T: Sleep,
        T: Clone,
        X: Options,
        H: ResultReader<Returned<F>>,
        M: OutputMode,
    {
        operation: F,
        handlers: H,
        driver: PollCall<X, T>,
        #[pin]
        attempt: Option<F::Future>,
        last_error: M::LastError<H::Error>,
        #[pin]
        cancel: N,
        output: PhantomData<M>,
    }
}

steps!(RetryFuture, [F], [N], Sleep, Returned<F>, where { F: Operation, });

impl<F, T, X, M> RetryFuture<F, T, X, Handlers, M>
where
    F: Operation,
    T: Sleep + Clone,
    X: Options,
    Plain: ResultReader<Returned<F>>,
    M: OutputMode,
{
    #[inline]
    pub(crate) fn new(timer: T, options: X, operation: F) -> Self {
        Self {
            operation,
            handlers: Handlers::DEFAULT,
            driver: PollCall::new(Call::new(options, timer)),
            attempt: None,
            last_error: M::LastError::EMPTY,
            cancel: Uncancelled,
            output: PhantomData,
        }
    }
}

impl<F, T, X, H, M, N> RetryFuture<F, T, X, H, M, N>
where
    F: Operation,
    T: Sleep + Clone,
    X: Options,
    H: ResultReader<Returned<F>>,
    M: OutputMode,
{
    fn rebuild<T2, X2, H2, M2>(self, change: impl FnOnce(T, X, H) -> (T2, X2, H2)) -> RetryFuture<F, T2, X2, H2, M2, N>
    where
        T2: Sleep + Clone,
        X2: Options,
        H2: ResultReader<Returned<F>>,
        M2: OutputMode,
    {
        let Self { operation, handlers, driver: PollCall { call, .. }, cancel, .. } = self;
        let seed = call.fixed_seed();
        let (timer, options, handlers) = change(call.clock, call.options, handlers);
        RetryFuture {
            operation,
            handlers,
            driver: PollCall::new(Call::new(options, timer).seeded(seed)),
            attempt: None,
            last_error: M2::LastError::EMPTY,
            cancel,
            output: PhantomData,
        }
    }

    fn with_seed(mut self, seed: Seed) -> Self {
        self.driver.call = self.driver.call.seeded(Some(seed));
        self
    }

    const fn clock(&self) -> &T {
        &self.driver.call.clock
    }

    /// Ends the call when `cancel` completes, during a sleep or an attempt. If the operation completes at the same
    /// moment, its value is still returned. On cancellation the last error so far is kept. The output becomes
    /// [`Error<E>`](crate::Error) unless it was set.
    pub fn cancelled_by<'p, N2>(self, cancel: N2) -> RetryFuture<F, T, Configured<'p>, H, M::Rejectable, N2>
    where
        X: Configure<'p>,
        N2: Future,
    {
        let Self { operation, handlers, driver: PollCall { call, .. }, .. } = self;
        let seed = call.fixed_seed();
        let mut options = call.options.configure();
        options.is_timed = true;
        RetryFuture {
            operation,
            handlers,
            driver: PollCall::new(Call::new(options, call.clock).seeded(seed)),
            attempt: None,
            last_error: <M::Rejectable as OutputMode>::LastError::EMPTY,
            cancel,
            output: PhantomData,
        }
    }
}

impl<F, T, X, H, M, N> fmt::Debug for RetryFuture<F, T, X, H, M, N>
where
    F: Operation,
    T: Sleep + Clone,
    X: Options,
    H: ResultReader<Returned<F>>,
    M: OutputMode,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryFuture")
            .field("policy", self.driver.call.policy())
            .field("attempt", &self.driver.call.attempts())
            .finish_non_exhaustive()
    }
}

impl<F, T, X, H, M, N> Future for RetryFuture<F, T, X, H, M, N>
where
    F: Operation,
    T: Sleep + Clone,
    X: Observed<H::Error>,
    H: Handle<Returned<F>>,
    M: Finish<H::Value, H::Error>,
    N: Future,
{
    type Output = M::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.as_mut().project();
        let call = &mut this.driver.call;
        if call.phase == Phase::Fresh && call.starts_fast::<H::Listener>() {
            let mut held = call.first_permits();
            match held.ask() {
                Ok(true) => {}
                Ok(false) => {
                    let permits = held.into_permits();
                    call.keep_place(permits);
                    return self.poll_on(cx, None);
                }
                Err(stop) => {
                    drop(held);
                    let rejection = call.rejection(stop);
                    return ready(call.rejected::<M, _, _>(this.last_error, stop, rejection));
                }
            }
            this.attempt.set(Some((this.operation)()));
            let scope = ScopeGuard::enter(call.policy());
            let polled = match this.attempt.as_mut().as_pin_mut() {
                Some(attempt) => attempt.poll(cx),
                None => Poll::Pending,
            };
            let is_nested = scope.is_nested();
            drop(scope);
            let Poll::Ready(out) = polled else {
                let permits = held.into_permits();
                call.leave_fast_path(is_nested, permits);
                // There is no time limit, and nothing cancels a plain call.
                return if X::PLAIN { Poll::Pending } else { self.poll_cancel(cx) };
            };
            // Drop the attempt before the sleep and before returning, so that nothing it holds outlives it.
            this.attempt.set(None);
            match this.handlers.read(out) {
                Ok(value) => {
                    held.succeeded();
                    return Poll::Ready(call.fast_success::<M, _, H::Error>(value));
                }
                Err(failed) => {
                    let permits = held.into_permits();
                    call.leave_fast_path(is_nested, permits);
                    return self.poll_on(cx, Some(failed));
                }
            }
        }
        self.poll_on(cx, None)
    }
}

impl<F, T, X, H, M, N> RetryFuture<F, T, X, H, M, N>
where
    F: Operation,
    T: Sleep + Clone,
    X: Observed<H::Error>,
    H: Handle<Returned<F>>,
    M: Finish<H::Value, H::Error>,
    N: Future,
{
    /// Polls the cancellation of an attempt that is pending.
    fn poll_cancel(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M::Output> {
        let mut this = self.project();
        let call = &mut this.driver.call;
        if !call.is_cancelled(|| this.cancel.poll(cx).is_ready()) {
            return Poll::Pending;
        }
        this.attempt.set(None);
        ready(call.cancelled::<M, _, _, _>(this.handlers.listener(), this.last_error))
    }

    /// Polls everything but a call that succeeds immediately. `failed` is the result of the first attempt, if it has
    /// just failed.
    #[inline(never)]
    fn poll_on(self: Pin<&mut Self>, cx: &mut Context<'_>, mut failed: Option<(H::Error, H::Mark)>) -> Poll<M::Output> {
        let mut this = self.project();
        let driver = this.driver;
        loop {
            if let Some((error, mark)) = failed.take() {
                let outcome = this.handlers.outcome(&error, mark, driver.call.rules());
                if let Some(stop) = driver.failed(this.handlers.listener(), outcome, Some(&error)) {
                    return ready(driver.call.stopped::<M, _, _>(Cause::Operation(error), stop));
                }
                this.last_error.put(error);
            }
            if this.attempt.is_none() {
                driver.start();
                // A first attempt that is due is made even if the call was cancelled before it.
                let waits = || driver.call.phase != Phase::Due || driver.call.attempts() > 0;
                if !X::PLAIN && waits() && driver.call.is_cancelled(|| this.cancel.as_mut().poll(cx).is_ready()) {
                    if driver.call.attempts() > 0 || driver.call.is_held() {
                        return ready(driver.call.cancelled::<M, _, _, _>(this.handlers.listener(), this.last_error));
                    }
                    // Cancelled during the initial spread: the operation still runs once.
                    driver.skip_wait();
                }
                if let Err((stop, rejected)) = ready!(driver.poll_begin(this.handlers.listener(), cx)) {
                    driver.call.emit_stop(this.handlers.listener(), stop);
                    return ready(driver.call.rejected::<M, _, _>(this.last_error, stop, rejected));
                }
                driver.call.attempting();
                this.attempt.set(Some((this.operation)()));
            }
            let Some(attempt) = this.attempt.as_mut().as_pin_mut() else { return Poll::Pending };
            let scope = ScopeGuard::enter(driver.call.policy());
            let polled = attempt.poll(cx);
            drop(scope);
            if let Poll::Ready(out) = polled {
                // Drop the attempt before the sleep and before returning, so that nothing it holds outlives it.
                this.attempt.set(None);
                match this.handlers.read(out) {
                    Ok(value) => {
                        driver.call.succeeded(this.handlers.listener());
                        return Poll::Ready(driver.call.success::<M, _, H::Error>(value));
                    }
                    Err(ended) => failed = Some(ended),
                }
                continue;
            }
            if !X::PLAIN && driver.call.is_cancelled(|| this.cancel.as_mut().poll(cx).is_ready()) {
                this.attempt.set(None);
                return ready(driver.call.cancelled::<M, _, _, _>(this.handlers.listener(), this.last_error));
            }
            ready!(driver.poll_limit(cx));
            this.attempt.set(None);
            if let Some(stop) = driver.timed_out::<H::Error, _>(this.handlers.listener()) {
                // The timeout is the most recent failure; reporting the error of an earlier attempt would mislead.
                return ready(driver.call.stopped::<M, _, _>(Cause::Rejected(Rejected::TimedOut), stop));
            }
        }
    }
}

/// An async operation: a closure without arguments that starts one attempt each time it is called, and returns its
/// future. An `async` closure is one, and so is an `async fn` without parameters.
///
/// Implemented for every such closure. An `async move` closure that uses what it has captured is none: each of its
/// futures borrows from it, so there could be only one. Leave out `move`; or if the future must own its variables, as
/// one that is spawned, clone them for each attempt:
///
/// ```
/// use stagger::{Policy, retry};
///
/// async fn fetch(name: &str) -> Result<usize, std::io::Error> {
///     Ok(name.len())
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let name = String::from("api");
/// assert_eq!(retry(&Policy::DEFAULT, async || fetch(&name).await).await.unwrap(), 3);
///
/// let policy = Policy::DEFAULT;
/// let call = async move {
///     let attempt = move || {
///         let name = name.clone();
///         async move { fetch(&name).await }
///     };
///     retry(&policy, attempt).await
/// };
/// assert_eq!(tokio::spawn(call).await.unwrap().unwrap(), 3);
/// # });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async operation, which is a closure that returns a new future each time it is called",
    label = "expected `async || fetch().await` without `move`, or a closure that returns a future",
    note = "an `async move` closure lends what it owns to one attempt, so it cannot make the next: write \
            `async || fetch(&name).await`, or if the future must own it, \
            `move || {{ let name = name.clone(); async move {{ fetch(&name).await }} }}`",
    note = "pass the closure and not its future; for blocking code, use `stagger::blocking`",
    note = "an `async` closure must not change what it captures: pass it with `Retrier::run_with`, or write the \
            loop with `Retrier::call`",
    note = "a generic operation with the bound `AsyncFn` is called in a closure: `async || operation().await`"
)]
pub trait Operation: FnMut() -> <Self as Operation>::Future {
    /// The future of one attempt.
    type Future: Future;
}

#[diagnostic::do_not_recommend]
impl<F, O> Operation for F
where
    F: FnMut() -> O,
    O: Future,
{
    type Future = O;
}

/// What the attempts of `F` return.
pub(crate) type Returned<F> = <<F as Operation>::Future as Future>::Output;

/// Returns the output of a call that has ended. `None` is not reachable: nothing rejects a call whose output cannot
/// represent it.
fn ready<T>(output: Option<T>) -> Poll<T> {
    match output {
        Some(output) => Poll::Ready(output),
        None => Poll::Pending,
    }
}
