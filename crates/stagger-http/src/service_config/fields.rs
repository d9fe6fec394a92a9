//! What a service config states, field by field, also if a channel refuses it.
//!
//! A channel refuses a whole config for one field. A tool that shows what is wrong reads the rest all the same, and
//! needs the place of each value: every field and every problem has its [`Path`].
//!
//! ```
//! use stagger_http::service_config::fields::ConfigFields;
//!
//! let hedging = serde_json::json!({ "maxAttempts": 3, "hedgingDelay": "50ms" });
//! let json = serde_json::json!({ "methodConfig": [{ "hedgingPolicy": hedging }] });
//! let config = ConfigFields::read(&json);
//! let problem = "methodConfig[0].hedgingPolicy.hedgingDelay must be a duration in seconds, such as \"0.1s\"";
//! assert_eq!(config.problems[0].to_string(), problem);
//! let hedging = config.methods[0].hedging.as_ref().expect("it is written");
//! assert_eq!(hedging.max_attempts.as_ref().map(|attempts| attempts.value), Some(3));
//! ```

use core::fmt;
use core::time::Duration;

use stagger::{PolicyError, Ratio};

use super::config::{
    AttemptPolicy, Hedging, MethodConfig, MethodName, RetryThrottling, ServiceConfig, ServiceConfigError,
};
use super::retries::MethodRetries;
use crate::grpc::Codes;

/// A service config as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConfigFields {
    /// `methodConfig`, in order; without what is not an object.
    pub methods: Vec<MethodFields>,
    /// `retryThrottling`.
    pub throttling: Option<ThrottlingFields>,
    /// What a channel refuses, in the order in which it was found: at most 100 problems.
    pub problems: Vec<Problem>,
    /// Number of further problems.
    pub other_problems: usize,
}

/// An element of `methodConfig`. It has at most one of the two policies: if both are written, a channel reads neither.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MethodFields {
    /// Its path, such as `methodConfig[0]`.
    pub path: Path,
    /// `name`: the methods that it applies to.
    pub names: Vec<MethodName>,
    /// `timeout`: the time limit of a call, including all of its attempts.
    pub timeout: Option<Field<Duration>>,
    /// `retryPolicy`.
    pub retries: Option<RetryFields>,
    /// `hedgingPolicy`.
    pub hedging: Option<HedgingFields>,
}

/// `retryPolicy`. A field that is absent or cannot be read is `None`; a value that is out of range is there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryFields {
    /// Its path.
    pub path: Path,
    /// `maxAttempts`, which counts the first attempt. A channel makes at most [`MAX_ATTEMPTS`](super::MAX_ATTEMPTS).
    pub max_attempts: Option<Field<u32>>,
    /// `initialBackoff`.
    pub initial_backoff: Option<Field<Duration>>,
    /// `maxBackoff`.
    pub max_backoff: Option<Field<Duration>>,
    /// `backoffMultiplier`.
    pub backoff_multiplier: Option<Field<f64>>,
    /// The codes of `retryableStatusCodes` that gRPC has.
    pub codes: Codes,
    /// `perAttemptRecvTimeout`, which only the C core reads.
    pub attempt_timeout: Option<Field<Duration>>,
    /// Names of the fields that are not known here.
    pub others: Vec<String>,
}

/// `hedgingPolicy`. A field that is absent or cannot be read is `None`; a value that is out of range is there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HedgingFields {
    /// Its path.
    pub path: Path,
    /// `maxAttempts`, which counts the first attempt. A channel makes at most [`MAX_ATTEMPTS`](super::MAX_ATTEMPTS).
    pub max_attempts: Option<Field<u32>>,
    /// `hedgingDelay`. Without it, all attempts start at once.
    pub delay: Option<Field<Duration>>,
    /// The codes of `nonFatalStatusCodes` that gRPC has.
    pub codes: Codes,
    /// Names of the fields that are not known here.
    pub others: Vec<String>,
}

/// `retryThrottling`. A field that is absent, cannot be read or is out of range is `None`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThrottlingFields {
    /// Its path.
    pub path: Path,
    /// `maxTokens`, 1 to 1000.
    pub max_tokens: Option<Field<u32>>,
    /// `tokenRatio`, 0.001 to 1000, in whole thousandths.
    pub token_ratio: Option<Field<Ratio>>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field<T> {
    /// Its path, with the name as it is written.
    pub path: Path,
    /// The value.
    pub value: T,
}

/// Something that a channel refuses, and how to fix it. Writes itself as a sentence that begins with the path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The field. If it is missing, there is nothing at its path; the object around it is there.
    pub path: Path,
    /// What is wrong and how to fix it: the sentence without the path, at most 500 bytes long.
    pub text: String,
}

/// The place of a value in a document of JSON. Writes itself as `methodConfig[0].retryPolicy.maxAttempts`; the path of
/// the document is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path {
    steps: Vec<Step>,
}

/// A step from a value to one inside it. JSON has no others, so the enum is complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// To the member of an object with this name.
    Member(String),
    /// To this item of a list, from 0.
    Item(usize),
}

