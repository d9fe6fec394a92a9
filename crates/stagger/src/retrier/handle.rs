//! The retrier, which is its own builder.

#[cfg(target_has_atomic = "64")]
use core::any::Any;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

#[cfg(target_has_atomic = "64")]
use stagger_core::budget::Unlimited;
use stagger_core::guard::Limiter;
use stagger_core::machine::Strategy;
#[cfg(target_has_atomic = "64")]
use stagger_core::quiet::QuietPeriod;
use stagger_core::{Breaker, Budget, NestedRetries, Outcome, Policy, PolicyBuilder, PolicyError, Seed};

use super::limits::Sleepers;
use crate::classify::rule::{RuleError, RuleSet};
#[cfg(target_has_atomic = "64")]
use crate::control::RetryControls;
use crate::retrier::event::Event;
use crate::retrier::limits::{LastAttempt, Limits};
#[cfg(target_has_atomic = "64")]
use crate::retrier::quiet_keys::QuietKeys;
#[cfg(target_has_atomic = "64")]
use crate::retrier::shared::Controlled;
use crate::retrier::shared::RetrierState;
use crate::retrier::target::{BreakerModel, BudgetModel};

/// A policy together with everything that calls made through it share: budget, breaker, rules, listeners and limits.
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
    /// Creates a retrier that retries according to `policy`, without budget, breaker, rules or listeners.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            shared: Arc::new(RetrierState {
                policy,
                name: Arc::from(""),
                budget: None,
                breaker: None,
                quiet: None,
                known_quiet: None,
                lone_quiet: None,
                #[cfg(target_has_atomic = "64")]
                quiet_keys: None,
                pacer: None,
                nested: NestedRetries::Disable,
                #[cfg(target_has_atomic = "64")]
                control: None,
                rules: RuleSet::default(),
                listeners: Vec::new(),
                strategy: None,
                limits: Limits::NONE,
                sleepers: None,
                seed: None,
                budget_model: None,
                breaker_model: None,
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
        self.change(|shared| shared.name = Arc::from(target)).under_control()
    }

    /// Sets the budget that every retry must acquire a permit from. To use one budget for several retriers, see
    /// [`shared_budget`](Self::shared_budget).
    ///
    /// A client of several targets, such as an HTTP client, has a budget with these settings for each target: see
    /// [`PollRetry::target`](crate::PollRetry::target).
    #[must_use]
    pub fn budget(self, budget: impl Budget + 'static) -> Self {
        let budget = Arc::new(budget);
        self.change(|shared| {
            shared.budget_model = Some(Arc::clone(&budget) as Arc<dyn BudgetModel>);
            shared.budget = Some(budget);
        })
        .under_control()
    }

    /// Sets a budget that is shared with other retriers, and by all targets of a client.
    #[must_use]
    pub fn shared_budget(self, budget: Arc<dyn Budget>) -> Self {
        self.change(|shared| {
            shared.budget = Some(budget);
            shared.budget_model = None;
        })
        .under_control()
    }

    /// Sets the breaker that every attempt must be admitted by. To use one breaker for several retriers, see
    /// [`shared_breaker`](Self::shared_breaker).
    ///
    /// A client of several targets, such as an HTTP client, has a breaker with these settings for each target: see
    /// [`PollRetry::target`](crate::PollRetry::target).
    #[must_use]
    pub fn breaker(self, breaker: impl Breaker + 'static) -> Self {
        let breaker = Arc::new(breaker);
        self.change(|shared| {
            shared.breaker_model = Some(Arc::clone(&breaker) as Arc<dyn BreakerModel>);
            shared.breaker = Some(breaker);
        })
        .under_control()
    }

    /// Sets a breaker that is shared with other retriers, and by all targets of a client.
    #[must_use]
    pub fn shared_breaker(self, breaker: Arc<dyn Breaker>) -> Self {
        self.change(|shared| {
            shared.breaker = Some(breaker);
            shared.breaker_model = None;
        })
        .under_control()
    }

    /// Sets the quiet period, which holds every attempt after the server has asked one call to wait: see
    /// [`QuietPeriod`](crate::guard::QuietPeriod). To use one for several retriers, see
    /// [`shared_quiet_period`](Self::shared_quiet_period). Default: none.
    ///
    /// An attempt that is due waits for its turn if that comes within the deadline and `max_elapsed`. Otherwise the
    /// call ends at once with [`StopReason::Quiet`](crate::StopReason::Quiet), and
    /// [`Rejected::Quiet`](crate::Rejected::Quiet) if there was no attempt yet. The wait uses no attempt, and what the
    /// budget charged for a retry is not charged again. The timeout of an attempt does not run meanwhile.
    ///
    /// One quiet period is for all calls of the retrier. A client of several targets, such as an HTTP client, has a
    /// [`QuietPeriod`](crate::guard::QuietPeriod) with these settings for each key instead: see
    /// [`PollRetry::quiet_by_key`](crate::PollRetry::quiet_by_key). Limiters of other types serve all targets. Hedged
    /// copies report their outcomes, but do not wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::guard::QuietPeriod;
    /// use stagger::testing::VirtualClock;
    /// use stagger::{Outcome, Policy, Retrier, ServerHint, policy};
    ///
    /// const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(1));
    /// let hint = ServerHint::AtLeast(Duration::from_secs(10));
    /// let (clock, throttled) = (VirtualClock::new(), Outcome::throttled(Some(hint)));
    /// let api = Retrier::new(POLICY).quiet_period(QuietPeriod::new()).classify_exactly(move |_: &&str| throttled);
    /// assert!(api.blocking_call(|_| Err::<(), _>("429")).timer(clock.clone()).run().is_err());
    /// // Another call, which has not met the server, waits before its first attempt.
    /// assert!(api.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().is_ok());
    /// assert_eq!(clock.elapsed(), Duration::from_secs(10));
    /// ```
    #[must_use]
    pub fn quiet_period(self, quiet: impl Limiter + 'static) -> Self {
        #[cfg(target_has_atomic = "64")]
        {
            let quiet = Arc::new(quiet);
            let known = Arc::downcast::<QuietPeriod>(Arc::clone(&quiet) as Arc<dyn Any + Send + Sync>).ok();
            let keys = known.as_ref().and_then(|model| QuietKeys::with_settings_of(model)).map(Arc::new);
            self.shared_quiet_period(quiet).change(|shared| {
                shared.quiet_keys = keys;
                shared.known_quiet = known;
            })
        }
        #[cfg(not(target_has_atomic = "64"))]
        self.shared_quiet_period(Arc::new(quiet))
    }

    /// Sets a quiet period that is shared with other retriers, and by all targets of a client.
    #[must_use]
    pub fn shared_quiet_period(self, quiet: Arc<dyn Limiter>) -> Self {
        self.change(|shared| {
            shared.quiet = Some(quiet);
            shared.known_quiet = None;
            #[cfg(target_has_atomic = "64")]
            {
                shared.quiet_keys = None;
            }
        })
    }

    /// Sets the pacer, which holds attempts to the rate that the server admits once it has refused one: see
    /// [`Pacer`](crate::guard::Pacer). To use one for several retriers, see [`shared_pacer`](Self::shared_pacer).
    /// Default: none.
    ///
    /// An attempt that is due, the first included, waits for its turn if that comes within the deadline and
    /// `max_elapsed` at the present rate. Otherwise the call ends at once with
    /// [`StopReason::Pacer`](crate::StopReason::Pacer), and [`Rejected::Paced`](crate::Rejected::Paced) if there was no
    /// attempt yet. The wait uses no attempt, and what the budget charged for a retry is not charged again. The timeout
    /// of an attempt does not run meanwhile.
    ///
    /// One pacer is for all calls of the retrier, to whichever target. Items of a
    /// [`RetryQueue`](crate::queue::RetryQueue), connections and hedged copies report their outcomes to it, but do not
    /// wait for it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stagger::guard::Pacer;
    /// use stagger::testing::VirtualClock;
    /// use stagger::{Outcome, Policy, Retrier, policy};
    ///
    /// const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(1));
    /// let clock = VirtualClock::new();
    /// let api = Retrier::new(POLICY).pacer(Pacer::new()).classify_exactly(|_: &&str| Outcome::throttled(None));
    ///
    /// // A server that admits every second of 100 calls per second.
    /// for n in 0..115 {
    ///     clock.advance(Duration::from_millis(10));
    ///     let _ = api.blocking_call(|_| if n % 2 == 0 { Err("429") } else { Ok(()) }).timer(clock.clone()).run();
    /// }
    /// // From now on, a call starts every 20 ms, and 3 % more.
    /// let start = clock.elapsed();
    /// for _ in 0..50 {
    ///     api.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().unwrap();
    /// }
    /// let passed = clock.elapsed() - start;
    /// assert!((Duration::from_millis(900)..Duration::from_millis(1_050)).contains(&passed), "{passed:?}");
    /// ```
    #[must_use]
    pub fn pacer(self, pacer: impl Limiter + 'static) -> Self {
        self.shared_pacer(Arc::new(pacer))
    }

    /// Sets a pacer that is shared with other retriers.
    #[must_use]
    pub fn shared_pacer(self, pacer: Arc<dyn Limiter>) -> Self {
        self.change(|shared| shared.pacer = Some(pacer))
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
    /// budget charged. Choose a limit below the size of the pool. With 0, blocking calls repeat only without a delay. A
    /// policy's spread before the first attempt is a wait, too: without room for it, the attempt is made at once. Async
    /// calls hold no thread, and are not counted.
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

    /// Returns a retrier with a changed policy, which shares everything else with this one: budget, breaker, rules,
    /// listeners, limits and operator controls. Use it to vary one call.
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
        let shared = Arc::make_mut(&mut self.shared);
        change(shared);
        shared.note_lone_quiet();
        self
    }

    /// Puts the current budget and breaker, and those of targets, under the operator control of the current name, if
    /// controls were set.
    #[cfg(target_has_atomic = "64")]
    fn under_control(self) -> Self {
        self.change(|shared| {
            shared.targets = shared.new_targets();
            shared.creates_targets_late = shared.can_create_targets_late();
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
