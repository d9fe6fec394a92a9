//! The parts of a service config.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::HashSet;

use stagger::Ratio;
use stagger::budget::{BudgetError, Throttle};
use stagger::hedge::{Hedge, HedgeDelay};

use super::retries::{MethodRetries, Unmapped};
use crate::grpc::Codes;

/// A service config: the attempt policies of methods, and the retry throttling that they share.
///
/// Parse it from JSON with [`FromStr`](core::str::FromStr), and write it as JSON with [`Display`](fmt::Display); see
/// the [module](super).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceConfig {
    methods: Vec<MethodConfig>,
    throttling: Option<RetryThrottling>,
}

/// The attempt policy and timeout of some methods (`methodConfig`).
#[derive(Clone, Debug, PartialEq)]
pub struct MethodConfig {
    names: Vec<MethodName>,
    timeout: Option<Duration>,
    attempts: AttemptPolicy,
}

/// The methods that a [`MethodConfig`] applies to (`name`). gRPC has no other names, so the enum is complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MethodName {
    /// All methods of all services.
    All,
    /// All methods of one service, named with its package: `shop.Stock`.
    Service(String),
    /// One method: of `shop.Stock`, `Count`.
    Method(String, String),
}

/// What happens when an attempt fails. gRPC has no other policies, so the enum is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a program has few of them, and a policy is plain data that is copied")]
pub enum AttemptPolicy {
    /// One attempt, besides gRPC's transparent retries.
    #[default]
    Single,
    /// Retries: another attempt after the failed one (`retryPolicy`).
    Retry(MethodRetries),
    /// Hedging: more attempts in parallel (`hedgingPolicy`).
    Hedge(Hedging),
}

impl ServiceConfig {
    /// Creates a service config without retry throttling.
    ///
    /// # Errors
    /// Returns an error if a name occurs twice.
    pub fn new(methods: Vec<MethodConfig>) -> Result<Self, ServiceConfigError> {
        let mut names = HashSet::new();
        let mut problems = Vec::new();
        for name in methods.iter().flat_map(|method| &method.names) {
            if !names.insert(name) {
                problems.push(format!("{name} is configured twice; remove one of the entries"));
            }
        }
        if problems.is_empty() {
            Ok(Self { methods, throttling: None })
        } else {
            Err(ServiceConfigError::all(problems))
        }
    }

    /// Sets the retry throttling, which is shared by all methods. Default: none.
    #[must_use]
    pub fn with_throttling(self, throttling: RetryThrottling) -> Self {
        Self { throttling: Some(throttling), ..self }
    }

    /// Returns the method configs, in order.
    #[must_use]
    pub fn methods(&self) -> &[MethodConfig] {
        &self.methods
    }

    /// Returns the retry throttling.
    #[must_use]
    pub const fn throttling(&self) -> Option<RetryThrottling> {
        self.throttling
    }

    /// Returns the config that applies to a method, given the path of its requests, such as `/shop.Stock/Count`. A
    /// config that names the method takes precedence over one that names its service, and that over the default for all
    /// methods.
    #[must_use]
    pub fn method_config(&self, path: &str) -> Option<&MethodConfig> {
        let (service, method) = path.strip_prefix('/')?.rsplit_once('/')?;
        let named = |wanted: MethodName| self.methods.iter().find(|config| config.names.contains(&wanted));
        let names = [
            MethodName::Method(service.to_owned(), method.to_owned()),
            MethodName::Service(service.to_owned()),
            MethodName::All,
        ];
        names.into_iter().find_map(named)
    }
}

impl MethodConfig {
    /// Creates a config for these methods, without a timeout.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = MethodName>, attempts: AttemptPolicy) -> Self {
        Self { names: names.into_iter().collect(), timeout: None, attempts }
    }

    /// Sets the time limit of a call, including all of its attempts. Default: none.
    #[must_use]
    pub fn with_timeout(self, limit: Duration) -> Self {
        Self { timeout: Some(limit), ..self }
    }

    /// Returns the methods that the config applies to.
    #[must_use]
    pub fn names(&self) -> &[MethodName] {
        &self.names
    }

    /// Returns the time limit of a call, including all of its attempts, if one is set.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns what happens when an attempt fails.
    #[must_use]
    pub const fn attempt_policy(&self) -> AttemptPolicy {
        self.attempts
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("the default for all methods"),
            Self::Service(service) => write!(f, "the service {service}"),
            Self::Method(service, method) => write!(f, "the method {service}/{method}"),
        }
    }
}

/// `retryThrottling`: the retry allowance that all methods of a server share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryThrottling {
    max_tokens: u32,
    token_ratio: Ratio,
}

