use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::call::{Attempt, Call, Next};
use crate::coop;
use crate::error::{Error, Rejected};
use crate::event::Sink;
use crate::marked::OperationError;
use crate::rule::Rule;
use crate::scope::ScopeGuard;
use crate::setup::{self, CallOptions, Ending, Guarded, Setup};
use crate::{Budget, Outcome, Policy, StopReason, time::Sleep};

/// A call whose loop is written by the caller.
///
/// The operation may borrow anything, needs no closure, and can use `?` and `break`:
///
/// ```
/// # use stagger::{Error, Policy, Retrier, policy};
/// # struct Connection; impl Connection { async fn query(&mut self, _: &str) -> Result<u32, String> { Ok(7) } }
/// # const POLICY: Policy = policy!(exponential(ms(1), ms(10)));
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let (api, mut connection, sql) = (Retrier::new(POLICY), Connection, String::new());
/// let mut call = api.call();
/// let rows = loop {
///     if let Some(done) = call.attempt(connection.query(&sql)).await {
///         break done?;
///     }
/// };
/// # assert_eq!(rows, 7);
/// # Ok::<(), Error<String>>(()) }).unwrap();
/// ```
///
/// Dropping it, or the future of an attempt, ends the call: cancel-safe. After its end, the next attempt starts a new
/// call.
#[must_use = "a call does nothing until `attempt`"]
pub struct RetryLoop<'p, T: Sleep, X: CallOptions, R> {
    call: Call<&'p Policy, T, X>,
    rule: R,
    sleeping: Option<T::Sleeping>,
    next: NextAttempt,
}

/// Whether the next attempt has been admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextAttempt {
    /// The call has not started, or the previous one has ended.
    NotAdmitted,
    /// The guards have already admitted the next attempt.
    Admitted,
}

impl<T: Sleep, X: CallOptions, R> fmt::Debug for RetryLoop<'_, T, X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLoop").field("attempt", &self.call.attempt()).finish_non_exhaustive()
    }
}

impl<'p, T: Sleep, X: CallOptions, R> RetryLoop<'p, T, X, R> {
    pub(crate) const fn new(call: Call<&'p Policy, T, X>, rule: R) -> Self {
        Self { call, rule, sleeping: None, next: NextAttempt::NotAdmitted }
    }

    /// Returns the number of attempts made so far.
    pub const fn attempts(&self) -> u32 {
        self.call.attempt()
    }

    /// Makes one attempt with this future. Returns `Some` when the call ends. `None` means that the attempt failed, the
    /// sleep is over, and the next attempt is due.
    pub async fn attempt<F, V, E>(&mut self, attempt: F) -> Option<Result<V, Error<E::Inner>>>
    where
        F: Future<Output = Result<V, E>>,
        E: OperationError,
        X: Sink<E::Inner>,
        R: Rule<E::Inner>,
    {
        self.attempt_with(|_| attempt).await
    }

    /// Makes one attempt with a future that is created when the attempt is due.
    pub(crate) async fn attempt_with<F, V, E>(
        &mut self,
        make: impl FnOnce(Attempt) -> F,
    ) -> Option<Result<V, Error<E::Inner>>>
    where
        F: Future<Output = Result<V, E>>,
        E: OperationError,
        X: Sink<E::Inner>,
        R: Rule<E::Inner>,
    {
        let guard = AttemptGuard(self);
        let this = &mut *guard.0;
        if this.next == NextAttempt::NotAdmitted {
            this.call.restart();
            let delay = this.call.start(this.call.clock.resolution());
            this.sleep(delay).await;
            if let Err(end) = this.begin(None) {
                return Some(Err(end));
            }
        }
        this.next = NextAttempt::NotAdmitted;
        this.call.set_stage(setup::PermitStage::Attempting);
        let limit = if X::LIMITS { this.call.time_limit() } else { None };
        let future = make(Attempt::of(&this.call, limit));
        let limit = limit.map(|limit| this.call.clock.sleep(limit));
        let (outcome, error) = match (TimedAttempt { future, limit, policy: this.call.policy() }).await {
            Some(Ok(value)) => {
                this.call.succeeded::<E::Inner>();
                return Some(Ok(value));
            }
            Some(Err(error)) => {
                let (error, mark) = error.into_parts();
                (mark.into().unwrap_or_else(|| this.rule.outcome(&error)), Some(error))
            }
            None => (Outcome::TRANSIENT, None),
        };
        match this.call.failed(outcome, error.as_ref(), this.call.clock.resolution()) {
            Next::Stop(stop) => Some(Err(this.end(stop, error, Rejected::TimedOut))),
            Next::Wait(delay) => {
                this.sleep(delay).await;
                // The breaker is asked here, while the last error is still available.
                this.begin(error).err().map(Err)
            }
        }
    }

