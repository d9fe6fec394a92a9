//! The retrier, which is its own builder.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger_core::guard::Guard;
use stagger_core::machine::Strategy;
use stagger_core::{NestedRetries, Outcome, Policy, PolicyBuilder, PolicyError, Seed};

use super::limits::Sleepers;
use crate::classify::rule::{RuleError, RuleSet};
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
use crate::retrier::event::Event;
use crate::retrier::limits::{LastAttempt, Limits};
use crate::retrier::shared::RetrierState;
use crate::retrier::target::{GuardModel, OwnGuard};

/// A policy together with everything that calls made through it share: guards, rules, listeners and limits.
///
/// It has no type parameter: one retrier serves every error type, and rules are stored per error type. Clones share all
/// state. Calls return [`Error<E>`](crate::Error); [`into_inner`](crate::RetryResultExt::into_inner) converts it back
/// to the operation's own error.
///
/// A retrier is the only configuration. Every entry point takes one, or a policy, which becomes a retrier that has
/// nothing else. So what is set once holds in closures, queues, batches, connections and integrations alike.
/// [`with`](Self::with) changes the policy for some of the calls, and shares the rest.
///
/// A rule applies however the error is wrapped: see [`classify`](Self::classify).
///
/// If the machine sleeps or the process is stopped while calls wait, all timers that came due meanwhile fire at once. A
/// wait of at least 100 ms that ended more than a second ago is therefore spread again, once: over the longest delay
/// that the policy could have drawn, but over no more time than it is late, and within the deadline and `max_elapsed`.
/// Listeners are not told. The clock of the call's timer decides; whether the system's clock advances while the machine
/// sleeps depends on the operating system. See [`spread_again`](crate::machine::spread_again).
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
    shared: Arc<RetrierState>,
}

