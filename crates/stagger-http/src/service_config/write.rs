//! Writes a service config: protobuf's JSON mapping, with the fields in the customary order.

use core::fmt;

use serde::Serialize;

use super::config::{AttemptPolicy, MethodConfig, MethodName, ServiceConfig};
use super::fields::format_duration;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    method_config: Vec<Method<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_throttling: Option<Throttling>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Method<'a> {
    name: Vec<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hedging_policy: Option<Hedge>,
}

#[derive(Default, Serialize)]
struct Name<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retry {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f64,
    retryable_status_codes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hedge {
    max_attempts: u32,
    hedging_delay: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    non_fatal_status_codes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Throttling {
    max_tokens: u32,
    token_ratio: f64,
}

impl fmt::Display for ServiceConfig {
    /// Writes the config as JSON, indented by two spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let throttling = self.throttling().map(|throttling| Throttling {
            max_tokens: throttling.max_tokens(),
            token_ratio: throttling.token_ratio().as_f64(),
        });
        let methods = self.methods().iter().map(Method::of).collect();
        let config = Config { method_config: methods, retry_throttling: throttling };
        // It could fail only for NaN, which a config cannot contain.
        f.write_str(&serde_json::to_string_pretty(&config).map_err(|_| fmt::Error)?)
    }
}

impl<'a> Method<'a> {
    fn of(method: &'a MethodConfig) -> Self {
        let (mut retry_policy, mut hedging_policy) = (None, None);
        match method.attempt_policy() {
            AttemptPolicy::Single => {}
            AttemptPolicy::Retry(retries) => {
                retry_policy = Some(Retry {
                    max_attempts: retries.max_attempts().get(),
                    initial_backoff: format_duration(retries.initial_backoff()),
                    max_backoff: format_duration(retries.max_backoff()),
                    backoff_multiplier: retries.backoff_multiplier(),
                    retryable_status_codes: retries.retryable_codes().names().collect(),
                });
            }
            AttemptPolicy::Hedge(hedging) => {
                hedging_policy = Some(Hedge {
                    max_attempts: hedging.max_attempts().get(),
                    hedging_delay: format_duration(hedging.delay()),
                    non_fatal_status_codes: hedging.non_fatal_codes().names().collect(),
                });
            }
        }
        let name = method.names().iter().map(|name| match name {
            MethodName::All => Name::default(),
            MethodName::Service(service) => Name { service: Some(service), method: None },
            MethodName::Method(service, method) => Name { service: Some(service), method: Some(method) },
        });
        Self { name: name.collect(), timeout: method.timeout().map(format_duration), retry_policy, hedging_policy }
    }
}
