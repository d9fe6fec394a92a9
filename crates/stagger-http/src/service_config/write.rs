use stagger_config::service_config::{AttemptFields, HedgingFields, RetryFields, Writer};

use super::{AttemptPolicy, MethodName, ServiceConfig};

/// Returns a service config as it is written.
pub(super) fn writer(config: &ServiceConfig) -> Writer {
    let mut writer = Writer::default();
    for method in config.methods() {
        let names = method.names().iter().map(|name| match name {
            MethodName::All => ("", ""),
            MethodName::Service(service) => (&**service, ""),
            MethodName::Method(service, method) => (&**service, &**method),
        });
        let attempts = match method.attempt_policy() {
            AttemptPolicy::Single => AttemptFields::Single,
            AttemptPolicy::Retry(retries) => AttemptFields::Retry(RetryFields {
                max_attempts: retries.max_attempts().get(),
                initial_backoff: retries.initial_backoff(),
                max_backoff: retries.max_backoff(),
                backoff_multiplier: retries.backoff_multiplier(),
                codes: retries.retryable_codes().names().collect(),
            }),
            AttemptPolicy::Hedge(hedging) => AttemptFields::Hedge(HedgingFields {
                max_attempts: hedging.max_attempts().get(),
                delay: hedging.delay(),
                codes: hedging.non_fatal_codes().names().collect(),
            }),
        };
        writer.method(names, method.timeout(), attempts);
    }
    if let Some(throttling) = config.throttling() {
        writer.throttling(throttling.max_tokens(), throttling.token_ratio().as_f64());
    }
    writer
}
