use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use crate::blocking::BlockingRetry;
#[cfg(target_has_atomic = "64")]
use crate::budget::Unlimited;
use crate::call::{Attempt, Call};
use crate::classify::{RuleError, RuleSet};
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
use crate::event::{Event, EventError};
use crate::future::{RetryFuture, Uncancelled};
use crate::marked::OperationError;
use crate::retry_loop::{ContextOperation, RetryLoop};
use crate::rule::{Plain, ResultReader};
use crate::setup::{Detailed, Guarded, LastAttempt, Limits, Setup};
use crate::shared::{Controlled, Listeners, Rules, Seeds, Shared};
use crate::steps::Parts;
use crate::{
    Breaker, Budget, Error, NestedRetries, Outcome, Policy, Seed, time::Clock, time::Sleep, time::ThreadSleep,
};

/// A policy together with everything that calls made through it share: budget, breaker, rules, listeners and limits.
///
/// It has no type parameter: one retrier serves every error type, and rules are stored per error type. Clones share all
/// state. Calls return [`Error<E>`]; [`into_inner`](crate::RetryResultExt::into_inner) converts it back to the
/// operation's own error.
///
/// A rule applies however the error is wrapped: see [`classify`](Self::classify).
///
/// ```
/// use stagger::{RetryResultExt as _, Policy, Rejected, Retrier, policy};
///
/// #[derive(Debug, PartialEq, thiserror::Error)]
/// #[error("{self:?}")]
/// enum ApiError { Busy, Gone, Rejected(Rejected) }
/// # impl From<Rejected> for ApiError { fn from(why: Rejected) -> Self { Self::Rejected(why) } }
///
/// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(3));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let api = Retrier::new(POLICY).named("api").when(|error: &ApiError| *error == ApiError::Busy);
/// let error = api.run(async || Err::<(), _>(ApiError::Gone)).await.unwrap_err();
/// assert_eq!((error.attempts(), error.into_inner()), (1, ApiError::Gone));
/// # });
/// ```
#[derive(Clone)]
pub struct Retrier {
    shared: Arc<Shared>,
}

/// The setup of a call made through a retrier.
type RetrierSetup<'a, T> = Setup<Listeners<&'a Shared>, Guarded<'a, T>, Limits, Seeds, Detailed>;

/// The future of a call made through a retrier.
type RetrierFuture<'a, F, O, T> = RetryFuture<'a, F, O, Plain, Rules<&'a Shared>, T, RetrierSetup<'a, T>, Uncancelled>;

/// A blocking call made through a retrier.
type RetrierBlocking<'a, F, O> =
    BlockingRetry<'a, F, O, Plain, Rules<&'a Shared>, ThreadSleep, RetrierSetup<'a, ThreadSleep>, Uncancelled>;