    fn begin<E>(&mut self, last: Option<E>) -> Result<(), Error<E>>
    where
        X: Sink<E>,
    {
        match self.call.begin() {
            Ok(()) => {
                self.next = NextAttempt::Admitted;
                self.call.set_stage(setup::PermitStage::Admitted);
                Ok(())
            }
            Err(stop) => {
                self.call.emit_rejection::<E>(stop);
                let reason = Rejected::BreakerOpen(self.call.breaker_open());
                Err(self.end(stop, last, reason))
            }
        }
    }

    fn end<E>(&mut self, stop: StopReason, last: Option<E>, reason: Rejected) -> Error<E> {
        let ending = last.map_or(Ending::Rejected(reason), Ending::Failed);
        match self.call.end::<Infallible, _, _>(Err((stop, ending))).detailed() {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }

    async fn sleep(&mut self, delay: core::time::Duration) {
        if delay.is_zero() {
            return coop::yield_if_due(self.attempts()).await;
        }
        let mut left = Some(delay);
        while let Some(length) = left {
            match &mut self.sleeping {
                Some(sleeping) => self.call.clock.rearm(sleeping, length),
                None => self.sleeping = Some(self.call.clock.sleep(length)),
            }
            if let Some(sleeping) = &mut self.sleeping {
                sleeping.await;
            }
            left = self.call.remaining_wait();
        }
    }
}

/// Per-call guard settings.
impl<'p, T, S, L, Y, M, R> RetryLoop<'p, T, Setup<S, Guarded<'p, T>, L, Y, M>, R>
where
    T: Sleep,
    Setup<S, Guarded<'p, T>, L, Y, M>: CallOptions,
{
    /// Sets the budget for this call only, replacing the shared one. Comes before the first attempt.
    pub fn budget(self, budget: &'p dyn Budget) -> Self {
        let (policy, timer, mut setup) = self.call.into_parts();
        setup.guards.guards.budget = Some(budget);
        Self::new(Call::new(policy, timer, setup), self.rule)
    }
}

/// Drop guard of an attempt in progress: releases the permits if its future is dropped.
struct AttemptGuard<'a, 'p, T: Sleep, X: CallOptions, R>(&'a mut RetryLoop<'p, T, X, R>);

impl<T: Sleep, X: CallOptions, R> Drop for AttemptGuard<'_, '_, T, X, R> {
    fn drop(&mut self) {
        if self.0.next == NextAttempt::NotAdmitted {
            self.0.call.abandon();
        }
    }
}

pin_project! {
    /// One attempt inside its scope, with its time limit: `None` if it exceeds it.
    struct TimedAttempt<'p, F, S> {
        #[pin]
        future: F,
        limit: Option<S>,
        policy: &'p Policy,
    }
}

impl<F: Future, S: Future<Output = ()> + Unpin> Future for TimedAttempt<'_, F, S> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let polled = {
            let _scope = ScopeGuard::enter(this.policy);
            this.future.poll(cx)
        };
        match (polled, this.limit) {
            (Poll::Ready(out), _) => Poll::Ready(Some(out)),
            (Poll::Pending, Some(limit)) => Pin::new(limit).poll(cx).map(|()| None),
            (Poll::Pending, None) => Poll::Pending,
        }
    }
}

/// An operation that borrows its context; implemented for every closure that fits.
///
/// Unlike an `AsyncFnMut` bound, it carries whether the returned futures are `Send`.
pub trait ContextOperation<'a, C: ?Sized, Out>: sealed::Sealed<'a, C, Out> {
    /// The future of one attempt.
    type Future: Future<Output = Out>;

    /// Starts one attempt.
    fn start(&mut self, context: &'a mut C, attempt: Attempt) -> Self::Future;
}

impl<'a, C: ?Sized + 'a, Out, F, Fut> ContextOperation<'a, C, Out> for F
where
    F: FnMut(&'a mut C, Attempt) -> Fut,
    Fut: Future<Output = Out>,
{
    type Future = Fut;

    fn start(&mut self, context: &'a mut C, attempt: Attempt) -> Fut {
        self(context, attempt)
    }
}

mod sealed {
    use super::{Attempt, Future};

    /// Prevents other implementations.
    pub trait Sealed<'a, C: ?Sized, Out> {}

    impl<'a, C: ?Sized + 'a, Out, F, Fut> Sealed<'a, C, Out> for F
    where
        F: FnMut(&'a mut C, Attempt) -> Fut,
        Fut: Future<Output = Out>,
    {
    }
}
