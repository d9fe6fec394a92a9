use core::fmt;
use core::time::Duration;

use serde::Serialize;

use crate::units::to_protobuf;

/// The text of a service config, in protobuf's JSON mapping, with the fields in the customary order.
///
/// ```
/// use core::time::Duration;
/// use stagger_config::service_config::{AttemptFields, RetryFields, Writer};
///
/// let mut writer = Writer::default();
/// let retries = RetryFields {
///     max_attempts: 3,
///     initial_backoff: Duration::from_millis(100),
///     max_backoff: Duration::from_secs(1),
///     backoff_multiplier: 2.0,
///     codes: vec!["UNAVAILABLE"],
/// };
/// writer.method([("shop.Stock", "")], None, AttemptFields::Retry(retries));
/// assert!(writer.to_string().contains(r#""initialBackoff": "0.1s""#));
/// ```
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    method_config: Vec<Method>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_throttling: Option<Throttling>,
}

/// What a method config says about attempts.
#[derive(Clone, Debug)]
pub enum AttemptFields {
    /// Nothing.
    Single,
    /// `retryPolicy`.
    Retry(RetryFields),
    /// `hedgingPolicy`.
    Hedge(HedgingFields),
}

/// The fields of a `retryPolicy`, all of which are required.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryFields {
    /// `maxAttempts`, the first one included.
    pub max_attempts: u32,
    /// `initialBackoff`.
    #[serde(serialize_with = "protobuf")]
    pub initial_backoff: Duration,
    /// `maxBackoff`.
    #[serde(serialize_with = "protobuf")]
    pub max_backoff: Duration,
    /// `backoffMultiplier`.
    pub backoff_multiplier: f64,
    /// `retryableStatusCodes`.
    #[serde(rename = "retryableStatusCodes")]
    pub codes: Vec<&'static str>,
}

/// The fields of a `hedgingPolicy`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HedgingFields {
    /// `maxAttempts`, the first one included.
    pub max_attempts: u32,
    /// `hedgingDelay`.
    #[serde(rename = "hedgingDelay", serialize_with = "protobuf")]
    pub delay: Duration,
    /// `nonFatalStatusCodes`.
    #[serde(rename = "nonFatalStatusCodes", skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Method {
    name: Vec<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hedging_policy: Option<HedgingFields>,
}

#[derive(Clone, Debug, Serialize)]
struct Name {
    #[serde(skip_serializing_if = "String::is_empty")]
    service: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    method: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Throttling {
    max_tokens: u32,
    token_ratio: f64,
}

fn protobuf<S: serde::Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_protobuf(*length))
}

impl Writer {
    /// Adds a method config: pairs of service and method, empty where [`MethodName`](super::MethodName) says so; the
    /// time limit of a call with all of its attempts; and what happens when an attempt fails.
    pub fn method<'a>(
        &mut self,
        names: impl IntoIterator<Item = (&'a str, &'a str)>,
        timeout: Option<Duration>,
        attempts: AttemptFields,
    ) {
        let name = names.into_iter().map(|(service, method)| Name { service: service.into(), method: method.into() });
        let (retry_policy, hedging_policy) = match attempts {
            AttemptFields::Single => (None, None),
            AttemptFields::Retry(retries) => (Some(retries), None),
            AttemptFields::Hedge(hedging) => (None, Some(hedging)),
        };
        let timeout = timeout.map(to_protobuf);
        self.method_config.push(Method { name: name.collect(), timeout, retry_policy, hedging_policy });
    }

    /// Sets the retry throttling.
    pub fn throttling(&mut self, max_tokens: u32, token_ratio: f64) {
        self.retry_throttling = Some(Throttling { max_tokens, token_ratio });
    }
}

impl fmt::Display for Writer {
    /// Writes the config as JSON, indented by two spaces.
    ///
    /// # Errors
    /// An error if a number is not finite, which JSON cannot express.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?)
    }
}
