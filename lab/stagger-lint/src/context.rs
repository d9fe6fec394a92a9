//! The deployment that a policy is used in, and the words that the command line has for it.

use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use stagger_core::text::{ParseValueError, Rate};
use stagger_core::{Policy, policy, profile};
use stagger_sim::fluid;
use stagger_sim::outage::DefaultGuards;
use stagger_sim::reconnect::ReconnectScenario;

/// Defines the setters of a type whose fields have the same names. Each is one line: the name, the type of the
/// argument, and the value that is stored.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $Type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $Type) -> Self {
            self.$name = $value;
            self
        }
    )*};
}

pub(crate) use setters;

/// The deployment a policy is used in. Every field is optional: a rule that needs a value that is not set does not
/// apply.
///
/// ```
/// use core::num::NonZeroU64;
/// use stagger_core::text::Rate;
/// use stagger_lint::{DeploymentContext, Purpose};
///
/// let fleet = DeploymentContext::default()
///     .purpose(Purpose::Reconnecting)
///     .clients(NonZeroU64::new(10_000).unwrap())
///     .capacity(Rate::per_second(500.0).unwrap());
/// assert_eq!(fleet.min_recovery_time().unwrap().as_secs(), 20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct DeploymentContext {
    pub(crate) clients: Option<NonZeroU64>,
    pub(crate) capacity: Option<Rate>,
    pub(super) requests: Option<Rate>,
    pub(crate) purpose: Option<Purpose>,
    pub(crate) deadline: Option<Duration>,
    pub(super) lease: Option<Duration>,
    pub(super) invocation: Option<Duration>,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) tick: Option<Duration>,
    pub(super) layers: Option<NonZeroU32>,
    pub(crate) idempotency: Option<Idempotency>,
    pub(super) budget: Option<Budgeted>,
    pub(super) retry_after: Option<Duration>,
    pub(super) backlog: Option<NonZeroU32>,
    pub(super) down: Option<Duration>,
}

/// The purpose of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A user waits for the result.
    Interactive,
    /// Inside a serverless function that is billed by execution time.
    Serverless,
    /// A background job.
    Background,
    /// A long-lived connection that is re-established when lost.
    Reconnecting,
    /// A nearby API: in the same data center, a sidecar, a cache.
    Near,
    /// A database or a remote service.
    Far,
}

/// For a database; long enough for a failover.
const FAR: Policy = policy!(exponential(ms(200), secs(10)).max_attempts(4));

/// Returns the policy recommended for a purpose if nothing else is known.
pub(crate) fn usual_policy(purpose: Option<Purpose>) -> Policy {
    match purpose {
        Some(Purpose::Interactive) => profile::INTERACTIVE.policy(),
        Some(Purpose::Serverless) => profile::SERVERLESS.policy(),
        Some(Purpose::Background) => profile::BACKGROUND_JOB.policy(),
        Some(Purpose::Reconnecting) => profile::WEB_SOCKET.policy(),
        Some(Purpose::Far) => FAR,
        Some(Purpose::Near) | None => Policy::DEFAULT,
    }
}

/// Whether executing the operation twice is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Idempotency {
    /// The operation is idempotent.
    Yes,
    /// The server recognizes repetitions by an idempotency key that all attempts share.
    ByKey,
    /// The operation would be executed twice.
    No,
}

/// Whether guards limit the retries of all calls of a process together, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Budgeted {
    /// A budget is used. Whether it suffices is known only if every budget suffices.
    Yes,
    /// These guards are used.
    With(DefaultGuards),
}

impl DeploymentContext {
    /// The default timer resolution, that of tokio. Override it with [`tick`](Self::tick).
    pub const TICK: Duration = Duration::from_millis(1);

    /// Sets the purpose of the calls, unless it is set.
    pub const fn purpose_or(self, purpose: Purpose) -> Self {
        if self.purpose.is_some() { self } else { self.purpose(purpose) }
    }