impl RetryThrottling {
    /// Creates the setting from the maximum number of tokens and the tokens that a success returns. Only three decimals
    /// of the ratio count; it may exceed one.
    ///
    /// # Errors
    /// The same as [`Throttle::new`].
    pub fn new(max_tokens: u32, token_ratio: Ratio) -> Result<Self, BudgetError> {
        Throttle::new(max_tokens, token_ratio)?;
        Ok(Self { max_tokens, token_ratio: thousandths(token_ratio.as_millionths() / 1_000) })
    }

    /// Creates the setting that corresponds to a budget.
    #[must_use]
    pub fn from_budget(budget: &Throttle) -> Self {
        let snapshot = budget.snapshot();
        Self { max_tokens: snapshot.max_milli_tokens / 1_000, token_ratio: thousandths(snapshot.milli_ratio) }
    }

    /// Creates a budget with this setting and all of its tokens. Share one among all calls to the same server name.
    #[must_use]
    pub fn to_budget(self) -> Throttle {
        match Throttle::new(self.max_tokens, self.token_ratio) {
            Ok(throttle) => throttle,
            Err(_) => unreachable!("`new` and `from_budget` have validated both numbers"),
        }
    }

    /// Returns the maximum number of tokens, which is also the initial number. Range: 1 to 1000.
    #[must_use]
    pub const fn max_tokens(self) -> u32 {
        self.max_tokens
    }

    /// Returns the tokens that a success returns. Range: 0.001 to 1000, in whole thousandths.
    #[must_use]
    pub const fn token_ratio(self) -> Ratio {
        self.token_ratio
    }
}

const fn thousandths(n: u32) -> Ratio {
    Ratio::millionths(n * 1_000)
}

/// `hedgingPolicy`: how many attempts of a call may be in flight, and how far apart they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedging {
    attempts: NonZeroU32,
    delay: Duration,
    non_fatal: Codes,
}

impl Hedging {
    pub(super) fn from_fields(attempts: NonZeroU32, delay: Duration, non_fatal: Codes) -> Self {
        Self { attempts: attempts.min(MAX), delay, non_fatal }
    }

    /// Maps a hedge, with the codes that do not end a call. Also returns the settings that a service config cannot
    /// express.
    ///
    /// # Errors
    /// Returns an error if the hedge launches no copies, or its delay has no counterpart in gRPC.
    pub fn from_hedge(hedge: &Hedge, non_fatal: Codes) -> Result<(Self, Vec<Unmapped>), ServiceConfigError> {
        let attempts = NonZeroU32::MIN.saturating_add(hedge.max_copies());
        if attempts < MIN {
            return Err(ServiceConfigError::one("the hedge launches no copies; omit hedgingPolicy"));
        }
        let mut unmapped = Vec::new();
        if attempts > MAX {
            unmapped.push(Unmapped::MaxAttempts(Some(attempts)));
        }
        let delay = match hedge.delay() {
            HedgeDelay::Fixed(delay) => delay,
            HedgeDelay::Quantile { share, until_known } => {
                unmapped.push(Unmapped::Quantile(share));
                until_known
            }
            // `HedgeDelay` is non-exhaustive.
            _ => {
                return Err(ServiceConfigError::one("gRPC has no counterpart of the hedge's delay; use a fixed delay"));
            }
        };
        Ok((Self::from_fields(attempts, delay, non_fatal), unmapped))
    }

    /// Returns the hedge.
    #[must_use]
    pub const fn to_hedge(self) -> Hedge {
        Hedge::after(self.delay).with_max_copies(self.attempts.get() - 1)
    }

    /// Returns the maximum number of attempts, including the first. Range: 2 to 5.
    #[must_use]
    pub const fn max_attempts(self) -> NonZeroU32 {
        self.attempts
    }

    /// Returns the delay between the starts of consecutive attempts. If it is zero, all of them start at once.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// Returns the codes that do not end the call: after one of them, the next attempt starts immediately. Any other
    /// code ends the call.
    #[must_use]
    pub const fn non_fatal_codes(self) -> Codes {
        self.non_fatal
    }
}

/// The most attempts that a channel makes; more are reduced to it. The default limit of every gRPC library.
pub const MAX_ATTEMPTS: u32 = 5;

const MIN: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
const MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(MAX_ATTEMPTS - 1);

/// An error in a service config. It lists every problem, each with its path and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfigError {
    problems: Vec<String>,
}

impl ServiceConfigError {
    pub(super) fn one(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// There is at least one problem.
    pub(super) const fn all(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// Returns the problems, in the order in which they were found.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for ServiceConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl core::error::Error for ServiceConfigError {}
