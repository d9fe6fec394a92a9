use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::{Hedging, MethodRetries, RetryThrottling, ServiceConfigError, read, write};

/// A service config: the attempt policies of methods, and the retry throttling that they share.
///
/// Parse it from JSON with [`FromStr`], and write it as JSON with [`Display`](fmt::Display); see the [module](super).
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
        let names: Vec<_> = methods.iter().flat_map(|method| &method.names).collect();
        let again = names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name));
        let problems =
            again.map(|(_, name)| format!("{name} is configured twice; remove one of the entries")).collect();
        ServiceConfigError::unless(problems, Self { methods, throttling: None })
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

    /// Returns the config that applies to a method, given the path of its requests, such as `/shop.Stock/Count`. A config
    /// that names the method takes precedence over one that names its service, and that over the default for all methods.
    #[must_use]
    pub fn method_config(&self, path: &str) -> Option<&MethodConfig> {
        let (service, method) = path.strip_prefix('/')?.rsplit_once('/')?;
        let named = |wanted: MethodName| self.methods.iter().find(|config| config.names.contains(&wanted));
        named(MethodName::Method(service.to_owned(), method.to_owned()))
            .or_else(|| named(MethodName::Service(service.to_owned())))
            .or_else(|| named(MethodName::All))
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

impl FromStr for ServiceConfig {
    type Err = ServiceConfigError;

    /// Parses a service config from JSON. Fields that do not concern retries are ignored, and so are comments and trailing commas.
    ///
    /// # Errors
    /// Returns an error if the text is not JSON, or is a config that gRPC rejects. It lists every problem, with its path and
    /// how to fix it.
    fn from_str(json: &str) -> Result<Self, ServiceConfigError> {
        read::service_config(json)
    }
}

impl fmt::Display for ServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It could fail only for NaN, which a config cannot contain.
        write::writer(self).fmt(f)
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