    setters! {
        /// Sets the number of clients that use the policy against one server.
        clients: NonZeroU64 = Some(clients);
        /// Sets the capacity of that server.
        capacity: Rate = Some(capacity);
        /// Sets the rate of calls of all clients together.
        requests: Rate = Some(requests);
        /// Sets the purpose of the calls.
        purpose: Purpose = Some(purpose);
        /// Sets the time from the start of a call after which its result is no longer useful.
        deadline: Duration = Some(deadline);
        /// Sets how long the worker owns the item: the visibility timeout of a queue, the lease of a lock.
        lease: Duration = Some(lease);
        /// Sets the time limit of the function that makes the call.
        invocation: Duration = Some(invocation);
        /// Sets the timeout of one attempt.
        attempt_timeout: Duration = Some(attempt_timeout);
        /// Sets the resolution of the timers. Default [`TICK`](Self::TICK).
        tick: Duration = Some(tick);
        /// Sets the number of layers that retry the same call, including this one.
        layers: NonZeroU32 = Some(layers);
        /// Sets whether executing the operation twice is safe.
        idempotency: Idempotency = Some(idempotency);
        /// Sets whether a budget limits the retries of each client. Not set means no.
        budget: Budgeted = Some(budget);
        /// Sets the `Retry-After` that the server usually sends.
        retry_after: Duration = Some(retry_after);
        /// Sets the number of requests that may queue at the server; further ones are rejected.
        backlog: NonZeroU32 = Some(backlog);
        /// Sets the length of the outages that budgets and suggestions are simulated in: half of it, it, and twice as
        /// long. Not set means 2 s, 15 s and a minute for calls, and none, a minute and ten minutes for a fleet.
        down: Duration = Some(down);
    }

    /// Returns the names of the fields that are set, as the command line has them, such as `rps`.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        Fact::ALL.into_iter().filter(|fact| fact.is_in(self)).map(Fact::name)
    }

    /// Returns the three lengths of outages to simulate: those around the given one, or else these.
    pub(crate) fn outages_or(&self, usual: [Duration; 3]) -> [Duration; 3] {
        match self.down {
            Some(down) => [down / 2, down, down.saturating_mul(2)],
            None => usual,
        }
    }

    /// Returns whether callers wait for the result, who cannot be spread over seconds.
    pub(super) fn is_waited_for(&self) -> bool {
        use Purpose::{Far, Interactive, Near, Serverless};
        matches!(self.purpose, Some(Interactive | Serverless | Near | Far))
    }

    /// Returns the time the server needs to accept each client once: clients / capacity. `None` if either is not set.
    #[must_use]
    pub fn min_recovery_time(&self) -> Option<Duration> {
        let seconds = self.clients?.get() as f64 / self.capacity?.get();
        // Saturates at the longest duration.
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// A field of [`DeploymentContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Purpose,
    Clients,
    Capacity,
    Requests,
    Deadline,
    Lease,
    Invocation,
    AttemptTimeout,
    RetryAfter,
    Backlog,
    Down,
    Tick,
    Layers,
    Idempotency,
    Budget,
}

impl Fact {
    pub(super) const ALL: [Self; 15] = [
        Self::Purpose,
        Self::Clients,
        Self::Capacity,
        Self::Requests,
        Self::Deadline,
        Self::Lease,
        Self::Invocation,
        Self::AttemptTimeout,
        Self::RetryAfter,
        Self::Backlog,
        Self::Down,
        Self::Tick,
        Self::Layers,
        Self::Idempotency,
        Self::Budget,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Purpose => "for",
            Self::Clients => "clients",
            Self::Capacity => "capacity",
            Self::Requests => "rps",
            Self::Deadline => "within",
            Self::Lease => "lease",
            Self::Invocation => "invocation",
            Self::AttemptTimeout => "attempt-timeout",
            Self::RetryAfter => "retry-after",
            Self::Backlog => "backlog",
            Self::Down => "down",
            Self::Tick => "tick",
            Self::Layers => "layers",
            Self::Idempotency => "idempotent",
            Self::Budget => "budget",
        }
    }

    /// Adds this fact to what is known.
    pub(super) fn add(self, given: &DeploymentContext, known: &mut DeploymentContext) {
        match self {
            Self::Purpose => known.purpose = given.purpose,
            Self::Clients => known.clients = given.clients,
            Self::Capacity => known.capacity = given.capacity,
            Self::Requests => known.requests = given.requests,
            // The system may end a call before its caller does.
            Self::Deadline => known.deadline = [given.deadline, known.deadline].into_iter().flatten().min(),
            Self::Lease => known.lease = given.lease,
            Self::Invocation => known.invocation = given.invocation,
            Self::AttemptTimeout => known.attempt_timeout = given.attempt_timeout,
            Self::RetryAfter => known.retry_after = given.retry_after,
            Self::Backlog => known.backlog = given.backlog,
            Self::Down => known.down = given.down,
            Self::Tick => known.tick = given.tick,
            Self::Layers => known.layers = given.layers,
            Self::Idempotency => known.idempotency = given.idempotency,
            Self::Budget => known.budget = given.budget,
        }
    }

    pub(super) fn is_in(self, given: &DeploymentContext) -> bool {
        let mut alone = DeploymentContext::default();
        self.add(given, &mut alone);
        alone != DeploymentContext::default()
    }
}

