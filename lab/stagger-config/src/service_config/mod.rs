//! gRPC service configs: all that one says about retries, field by field, and the text of one.
//!
//! [`parse`] is what [`read`](crate::read) uses; it keeps what a policy has no place for, such as the names of the
//! methods. A channel refuses a whole config for one field, so everything that it would refuse is a [`Problem`], beside
//! the value if there is one.
//!
//! ```
//! use stagger_config::service_config::{Attempts, parse};
//!
//! let config = parse(r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 3}}]}"#)?;
//! assert!(matches!(&config.methods[0].attempts, Attempts::Hedge(_)) && config.problems.is_empty());
//! # Ok::<(), stagger_config::ReadError>(())
//! ```
//!
//! Source: gRPC proposal A6 as of August 2024, and the `ServiceConfig` message. More lenient than a channel: comments
//! and trailing commas are skipped.

mod parse;
mod write;

use core::time::Duration;

use crate::entry::Setting;
use crate::position::Span;

pub use parse::parse;
pub(crate) use parse::parse_document;
pub use write::{AttemptFields, HedgingFields, RetryFields, Writer};

/// The most attempts that a channel makes; more are reduced to it. The default limit of every gRPC library.
pub const MAX_ATTEMPTS: u32 = 5;

/// Maximum number of problems that are kept: a config has as many as its author likes.
const MAX_PROBLEMS: usize = 100;

/// A service config as it stands in a file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// `methodConfig`, in the order of the file.
    pub methods: Vec<MethodConfig>,
    /// `retryThrottling`.
    pub throttling: Option<Throttling>,
    /// What a channel refuses, in the order in which it was found: at most 100.
    pub problems: Vec<Problem>,
    /// Number of further problems.
    pub other_problems: usize,
}

/// An element of `methodConfig`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MethodConfig {
    /// Its path, such as `methodConfig[0]`.
    pub path: String,
    /// Its place.
    pub span: Span,
    /// `name`: the methods that it applies to.
    pub names: Vec<MethodName>,
    /// `timeout`: the time limit of a call, including all of its attempts.
    pub timeout: Option<Setting<Duration>>,
    /// What happens when an attempt fails.
    pub attempts: Attempts,
    /// Fields of the policy that are not known here.
    pub others: Vec<OtherField>,
}

/// A field that is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherField {
    /// Its path.
    pub path: String,
    /// Its place.
    pub span: Span,
}

/// An element of `name`. Both parts are empty for the default of all methods, and `method` for a whole service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// The service with its package, such as `shop.Stock`.
    pub service: String,
    /// The method, such as `Count`.
    pub method: String,
}

/// What happens when an attempt fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempts {
    /// One attempt, besides gRPC's transparent retries.
    Single,
    /// Retries.
    Retry(RetryPolicy),
    /// More attempts in parallel.
    Hedge(HedgingPolicy),
}

/// `retryPolicy`. A field that is absent or cannot be read is `None`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Its place: the key.
    pub span: Span,
    /// `maxAttempts` as it is written, the first one included. A channel makes at most [`MAX_ATTEMPTS`].
    pub max_attempts: Option<Setting<u32>>,
    /// `initialBackoff`.
    pub initial_backoff: Option<Setting<Duration>>,
    /// `maxBackoff`.
    pub max_backoff: Option<Setting<Duration>>,
    /// `backoffMultiplier`.
    pub backoff_multiplier: Option<Setting<f64>>,
    /// `retryableStatusCodes`.
    pub codes: Vec<StatusCode>,
    /// `perAttemptRecvTimeout`, which only the C core reads.
    pub attempt_timeout: Option<Setting<Duration>>,
}

/// `hedgingPolicy`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HedgingPolicy {
    /// Its place: the key.
    pub span: Span,
    /// `maxAttempts` as it is written, the first one included. A channel makes at most [`MAX_ATTEMPTS`].
    pub max_attempts: Option<Setting<u32>>,
    /// `hedgingDelay`. Without it, all attempts start at once.
    pub delay: Option<Setting<Duration>>,
    /// `nonFatalStatusCodes`.
    pub codes: Vec<StatusCode>,
}

/// A status code, by name or by number, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusCode {
    /// Its path, such as `methodConfig[0].retryPolicy.retryableStatusCodes[0]`.
    pub path: String,
    /// Its place.
    pub span: Span,
    /// The name or the number, such as `UNAVAILABLE` or `14`.
    pub text: String,
}

/// `retryThrottling`. A field that is absent or cannot be read is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Throttling {
    /// Its place.
    pub span: Span,
    /// `maxTokens`, 1 to 1000.
    pub max_tokens: Option<Setting<u32>>,
    /// `tokenRatio` in thousandths, 1 to 1,000,000: only three decimals count.
    pub token_ratio_millis: Option<Setting<u32>>,
}

/// Something that a channel refuses, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The field.
    pub path: String,
    /// Its place; that of the mapping around it if it is missing.
    pub span: Span,
    /// What is wrong and how to fix it. With the path before it, it is a sentence.
    pub text: String,
}
