use core::any::TypeId;
use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use crate::blocking::BlockingRetry;
#[cfg(target_has_atomic = "64")]
use crate::budget::Unlimited;
use crate::call::{Attempt, Call};
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
use crate::event::{Event, EventError};
use crate::future::{RetryFuture, Uncancelled};
use crate::retry_loop::{Lend, RetryLoop};
use crate::rule::{Plain, Reading};
use crate::setup::{Explained, Guarded, LastAttempt, Limits, Setup};
use crate::shared::{Controlled, Listeners, RuleFor, Rules, Seeds, Shared};
use crate::steps::Parts;
use crate::{
    Breaker, Budget, Error, NestedRetries, Outcome, Policy, Seed, time::Clock, time::Sleep, time::ThreadSleep,
};

/// A policy with everything that the calls made through it share: budget, breaker, rules, listeners, limits.
///
/// It has no type parameter: one retrier serves every error type, and rules are kept by error type. Clones share
/// everything. What runs through it gives [`Error<E>`]; [`into_inner`](crate::RetryResultExt::into_inner) turns that into the caller's own
/// error.
///
/// ```
/// use stagger::{RetryResultExt as _, Policy, Rejected, Retrier, policy};
///
/// #[derive(Debug, PartialEq)]
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

/// What a retrier's calls bring along.
type Shares<'a, T> = Setup<Listeners<&'a Shared>, Guarded<'a, T>, Limits, Seeds, Explained>;

/// A call through a retrier.
type Running<'a, F, O, T> = RetryFuture<'a, F, O, Plain, Rules<&'a Shared>, T, Shares<'a, T>, Uncancelled>;

/// A blocking call through a retrier.
type RunningBlocking<'a, F, O> =
    BlockingRetry<'a, F, O, Plain, Rules<&'a Shared>, ThreadSleep, Shares<'a, ThreadSleep>, Uncancelled>;