/// The words of the command line and their meanings.
const PURPOSES: [(&str, Purpose); 6] = [
    ("interactive", Purpose::Interactive),
    ("serverless", Purpose::Serverless),
    ("background", Purpose::Background),
    ("reconnecting", Purpose::Reconnecting),
    ("near", Purpose::Near),
    ("far", Purpose::Far),
];

const IDEMPOTENCIES: [(&str, Idempotency); 3] =
    [("yes", Idempotency::Yes), ("key", Idempotency::ByKey), ("no", Idempotency::No)];

const BUDGETS: [(&str, Budgeted); 7] = [
    ("yes", Budgeted::Yes),
    ("no", Budgeted::With(DefaultGuards::None)),
    budget_named(DefaultGuards::Tokens),
    budget_named(DefaultGuards::Window),
    budget_named(DefaultGuards::Throttle),
    budget_named(DefaultGuards::SuccessRate),
    budget_named(DefaultGuards::Breaker),
];

const fn budget_named(guards: DefaultGuards) -> (&'static str, Budgeted) {
    (guards.name(), Budgeted::With(guards))
}

/// Implements the text of a type by a list of words.
macro_rules! as_word {
    ($Type:ty, $words:ident, $known:literal) => {
        impl core::fmt::Display for $Type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(word_of(&$words, self))
            }
        }

        impl core::str::FromStr for $Type {
            type Err = stagger_core::text::ParseValueError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                named(&$words, text, $known)
            }
        }
    };
}

as_word!(Purpose, PURPOSES, "interactive, serverless, background, reconnecting, near or far");
as_word!(Idempotency, IDEMPOTENCIES, "yes, key or no");
as_word!(Budgeted, BUDGETS, "yes, no, tokens, window, throttle, success-rate or breaker");

pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, named)| named == value).map_or("", |(word, _)| word)
}

pub(crate) fn named<T: Copy>(words: &[(&str, T)], text: &str, known: &'static str) -> Result<T, ParseValueError> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| ParseValueError::new(text, known))
}

/// The expected behavior of a fleet that loses all its connections at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// Lower bound on the time until all clients are back: clients / capacity.
    pub min_recovery_time: Duration,
    /// Mean number of attempts per client; `None` if the fluid model does not apply.
    pub attempts_per_client: Option<f64>,
    /// Share of the clients that give up; `None` if the fluid model does not apply.
    pub gave_up_ratio: Option<f64>,
}

/// Maximum recovery time for which the fluid model is fast enough for a lint.
const MAX_RECOVERY_TIME: Duration = Duration::from_secs(600);

