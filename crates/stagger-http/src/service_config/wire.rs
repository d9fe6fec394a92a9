use serde::Serialize;

use super::{AttemptPolicy, MethodConfig, MethodName, ServiceConfig, duration};

/// A service config as it is serialized: protobuf's JSON mapping, with the fields in the customary order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire<'a> {
    method_config: Vec<Method<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_throttling: Option<RetryThrottling>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Method<'a> {
    name: Vec<Name<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hedging_policy: Option<HedgingPolicy>,
}

#[derive(Serialize)]
struct Name<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f64,
    retryable_status_codes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HedgingPolicy {
    max_attempts: u32,
    hedging_delay: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    non_fatal_status_codes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RetryThrottling {
    max_tokens: u32,
    token_ratio: f64,
}

impl<'a> Wire<'a> {
    pub(super) fn new(config: &'a ServiceConfig) -> Self {
        Self {
            method_config: config.methods().iter().map(Method::of).collect(),
            retry_throttling: config.throttling().map(|throttling| RetryThrottling {
                max_tokens: throttling.max_tokens(),
                token_ratio: throttling.token_ratio().as_f64(),
            }),
        }
    }
}

impl<'a> Method<'a> {
    fn of(method: &'a MethodConfig) -> Self {
        let name = method.names().iter().map(Name::of).collect();
        let timeout = method.timeout().map(duration::format);
        let mut written = Self { name, timeout, retry_policy: None, hedging_policy: None };
        match method.attempt_policy() {
            AttemptPolicy::Single => {}
            AttemptPolicy::Retry(retries) => {
                written.retry_policy = Some(RetryPolicy {
                    max_attempts: retries.max_attempts().get(),
                    initial_backoff: duration::format(retries.initial_backoff()),
                    max_backoff: duration::format(retries.max_backoff()),
                    backoff_multiplier: retries.backoff_multiplier(),
                    retryable_status_codes: retries.retryable_codes().names().collect(),
                });
            }
            AttemptPolicy::Hedge(hedging) => {
                written.hedging_policy = Some(HedgingPolicy {
                    max_attempts: hedging.max_attempts().get(),
                    hedging_delay: duration::format(hedging.delay()),
                    non_fatal_status_codes: hedging.non_fatal_codes().names().collect(),
                });
            }
        }
        written
    }
}

impl<'a> Name<'a> {
    fn of(name: &'a MethodName) -> Self {
        let (service, method) = match name {
            MethodName::All => (None, None),
            MethodName::Service(service) => (Some(&**service), None),
            MethodName::Method(service, method) => (Some(&**service), Some(&**method)),
        };
        Self { service, method }
    }
}
