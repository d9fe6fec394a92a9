//! Service configs as text: parsing, with every problem, and writing.

use core::num::NonZeroU32;
use core::time::Duration;

use stagger::Ratio;
use stagger_config::service_config::{
    AttemptFields, Attempts, HedgingFields, HedgingPolicy, MethodConfig as FoundMethod, RetryFields, RetryPolicy,
    ServiceConfig as FoundConfig, StatusCode, Throttling, Writer, parse,
};
use stagger_config::{Setting, Span};

use super::{
    AttemptPolicy, Hedging, MethodConfig, MethodName, MethodRetries, RetryThrottling, ServiceConfig, ServiceConfigError,
};
use crate::grpc::Codes;

/// Parses a service config, and collects every problem in it.
pub(super) fn service_config(json: &str) -> Result<ServiceConfig, ServiceConfigError> {
    let found = parse(json).map_err(|error| ServiceConfigError::one(format!("{error} at {}", error.position())))?;
    let mut problems = Problems::of(&found);
    let methods: Vec<_> = found.methods.iter().filter_map(|method| problems.method(method)).collect();
    let throttling = found.throttling.and_then(|throttling| problems.throttling(throttling));
    // If something could not be read, there is at least one problem.
    match ServiceConfig::new(methods) {
        Ok(config) => {
            let config = throttling.into_iter().fold(config, ServiceConfig::with_throttling);
            ServiceConfigError::unless(problems.texts(), config)
        }
        Err(repeated) => {
            problems.whole.extend(repeated.problems().map(str::to_owned));
            ServiceConfigError::unless(problems.texts(), ServiceConfig::default())
        }
    }
}

/// Maximum number of problems that are reported one by one, and of bytes of each: a config has as many problems as its
/// author likes, and names as long.
const MAX_PROBLEMS: usize = 100;
const MAX_LENGTH: usize = 500;

/// What is wrong with a config.
struct Problems {
    placed: Vec<(Span, String)>,
    /// Those of the config as a whole.
    whole: Vec<String>,
    /// Number of further problems.
    others: usize,
}

impl Problems {
    fn of(found: &FoundConfig) -> Self {
        let placed = found.problems.iter().map(|problem| (problem.span, format!("{} {}", problem.path, problem.text)));
        Self { placed: placed.collect(), whole: Vec::new(), others: found.other_problems }
    }

    fn method(&mut self, found: &FoundMethod) -> Option<MethodConfig> {
        let attempts = match &found.attempts {
            Attempts::Single => AttemptPolicy::Single,
            Attempts::Retry(policy) => AttemptPolicy::Retry(self.retries(policy, &found.path)?),
            Attempts::Hedge(policy) => AttemptPolicy::Hedge(self.hedging(policy)?),
        };
        let names = found.names.iter().map(|name| match (&*name.service, &*name.method) {
            ("", _) => MethodName::All,
            (service, "") => MethodName::Service(service.to_owned()),
            (service, method) => MethodName::Method(service.to_owned(), method.to_owned()),
        });
        let method = MethodConfig::new(names, attempts);
        Some(value(found.timeout).into_iter().fold(method, MethodConfig::with_timeout))
    }

    fn retries(&mut self, policy: &RetryPolicy, path: &str) -> Option<MethodRetries> {
        let codes = self.codes(&policy.codes);
        let attempts = value(policy.max_attempts)?;
        let backoffs = (value(policy.initial_backoff)?, value(policy.max_backoff)?);
        let multiplier = value(policy.backoff_multiplier)?;
        if backoffs.0.is_zero() || backoffs.1.is_zero() || attempts < 2 || multiplier < 1.0 {
            // The parser has reported it.
            return None;
        }
        match MethodRetries::from_fields(attempts, backoffs, multiplier, codes) {
            Ok(retries) => Some(retries),
            Err(error) => {
                self.placed.push((policy.span, format!("{path}.retryPolicy is invalid: {error}")));
                None
            }
        }
    }

    fn hedging(&mut self, policy: &HedgingPolicy) -> Option<Hedging> {
        let codes = self.codes(&policy.codes);
        // Without a delay, all attempts start at once.
        let delay = value(policy.delay).unwrap_or(Duration::ZERO);
        Some(Hedging::from_fields(NonZeroU32::new(value(policy.max_attempts)?)?, delay, codes))
    }

    fn throttling(&mut self, found: Throttling) -> Option<RetryThrottling> {
        let ratio = Ratio::millionths(value(found.token_ratio_millis)?.saturating_mul(1_000));
        match RetryThrottling::new(value(found.max_tokens)?, ratio) {
            Ok(throttling) => Some(throttling),
            Err(error) => {
                self.placed.push((found.span, format!("retryThrottling is invalid: {error}")));
                None
            }
        }
    }

    fn codes(&mut self, found: &[StatusCode]) -> Codes {
        let mut codes = Vec::new();
        for code in found {
            // A number may be written as JSON's floating point.
            let number = code.text.trim_end_matches(".0").parse();
            match (Codes::code_from_name(&code.text), number) {
                (Some(number), _) | (None, Ok(number @ ..=16)) => codes.push(number),
                _ => {
                    let rule = "is not a gRPC status code; use a name such as UNAVAILABLE, or a number from 0 to 16";
                    self.placed.push((code.span, format!("{} {rule}", code.path)));
                }
            }
        }
        Codes::new(&codes)
    }

    /// Returns the texts in the order of the file, bounded in number and length.
    fn texts(mut self) -> Vec<String> {
        self.placed.sort_by_key(|(span, _)| span.start);
        let texts = self.placed.into_iter().map(|(_, text)| text).chain(self.whole);
        let mut kept = Vec::new();
        for mut text in texts {
            if kept.len() == MAX_PROBLEMS {
                self.others += 1;
                continue;
            }
            if text.len() > MAX_LENGTH {
                let end = (0..=MAX_LENGTH).rev().find(|end| text.is_char_boundary(*end));
                text.truncate(end.unwrap_or_default());
                text.push('…');
            }
            kept.push(text);
        }
        if self.others > 0 {
            kept.push(format!("{} more problems", self.others));
        }
        kept
    }
}

fn value<T>(setting: Option<Setting<T>>) -> Option<T> {
    setting.map(|setting| setting.value)
}

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