/// Estimates the behavior of a fleet; returns `None` unless its size and the capacity are known.
///
/// The figures are those of [`fluid::run`] for a mass disconnect from a server with a backlog of half a second. They
/// are missing if the policy is [not simulable](fluid::NotSimulable) with it, or if clients / capacity is above ten
/// minutes.
#[must_use]
pub fn estimate(policy: &Policy, context: &DeploymentContext) -> Option<Estimate> {
    let (clients, capacity) = (context.clients?, context.capacity?);
    let min_recovery_time = context.min_recovery_time()?;
    let mut estimate = Estimate { min_recovery_time, attempts_per_client: None, gave_up_ratio: None };
    if min_recovery_time > MAX_RECOVERY_TIME {
        return Some(estimate);
    }
    let fleet = ReconnectScenario::of_fleet(clients.get(), capacity.get(), Duration::ZERO, u64::MAX);
    let Ok(scenario) = fleet.build() else { return Some(estimate) };
    if let Ok(figures) = fluid::run(&scenario, policy) {
        estimate.attempts_per_client = Some(figures.attempts_per_client);
        estimate.gave_up_ratio = Some(figures.gave_up);
    }
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use stagger_core::Seed;
    use stagger_core::text::Rate;

    use super::*;

    #[test]
    fn every_word_round_trips() {
        for (word, purpose) in PURPOSES {
            assert_eq!((word.parse(), purpose.to_string().as_str()), (Ok(purpose), word));
        }
        for (word, idempotency) in IDEMPOTENCIES {
            assert_eq!((word.parse(), idempotency.to_string().as_str()), (Ok(idempotency), word));
        }
    }

    #[test]
    fn the_error_for_an_unknown_word_lists_the_known_words() {
        let error = "batch".parse::<Purpose>().unwrap_err().to_string();
        assert!(error.contains("`batch`") && error.contains("background"), "{error}");
    }

    #[test]
    fn the_min_recovery_time_needs_both_values_and_saturates() {
        let many = DeploymentContext::default().clients(NonZeroU64::MAX);
        assert_eq!(many.min_recovery_time(), None);
        assert_eq!(many.capacity(Rate::per_second(1e-300).unwrap()).min_recovery_time(), Some(Duration::MAX));
    }

    #[test]
    fn only_what_is_set_is_given() {
        let context = DeploymentContext::default().purpose(Purpose::Far).requests(Rate::per_second(2.0).unwrap());
        assert_eq!(context.given().collect::<Vec<_>>(), ["for", "rps"]);
        assert_eq!(DeploymentContext::default().given().count(), 0);
    }

    #[test]
    fn of_two_deadlines_the_shorter_one_counts() {
        let [short, long] = [1, 2].map(|s| DeploymentContext::default().deadline(Duration::from_secs(s)));
        for (given, before) in [(short, long), (long, short), (short, DeploymentContext::default())] {
            let mut known = before;
            Fact::Deadline.add(&given, &mut known);
            assert_eq!(known, short);
        }
    }

    fn of_window(policy: &str, window: u64) -> Estimate {
        let fleet = DeploymentContext::default()
            .clients(NonZeroU64::new(window * 1_000).unwrap())
            .capacity(Rate::per_second(1_000.0).unwrap());
        estimate(&policy.parse().unwrap(), &fleet).unwrap()
    }

    #[test]
    fn the_estimate_matches_exact_simulations() {
        for (policy, window) in [
            ("exponential base=500ms cap=30s", 20),
            ("exponential base=500ms cap=30s max-attempts=inf", 20),
            ("exponential base=500ms cap=30s max-attempts=inf multiplier=1.5", 50),
            ("exponential base=500ms cap=30s max-attempts=inf jitter=equal", 20),
            ("exponential base=500ms cap=30s max-attempts=inf spread=5s", 20),
            ("constant base=1s max-attempts=6", 10),
        ] {
            let scenario = ReconnectScenario::builder(window * 1_000).rate(1_000.0).backlog(500).build().unwrap();
            let exact = scenario.run(&policy.parse().unwrap(), Seed::new(1));
            let got = of_window(policy, window);
            let (attempts, gave_up) = (exact.attempts_per_client(), exact.gave_up as f64 / exact.clients as f64);
            assert!((got.attempts_per_client.unwrap() / attempts - 1.0).abs() < 0.01, "{policy}: {got:?}, {attempts}");
            assert!((got.gave_up_ratio.unwrap() - gave_up).abs() < 0.005, "{policy}: {got:?}, {gave_up}");
        }
    }

    #[test]
    fn no_figures_are_given_where_the_fluid_model_does_not_apply() {
        for (policy, window) in [
            ("decorrelated base=500ms cap=30s", 20),
            ("exponential base=500ms cap=30s max-attempts=1000", 20),
            ("exponential base=500ms cap=30s max-elapsed=1s", 20),
            ("exponential base=500ms cap=30s", 601),
        ] {
            let got = of_window(policy, window);
            assert_eq!((got.attempts_per_client, got.gave_up_ratio), (None, None), "{policy}");
            assert_eq!(got.min_recovery_time, Duration::from_secs(window));
        }
    }

    #[test]
    fn no_estimate_is_given_without_size_and_capacity() {
        assert_eq!(estimate(&Policy::DEFAULT, &DeploymentContext::default()), None);
    }
}
