use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::wire::Wire;
use super::{Hedging, MethodRetries, RetryThrottling, ServiceConfigError, read};

/// A service config: what its methods do about failures, and what they share.
///
/// It is read from JSON with [`FromStr`] and printed as JSON; see the [module](super).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceConfig {
    methods: Vec<MethodConfig>,
    throttling: Option<RetryThrottling>,
}

/// What some methods do about failures.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodConfig {
    names: Vec<MethodName>,
    timeout: Option<Duration>,
    attempts: AttemptPolicy,
}

/// Which methods are meant. gRPC has no other names, so matches can be complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MethodName {
    /// All methods of all services.
    All,
    /// All methods of one service, named with its package: `shop.Stock`.
    Service(String),
    /// One method: of `shop.Stock`, `Count`.
    Method(String, String),
}

/// What is done about a failure. There is no third way, so matches can be complete.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a program has a handful of them, and a policy is data to be copied")]
pub enum AttemptPolicy {
    /// Nothing: one attempt, and gRPC's transparent retries.
    #[default]
    Single,
    /// Another attempt after it.
    Retry(MethodRetries),
    /// Other attempts beside it.
    Hedge(Hedging),
}

impl ServiceConfig {
    /// Of these methods, without throttling.
    ///
    /// # Errors
    /// A name is there twice.
    pub fn new(methods: Vec<MethodConfig>) -> Result<Self, ServiceConfigError> {
        let names: Vec<_> = methods.iter().flat_map(|method| &method.names).collect();
        let again = names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name));
        let problems = again.map(|(_, name)| format!("{name} is named twice: name it once")).collect();
        ServiceConfigError::unless(problems, Self { methods, throttling: None })
    }

    /// With this allowance for the retries of all methods.
    #[must_use]
    pub fn with_throttling(self, throttling: RetryThrottling) -> Self {
        Self { throttling: Some(throttling), ..self }
    }

    /// The methods, in their order.
    #[must_use]
    pub fn methods(&self) -> &[MethodConfig] {
        &self.methods
    }

    /// The allowance for the retries of all methods, if there is one.
    #[must_use]
    pub const fn throttling(&self) -> Option<RetryThrottling> {
        self.throttling
    }

    /// What holds for a method, by the path of its requests: `/shop.Stock/Count`. What names the method goes before what
    /// names its service, and that before what names neither.
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
    /// For these methods.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = MethodName>, attempts: AttemptPolicy) -> Self {
        Self { names: names.into_iter().collect(), timeout: None, attempts }
    }

    /// With this much time for a call, all of its attempts together.
    #[must_use]
    pub fn with_timeout(self, limit: Duration) -> Self {
        Self { timeout: Some(limit), ..self }
    }

    /// Which methods are meant.
    #[must_use]
    pub fn names(&self) -> &[MethodName] {
        &self.names
    }

    /// How long a call may take, all of its attempts together; `None` if nothing is said.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// What is done about a failure.
    #[must_use]
    pub const fn attempts(&self) -> AttemptPolicy {
        self.attempts
    }
}

impl FromStr for ServiceConfig {
    type Err = ServiceConfigError;

    /// # Errors
    /// It is no JSON, or it is one that gRPC refuses: with everything that is wrong, where, and how to mend it. Fields that are
    /// not about retries are not looked at.
    fn from_str(json: &str) -> Result<Self, ServiceConfigError> {
        read::service_config(json)
    }
}

impl fmt::Display for ServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only numbers that are none could not be written.
        f.write_str(&serde_json::to_string_pretty(&Wire::new(self)).map_err(|_| fmt::Error)?)
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