impl Retrier {
    /// Creates a retrier that retries according to `policy`, without budget, breaker, rules or listeners.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            shared: Arc::new(Shared {
                policy,
                name: Arc::from(""),
                budget: None,
                breaker: None,
                nested: NestedRetries::Disable,
                #[cfg(target_has_atomic = "64")]
                control: None,
                rules: RuleSet::default(),
                listeners: Vec::new(),
                limits: Limits::default(),
                seeds: Seeds(None),
            }),
        }
    }

    /// Sets the name of the target that the calls are made to. It appears in events, logs and metrics.
    #[must_use]
    pub fn named(self, target: &str) -> Self {
        self.change(|shared| shared.name = Arc::from(target)).under_control()
    }

    /// Sets the budget that every retry must acquire a permit from. To use one budget for several retriers, see
    /// [`shared_budget`](Self::shared_budget).
    #[must_use]
    pub fn budget(self, budget: impl Budget + 'static) -> Self {
        self.shared_budget(Arc::new(budget))
    }

    /// Sets a budget that is shared with other retriers.
    #[must_use]
    pub fn shared_budget(self, budget: Arc<dyn Budget>) -> Self {
        self.change(|shared| shared.budget = Some(budget)).under_control()
    }

    /// Sets the breaker that every attempt must be admitted by. To use one breaker for several retriers, see
    /// [`shared_breaker`](Self::shared_breaker).
    #[must_use]
    pub fn breaker(self, breaker: impl Breaker + 'static) -> Self {
        self.shared_breaker(Arc::new(breaker))
    }

    /// Sets a breaker that is shared with other retriers.
    #[must_use]
    pub fn shared_breaker(self, breaker: Arc<dyn Breaker>) -> Self {
        self.change(|shared| shared.breaker = Some(breaker)).under_control()
    }

    /// Puts the retrier under these [operator controls](crate::control), under its [name](Self::named): while the
    /// program runs, an operator can limit or disable its retries, and observe or disable its guards. A budget is not
    /// required, and name, budget and breaker can be set before or after this step. A budget set for a single call
    /// bypasses the control, unless it was put under the same control with [`RetryControls::budget`].
    ///
    /// A custom breaker takes part if it implements [`Breaker::set_enforcement`].
    #[cfg(target_has_atomic = "64")]
    #[must_use]
    pub fn controls(self, controls: &RetryControls) -> Self {
        self.change(|shared| {
            shared.control = Some(Controlled { controls: controls.clone(), budget: Arc::new(Unlimited) })
        })
        .under_control()
    }

    /// Sets what a call does inside an attempt of another call. Default: [`NestedRetries::Disable`].
    #[must_use]
    pub fn nested(self, nested: NestedRetries) -> Self {
        self.change(|shared| shared.nested = nested)
    }

    /// Sets the rule for errors of type `E`: transient if `is_transient` returns true, permanent otherwise. Replaces an
    /// earlier rule for `E`. See [`classify`](Self::classify) for the errors that it applies to.
    #[must_use]
    pub fn when<E: RuleError>(self, is_transient: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.classify(move |error: &E| if is_transient(error) { Outcome::TRANSIENT } else { Outcome::Permanent })
    }

    /// Sets the rule for errors of type `E`, returning the full [`Outcome`]: the failure kind and the server's hint.
    /// Replaces an earlier rule for `E`.
    ///
    /// It applies wherever the `E` is: if it is the operation's error, if it is in a `Box`, `Arc` or `Rc`, in an
    /// `anyhow::Error` or `eyre::Report` (with the features of these names), and if `source()` leads to it. Of several
    /// rules, that of the outermost error applies. Errors without a rule use the
    /// [built-in rules](crate::classify::built_in).
    #[must_use]
    pub fn classify<E: RuleError>(self, outcome: impl Fn(&E) -> Outcome + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.rules.set(outcome))
    }

    /// Sets the rule for operations whose error is an `E` that does not implement `Error`, such as a `String`. Replaces an
    /// earlier rule for `E`. It also applies to a `Box`, `Arc` or `Rc` of an `E`, but not to an error inside another.
    #[must_use]
    pub fn classify_exactly<E: 'static>(self, outcome: impl Fn(&E) -> Outcome + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.rules.set_exact(outcome))
    }

    /// Classifies errors of type `E` by what their [`source`](core::error::Error::source) leads to, unless `E` has a rule:
    /// for operations whose error is an enum of your own that wraps other errors. Boxed errors, and those in an
    /// `anyhow::Error` or `eyre::Report`, do not need it.
    #[must_use]
    pub fn look_into<E: RuleError>(self) -> Self {
        self.change(|shared| shared.rules.look_into::<E>())
    }

    /// Adds a listener that is called with every decision: before each sleep, and at the end of the call. Listeners
    /// added before are kept, and called first.
    #[must_use]
    pub fn on_event(self, listen: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.listeners.push(Arc::new(listen)))
    }

    /// Sets the timeout of each attempt. Default: none.
    #[must_use]
    pub fn timeout(self, length: Duration) -> Self {
        self.change(|shared| shared.limits.timeout = Some(length))
    }

    /// Sets whether the timeout also applies to the last attempt. Default: [`LastAttempt::Timed`].
    #[must_use]
    pub fn last_attempt(self, last: LastAttempt) -> Self {
        self.change(|shared| shared.limits.last = last)
    }

    /// Sets the seed that the delays of every call are drawn from. For tests: calls that share a seed wait in lockstep.
    #[must_use]
    pub fn seed(self, seed: Seed) -> Self {
        self.change(|shared| shared.seeds = Seeds(Some(seed)))
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Runs an async operation; see [`retry`](fn@crate::retry). Returns a future that is also a builder:
    /// `.with_report()`, `.with_inner_error()`, `.validate(..)`, `.deadline(..)` and `.cancelled_by(..)` can
    /// follow.
    #[cfg(feature = "tokio")]
    pub fn run<F, O>(&self, operation: F) -> RetrierFuture<'_, F, O, crate::time::Tokio>
    where
        F: FnMut() -> O,
        O: Future,
        Plain: ResultReader<O::Output>,
    {
        self.run_on(crate::time::Tokio, operation)
    }

    /// Runs an async operation with the given timer instead of tokio's; see [`run`](Self::run).
    pub fn run_on<F, O, T>(&self, timer: T, operation: F) -> RetrierFuture<'_, F, O, T>
    where
        F: FnMut() -> O,
        O: Future,
        T: Sleep + Clone,
        Plain: ResultReader<O::Output>,
    {
        RetryFuture::from_parts(self.parts(timer, operation))
    }

    /// Runs an async operation that borrows `context` mutably for each attempt.
    ///
    /// The future is `Send` if the operation's futures are, so it can be spawned whatever the operation borrows.
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    ///
    /// ```
    /// # use stagger::{Policy, Retrier, policy};
    /// # const POLICY: Policy = policy!(exponential(ms(1), ms(10)));
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let mut connection = vec![0];
    /// let answer = Retrier::new(POLICY)
    ///     .run_with(&mut connection, async |connection, attempt| {
    ///         connection.push(attempt.number);
    ///         if connection.len() < 4 { Err("not yet") } else { Ok(connection.len()) }
    ///     })
    ///     .await;
    /// assert_eq!((answer, connection), (Ok(4), vec![0, 1, 2, 3]));
    /// # });
    /// ```
    #[cfg(feature = "tokio")]
    pub async fn run_with<C, Op, T, E>(&self, context: &mut C, operation: Op) -> Result<T, Error<E::Inner>>
    where
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> ContextOperation<'a, C, Result<T, E>>,
        E: OperationError<Inner: EventError>,
    {
        self.run_with_on(crate::time::Tokio, context, operation).await
    }

    /// Runs an async operation that borrows `context`, with the given timer instead of tokio's; see
    /// [`run_with`](Self::run_with).
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    pub async fn run_with_on<S, C, Op, T, E>(
        &self,
        timer: S,
        context: &mut C,
        mut operation: Op,
    ) -> Result<T, Error<E::Inner>>
    where
        S: Sleep + Clone,
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> ContextOperation<'a, C, Result<T, E>>,
        E: OperationError<Inner: EventError>,
    {
        let mut call = self.call_on(timer);
        loop {
            let done = call.attempt_with(|attempt| operation.start(&mut *context, attempt)).await;
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Runs a blocking operation on the current thread, which sleeps between attempts.
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    pub fn blocking<F, T, E>(&self, mut operation: F) -> Result<T, Error<E::Inner>>
    where
        F: FnMut() -> Result<T, E>,
        E: OperationError<Inner: EventError>,
    {
        self.blocking_call(move |_| operation()).run()
    }

    /// Creates a blocking call that can be configured before it runs: `.with_report()`,
    /// `.deadline(..)`, `.cancelled_by(..)`. The operation receives the [`Attempt`], with its number and time limit.
    pub fn blocking_call<F, O>(&self, operation: F) -> RetrierBlocking<'_, F, O>
    where
        F: FnMut(Attempt) -> O,
        Plain: ResultReader<O>,
    {
        BlockingRetry::from_parts(self.parts(ThreadSleep, operation))
    }

    /// Creates a call in loop form: the operation may borrow anything, needs no closure, and can use `?` and `break`.
    /// See [`RetryLoop`].
    #[cfg(feature = "tokio")]
    pub fn call(&self) -> RetryLoop<'_, crate::time::Tokio, RetrierSetup<'_, crate::time::Tokio>, Rules<&Shared>> {
        self.call_on(crate::time::Tokio)
    }

    /// Creates a call in loop form with the given timer instead of tokio's; see [`call`](Self::call).
    pub fn call_on<T: Sleep + Clone>(&self, timer: T) -> RetryLoop<'_, T, RetrierSetup<'_, T>, Rules<&Shared>> {
        let setup = self.setup(timer.clone());
        RetryLoop::new(Call::new(&self.shared.policy, timer, setup), Rules(&self.shared))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn change(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }

    /// Puts the current budget and breaker under the operator control of the current name, if controls were set.
    #[cfg(target_has_atomic = "64")]
    fn under_control(self) -> Self {
        self.change(|shared| {
            let Some(controlled) = &mut shared.control else { return };
            controlled.budget = match &shared.budget {
                Some(budget) => controlled.controls.shared_budget(&shared.name, Arc::clone(budget)),
                None => Arc::new(controlled.controls.budget(&shared.name, Unlimited)),
            };
            if let Some(breaker) = &shared.breaker {
                controlled.controls.breaker(&shared.name, breaker);
            }
        })
    }

    /// Returns `self`: operator controls need 64-bit atomics, which this target does not have.
    #[cfg(not(target_has_atomic = "64"))]
    fn under_control(self) -> Self {
        self
    }

    fn setup<T: Clone>(&self, clock: T) -> RetrierSetup<'_, T> {
        Setup {
            sink: Listeners(&self.shared),
            guards: Guarded { guards: self.shared.guards(), nested: self.shared.nested, clock },
            limits: self.shared.limits,
            entropy: self.shared.seeds,
            mode: Detailed,
        }
    }

    fn parts<F, T: Clone + Clock>(
        &self,
        timer: T,
        operation: F,
    ) -> Parts<'_, F, Plain, Rules<&Shared>, T, RetrierSetup<'_, T>, Uncancelled> {
        Parts {
            policy: &self.shared.policy,
            operation,
            reader: Plain,
            rule: Rules(&self.shared),
            setup: self.setup(timer.clone()),
            timer,
            cancel: Uncancelled,
        }
    }
}

impl fmt::Debug for Retrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