impl Retrier {
    /// Creates a retrier that retries according to `policy`, without guards, rules or listeners.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            shared: Arc::new(RetrierState {
                policy,
                name: Arc::from(""),
                own: Vec::new(),
                guards: Vec::new(),
                nested: NestedRetries::Disable,
                #[cfg(target_has_atomic = "64")]
                control: None,
                rules: RuleSet::default(),
                listeners: Vec::new(),
                strategy: None,
                limits: Limits::NONE,
                sleepers: None,
                seed: None,
                #[cfg(target_has_atomic = "64")]
                targets: None,
                #[cfg(target_has_atomic = "64")]
                creates_targets_late: false,
            }),
        }
    }

    /// Sets the name of the target that the calls are made to. It appears in events, logs and metrics.
    #[must_use]
    pub fn named(self, target: &str) -> Self {
        self.change_guards(|shared| shared.name = Arc::from(target))
    }

    /// Adds a guard behind those that it has: a budget, a breaker, a quiet period, a pacer, or one of your own. Every
    /// attempt asks the guards in the order in which they were added. Default: none. With more than
    /// [`MAX_GUARDS`](crate::guard::MAX_GUARDS), the operator control and those of a single call included, every
    /// attempt is rejected.
    ///
    /// A client of several targets, such as an HTTP client, has a guard with these settings for each target: see
    /// [`PollRetry::target`](crate::PollRetry::target). To use one guard for several retriers or all targets, see
    /// [`shared_guard`](Self::shared_guard).
    #[must_use]
    pub fn guard(self, guard: impl Guard + 'static) -> Self {
        let guard = Arc::new(guard);
        let model = Some(Arc::clone(&guard) as Arc<dyn GuardModel>);
        self.add(OwnGuard { guard, model })
    }

    /// Adds a guard that is shared with other retriers, and by all targets of a client.
    #[must_use]
    pub fn shared_guard(self, guard: Arc<dyn Guard>) -> Self {
        self.add(OwnGuard { guard, model: None })
    }

    /// Adds a budget, from which every retry must reserve: [`guard`](Self::guard) by another name.
    #[must_use]
    pub fn budget(self, budget: impl Guard + 'static) -> Self {
        self.guard(budget)
    }

    /// Adds a circuit breaker, which must admit every attempt: [`guard`](Self::guard) by another name.
    #[must_use]
    pub fn breaker(self, breaker: impl Guard + 'static) -> Self {
        self.guard(breaker)
    }

    /// Puts the retrier under these [operator controls](crate::control), under its [name](Self::named): while the
    /// program runs, an operator can limit or disable its retries, and observe or disable its guards, whatever they
    /// are. Name and guards can be set before or after this step. A guard of a single call is not under the control,
    /// unless it is a [`Controlled`](crate::budget::Controlled).
    #[cfg(target_has_atomic = "64")]
    #[must_use]
    pub fn controls(self, controls: &RetryControls) -> Self {
        self.change_guards(|shared| shared.control = Some(controls.clone()))
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

    /// Sets the rule for operations whose error is an `E` that does not implement `Error`, such as a `String`. Replaces
    /// an earlier rule for `E`. It also applies to a `Box`, `Arc` or `Rc` of an `E`, but not to an error inside
    /// another.
    #[must_use]
    pub fn classify_exactly<E: 'static>(self, outcome: impl Fn(&E) -> Outcome + Send + Sync + 'static) -> Self {
        self.change(|shared| shared.rules.set_exact(outcome))
    }

    /// Classifies errors of type `E` by what their [`source`](core::error::Error::source) leads to, unless `E` has a
    /// rule: for operations whose error is an enum of your own that wraps other errors. Boxed errors, and those in an
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

    /// Sets a strategy of your own, which computes the delays in place of the policy's backoff and jitter. Everything
    /// else holds as before: the policy's limits, hints and spread, the guards, rules and listeners. Default: none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::machine::RetryContext;
    /// use stagger::testing::VirtualClock;
    /// use stagger::{Policy, Retrier, policy};
    ///
    /// const POLICY: Policy = policy!(zero().max_attempts(4));
    ///
    /// /// Waits for as many seconds as the retry has in its number.
    /// let counting = |retry: &RetryContext| Some(Duration::from_secs(u64::from(retry.number)));
    /// let api = Retrier::new(POLICY).strategy(counting);
    /// let clock = VirtualClock::new();
    /// let answer = api.blocking_call(|_| Err::<(), _>("down")).timer(clock.clone()).run();
    /// assert_eq!(answer.unwrap_err().attempts(), 4);
    /// assert_eq!(clock.elapsed(), Duration::from_secs(1 + 2 + 3));
    /// ```
    #[must_use]
    pub fn strategy(self, strategy: impl Strategy + 'static) -> Self {
        let strategy: Arc<dyn Strategy> = Arc::new(strategy);
        self.change(|shared| shared.strategy = Some(strategy))
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

    /// Sets how many threads may be asleep at a time in the blocking calls of this retrier and its clones. Default: no
    /// limit.
    ///
    /// A blocking call holds its thread while it waits, so an outage can put all threads of a pool to sleep, and those
    /// that serve other purposes with them. Where as many as allowed are asleep, a call that would have to wait stops
    /// instead, with [`StopReason::Threads`](crate::StopReason::Threads) and its last error, and gives back what the
    /// guards reserved. Choose a limit below the size of the pool. With 0, blocking calls repeat only without a delay.
    /// A policy's spread before the first attempt is a wait, too: without room for it, the attempt is made at once.
    /// Async calls hold no thread, and are not counted.
    ///
    /// ```
    /// use stagger::testing::NoSleep;
    /// use stagger::{Policy, Retrier, StopReason};
    ///
    /// let api = Retrier::new(Policy::DEFAULT).max_sleeping_threads(0);
    /// let error = api.blocking_call(|_| Err::<(), _>("down")).timer(NoSleep).run().unwrap_err();
    /// assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Threads, 1, Some(&"down")));
    /// ```
    #[must_use]
    pub fn max_sleeping_threads(self, most: usize) -> Self {
        self.change(|shared| shared.sleepers = Some(Arc::new(Sleepers::new(most))))
    }

    /// Returns how many threads are asleep in the blocking calls of this retrier and its clones; 0 if there is no
    /// [limit](Self::max_sleeping_threads), because they are not counted then.
    #[must_use]
    pub fn sleeping_threads(&self) -> usize {
        match &self.shared.sleepers {
            Some(sleepers) => sleepers.asleep(),
            None => 0,
        }
    }

    /// Sets the seed that the delays of every call are drawn from. For tests: calls that share a seed wait in lockstep.
    #[must_use]
    pub fn seed(self, seed: Seed) -> Self {
        self.change(|shared| shared.seed = Some(seed))
    }

    /// Returns the name of the target; "" if none was set.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// Returns a retrier with a changed policy, which shares everything else with this one: guards, also those of its
    /// targets, rules, listeners, limits and operator controls. Use it to vary one call.
    ///
    /// # Errors
    /// Returns the problems of the changed policy, all at once.
    ///
    /// ```
    /// # use stagger::{Policy, Retrier, policy};
    /// # const POLICY: Policy = policy!(exponential(ms(1), ms(10)));
    /// let api = Retrier::new(POLICY).named("api");
    /// let once = api.with(|policy| policy.max_attempts(1))?;
    ///
    /// let mut calls = 0;
    /// let answer = once.blocking(|| { calls += 1; Err::<(), _>("down") });
    /// assert_eq!((answer.is_err(), calls), (true, 1));
    /// # Ok::<(), stagger::PolicyError>(())
    /// ```
    pub fn with(&self, change: impl FnOnce(PolicyBuilder) -> PolicyBuilder) -> Result<Self, PolicyError> {
        let policy = change(self.shared.policy.to_builder()).build()?;
        Ok(self.clone().change(|shared| shared.policy = policy))
    }

    pub(crate) fn shared(&self) -> &RetrierState {
        &self.shared
    }

    fn change(mut self, change: impl FnOnce(&mut RetrierState)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }

    /// Changes what the guards depend on. The targets get new ones; after any other change they keep theirs.
    fn change_guards(self, change: impl FnOnce(&mut RetrierState)) -> Self {
        self.change(|shared| {
            change(shared);
            shared.refresh_guards();
        })
    }

    fn add(self, guard: OwnGuard) -> Self {
        self.change_guards(|shared| shared.own.push(guard))
    }
}

/// Creates a retrier that has nothing but this policy.
impl From<Policy> for Retrier {
    fn from(policy: Policy) -> Self {
        Self::new(policy)
    }
}

/// Creates a retrier that has nothing but this policy.
impl From<&Policy> for Retrier {
    fn from(policy: &Policy) -> Self {
        Self::new(*policy)
    }
}

/// Clones the retrier: both share everything.
impl From<&Self> for Retrier {
    fn from(retrier: &Self) -> Self {
        retrier.clone()
    }
}

impl fmt::Debug for Retrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