impl Retrier {
    /// Calls are retried as this policy says.
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
                rules: HashMap::new(),
                listeners: Vec::new(),
                limits: Limits::default(),
                seeds: Seeds(None),
            }),
        }
    }

    /// What the calls are made to, for events, logs and metrics.
    #[must_use]
    pub fn named(self, target: &str) -> Self {
        self.change(|shared| shared.name = Arc::from(target)).under_control()
    }

    /// Every retry is paid for by this budget. An `Arc` of it can be kept, and shared with other retriers.
    #[must_use]
    pub fn budget(self, budget: impl Budget + 'static) -> Self {
        self.shared_budget(Arc::new(budget))
    }

    /// The same with a budget that others share.
    #[must_use]
    pub fn shared_budget(self, budget: Arc<dyn Budget>) -> Self {
        self.change(|shared| shared.budget = Some(budget)).under_control()
    }

    /// Every attempt asks this breaker.
    #[must_use]
    pub fn breaker(self, breaker: impl Breaker + 'static) -> Self {
        self.shared_breaker(Arc::new(breaker))
    }

    /// The same with a breaker that others share.
    #[must_use]
    pub fn shared_breaker(self, breaker: Arc<dyn Breaker>) -> Self {
        self.change(|shared| shared.breaker = Some(breaker)).under_control()
    }

    /// Joins these [operator controls](crate::control) under its [name](Self::named): its retries can be turned down or off and its
    /// guards be observed or off, while the program runs. It may have a budget or none, and name, budget and breaker may
    /// be given before or after. A budget that one call is given takes the place of the control, too, unless
    /// [`RetryControls::budget`] has put it under the same.
    ///
    /// A breaker of the program's own joins too if it has [`Breaker::set_enforcement`].
    #[cfg(target_has_atomic = "64")]
    #[must_use]
    pub fn controls(self, controls: &RetryControls) -> Self {
        self.change(|shared| {
            shared.control = Some(Controlled { controls: controls.clone(), budget: Arc::new(Unlimited) })
        })
        .under_control()
    }

    /// What a call does when it is made inside an attempt of another. Default: it stands down.
    #[must_use]
    pub fn nested(self, nested: NestedRetries) -> Self {
        self.change(|shared| shared.nested = nested)
    }

    /// For errors of this type: another attempt if `is_transient` is true, none otherwise. It takes the place of an
    /// earlier rule for the same type. Types without a rule go by the [built-in rules](crate::classify::built_in).
    #[must_use]
    pub fn when<E: 'static>(self, is_transient: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.classify(move |error: &E| if is_transient(error) { Outcome::TRANSIENT } else { Outcome::Permanent })
    }

    /// For errors of this type: what they mean, in full.
    #[must_use]
    pub fn classify<E: 'static>(self, outcome: impl Fn(&E) -> Outcome + Send + Sync + 'static) -> Self {
        let rule = Arc::new(RuleFor::<E>(Box::new(outcome)));
        self.change(|shared| {
            shared.rules.insert(TypeId::of::<E>(), rule);
        })
    }

    /// Tells this function what is decided, before each sleep and at the end; so do all that were given before.
    #[must_use]
    pub fn on_event(self, listen: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.listeners.push(Arc::new(listen)))
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(self, length: Duration) -> Self {
        self.change(|shared| shared.limits.timeout = Some(length))
    }

    /// Whether the timeout holds for the last attempt too. Default: it does.
    #[must_use]
    pub fn last_attempt(self, last: LastAttempt) -> Self {
        self.change(|shared| shared.limits.last = last)
    }

    /// Draws the delays of every call from this seed, so that all wait in lockstep: for tests.
    #[must_use]
    pub fn seed(self, seed: Seed) -> Self {
        self.change(|shared| shared.seeds = Seeds(Some(seed)))
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Runs an async operation; see [`retry`](fn@crate::retry). What it gives is a future and a builder: `.with_report()`,
    /// `.into_inner()`, `.with_marks()`, `.validate(..)`, `.deadline(..)`, `.cancelled_by(..)` can follow.
    #[cfg(feature = "tokio")]
    pub fn run<F, O>(&self, operation: F) -> Running<'_, F, O, crate::time::Tokio>
    where
        F: FnMut() -> O,
        O: Future,
        Plain: Reading<O::Output>,
    {
        self.run_on(crate::time::Tokio, operation)
    }

    /// [`run`](Self::run) on another timer.
    pub fn run_on<F, O, T>(&self, timer: T, operation: F) -> Running<'_, F, O, T>
    where
        F: FnMut() -> O,
        O: Future,
        T: Sleep + Clone,
        Plain: Reading<O::Output>,
    {
        RetryFuture::from_parts(self.parts(timer, operation))
    }

    /// Runs an async operation that borrows `context`, mutably, anew for each attempt.
    ///
    /// The future is `Send` where the operation's are, and can be spawned whatever it borrows.
    ///
    /// # Errors
    /// [`Error<E>`], with the last error.
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
    pub async fn run_with<C, Op, T, E>(&self, context: &mut C, operation: Op) -> Result<T, Error<E>>
    where
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> Lend<'a, C, Result<T, E>>,
        E: EventError,
    {
        self.run_with_on(crate::time::Tokio, context, operation).await
    }

    /// [`run_with`](Self::run_with) on another timer.
    ///
    /// # Errors
    /// [`Error<E>`], with the last error.
    pub async fn run_with_on<S, C, Op, T, E>(&self, timer: S, context: &mut C, mut operation: Op) -> Result<T, Error<E>>
    where
        S: Sleep + Clone,
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> Lend<'a, C, Result<T, E>>,
        E: EventError,
    {
        let mut call = self.call_on(timer);
        loop {
            let done = call.attempt_with(|attempt| operation.lend(&mut *context, attempt)).await;
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Runs a blocking operation in this thread, which sleeps in between.
    ///
    /// # Errors
    /// [`Error<E>`], with the last error.
    pub fn blocking<F, T, E>(&self, mut operation: F) -> Result<T, Error<E>>
    where
        F: FnMut() -> Result<T, E>,
        E: EventError,
    {
        self.blocking_call(move |_| operation()).run()
    }

    /// A blocking call that can be refined before it is run: `.with_report()`, `.with_marks()`, `.deadline(..)`,
    /// `.cancelled_by(..)`. Its operation is told which attempt it makes, and how long it may take.
    pub fn blocking_call<F, O>(&self, operation: F) -> RunningBlocking<'_, F, O>
    where
        F: FnMut(Attempt) -> O,
        Plain: Reading<O>,
    {
        BlockingRetry::from_parts(self.parts(ThreadSleep, operation))
    }

    /// The loop form: lends anything, no closure, `?` and `break` inside. See [`RetryLoop`].
    #[cfg(feature = "tokio")]
    pub fn call(&self) -> RetryLoop<'_, crate::time::Tokio, Shares<'_, crate::time::Tokio>, Rules<&Shared>> {
        self.call_on(crate::time::Tokio)
    }

    /// [`call`](Self::call) on another timer.
    pub fn call_on<T: Sleep + Clone>(&self, timer: T) -> RetryLoop<'_, T, Shares<'_, T>, Rules<&Shared>> {
        let setup = self.shares(timer.clone());
        RetryLoop::new(Call::new(&self.shared.policy, timer, setup), Rules(&self.shared))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn change(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }

    /// Puts what it has under the operator control of its name, if it has joined any.
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

    /// There are no operator controls here.
    #[cfg(not(target_has_atomic = "64"))]
    fn under_control(self) -> Self {
        self
    }

    fn shares<T: Clone>(&self, clock: T) -> Shares<'_, T> {
        Setup {
            sink: Listeners(&self.shared),
            guards: Guarded { guards: self.shared.guards(), nested: self.shared.nested, clock },
            limits: self.shared.limits,
            entropy: self.shared.seeds,
            mode: Explained,
        }
    }

    fn parts<F, T: Clone + Clock>(
        &self,
        timer: T,
        operation: F,
    ) -> Parts<'_, F, Plain, Rules<&Shared>, T, Shares<'_, T>, Uncancelled> {
        Parts {
            policy: &self.shared.policy,
            operation,
            reading: Plain,
            rule: Rules(&self.shared),
            setup: self.shares(timer.clone()),
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