impl Path {
    /// Returns the steps from the document to the value.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn member(&self, name: &str) -> Self {
        self.then(Step::Member(name.to_owned()))
    }

    pub(super) fn item(&self, at: usize) -> Self {
        self.then(Step::Item(at))
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.steps.len() + 1);
        steps.extend_from_slice(&self.steps);
        steps.push(step);
        Self { steps }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Member(name) if at == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.steps.is_empty() {
            return f.write_str(&self.text);
        }
        write!(f, "{} {}", self.path, self.text)
    }
}

impl ConfigFields {
    /// Returns the config, if a channel accepts it.
    ///
    /// # Errors
    /// Returns an error with every problem if there is one.
    pub fn to_config(&self) -> Result<ServiceConfig, ServiceConfigError> {
        if !self.problems.is_empty() {
            let mut problems: Vec<_> = self.problems.iter().map(Problem::to_string).collect();
            if self.other_problems > 0 {
                problems.push(format!("{} more problems", self.other_problems));
            }
            return Err(ServiceConfigError::all(problems));
        }
        // Nothing is left out: whatever cannot be built is a problem.
        let mut config = ServiceConfig::new(self.methods.iter().filter_map(MethodFields::build).collect())?;
        if let Some(throttling) = self.throttling.as_ref().and_then(|throttling| throttling.build()) {
            config = config.with_throttling(throttling);
        }
        Ok(config)
    }
}

impl MethodFields {
    fn build(&self) -> Option<MethodConfig> {
        let attempts = match (&self.retries, &self.hedging) {
            (Some(retries), _) => AttemptPolicy::Retry(retries.build()?.ok()?),
            (None, Some(hedging)) => AttemptPolicy::Hedge(hedging.build()?),
            (None, None) => AttemptPolicy::Single,
        };
        let method = MethodConfig::new(self.names.iter().cloned(), attempts);
        Some(match &self.timeout {
            Some(timeout) => method.with_timeout(timeout.value),
            None => method,
        })
    }
}

impl RetryFields {
    /// `None` if a field is missing or out of range.
    pub(super) fn build(&self) -> Option<Result<MethodRetries, PolicyError>> {
        let attempts = self.max_attempts.as_ref()?.value;
        let initial = self.initial_backoff.as_ref()?.value;
        let max = self.max_backoff.as_ref()?.value;
        let multiplier = self.backoff_multiplier.as_ref()?.value;
        if initial.is_zero() || max.is_zero() || attempts < 2 || multiplier < 1.0 {
            return None;
        }
        Some(MethodRetries::from_fields(attempts, initial, max, multiplier, self.codes))
    }
}

impl HedgingFields {
    fn build(&self) -> Option<Hedging> {
        let attempts = self.max_attempts.as_ref()?.value.try_into().ok()?;
        let delay = match &self.delay {
            Some(delay) => delay.value,
            None => Duration::ZERO,
        };
        Some(Hedging::from_fields(attempts, delay, self.codes))
    }
}

impl ThrottlingFields {
    fn build(&self) -> Option<RetryThrottling> {
        RetryThrottling::new(self.max_tokens.as_ref()?.value, self.token_ratio.as_ref()?.value).ok()
    }
}

/// The maximum of protobuf's `Duration`, about 10,000 years, in seconds.
const MAX_SECS: u64 = 315_576_000_000;

/// Parses the JSON of a protobuf `Duration` exactly: seconds with up to nine decimals and an `s`. Also accepts `.5s`,
/// which gRPC in Go accepts and many configs for it contain. Returns `None` if it is malformed, negative or too long.
///
/// ```
/// use core::time::Duration;
/// use stagger_http::service_config::fields::parse_duration;
///
/// assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1_500)));
/// assert_eq!(parse_duration("1500ms"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let whole = if whole.is_empty() && number.starts_with('.') { "0" } else { whole };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let seconds: u64 = whole.parse().ok()?;
    if seconds > MAX_SECS {
        return None;
    }
    let nanos: u32 = format!("{decimals:0<9}").parse().ok()?;
    Some(Duration::new(seconds, nanos))
}

/// Formats a duration as the JSON of a protobuf `Duration`: seconds, with as many decimals as it needs.
///
/// ```
/// # use core::time::Duration;
/// assert_eq!(stagger_http::service_config::fields::format_duration(Duration::from_millis(1_500)), "1.5s");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let (whole, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if nanos == 0 {
        return format!("{whole}s");
    }
    let decimals = format!("{nanos:09}");
    format!("{whole}.{}s", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_exactly() {
        for (text, want) in [
            ("1s", Some(Duration::from_secs(1))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("0.1s", Some(Duration::from_millis(100))),
            ("1.000340012s", Some(Duration::new(1, 340_012))),
            ("315576000000s", Some(Duration::from_secs(MAX_SECS))),
            ("315576000001s", None),
            ("0s", Some(Duration::ZERO)),
            ("-1s", None),
            ("+1s", None),
            (".5s", Some(Duration::from_millis(500))),
            (".s", None),
            ("1.s", None),
            ("1.0000000001s", None),
            ("1e3s", None),
            ("1", None),
            ("1ms", None),
            (" 1s", None),
            ("", None),
            ("s", None),
        ] {
            assert_eq!(parse_duration(text), want, "{text:?}");
        }
    }

    #[test]
    fn durations_are_formatted_exactly_without_trailing_zeros() {
        for (duration, want) in [
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_nanos(1), "0.000000001s"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!((format_duration(duration).as_str(), parse_duration(want)), (want, Some(duration)));
        }
    }
}
