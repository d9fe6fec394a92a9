use core::num::NonZeroU32;
use core::time::Duration;

use serde_json::{Map, Value};
use stagger::Ratio;

use super::{
    AttemptPolicy, Hedging, MethodConfig, MethodName, MethodRetries, RetryThrottling, ServiceConfig,
    ServiceConfigError, duration,
};
use crate::grpc::Codes;

/// Parses a service config, and collects every problem in it.
pub(super) fn service_config(json: &str) -> Result<ServiceConfig, ServiceConfigError> {
    let root: Value =
        serde_json::from_str(json).map_err(|error| ServiceConfigError::one(format!("not valid JSON: {error}")))?;
    let mut reader = Reader { problems: Vec::new(), others: 0 };
    // If the config could not be read, there is at least one problem.
    let config = reader.config(&root).unwrap_or_default();
    let Reader { mut problems, others } = reader;
    if others > 0 {
        problems.push(format!("{others} more problems"));
    }
    ServiceConfigError::unless(problems, config)
}

/// Maximum number of problems that are reported one by one, and of bytes of each: a config has as many problems as its
/// author likes, and names as long.
const MAX_PROBLEMS: usize = 100;
const MAX_LENGTH: usize = 500;

/// Collects problems. A method that returns `None` has recorded a problem, unless the field is optional and absent.
struct Reader {
    problems: Vec<String>,
    /// Number of further problems.
    others: usize,
}

/// A problem has been recorded.
struct Reported;

/// A JSON object and its path.
struct Object<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl Object<'_> {
    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl Reader {
    fn problem<T>(&mut self, path: &str, rule: &str) -> Option<T> {
        self.record(format!("{path} {rule}"));
        None
    }

    fn record(&mut self, mut problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            if problem.len() > MAX_LENGTH {
                let end = (0..=MAX_LENGTH).rev().find(|end| problem.is_char_boundary(*end));
                problem.truncate(end.unwrap_or_default());
                problem.push('…');
            }
            self.problems.push(problem);
        } else {
            self.others += 1;
        }
    }

    /// Returns a field; `null` counts as absent, as everywhere in protobuf's JSON mapping. gRPC in Go also reads names
    /// in other capitals; gRPC in other languages ignores such a field without a word, so it is a problem.
    fn field<'a>(&mut self, object: &Object<'a>, name: &str) -> Result<Option<&'a Value>, Reported> {
        if let Some(value) = object.fields.get(name) {
            return Ok(Some(value).filter(|value| !value.is_null()));
        }
        match object.fields.keys().find(|key| key.eq_ignore_ascii_case(name)) {
            Some(other) => {
                self.record(format!("{} must be written {name}", object.at(other)));
                Err(Reported)
            }
            None => Ok(None),
        }
    }

    fn object<'a>(&mut self, path: &str, value: &'a Value) -> Option<Object<'a>> {
        match value.as_object() {
            Some(fields) => Some(Object { path: path.to_owned(), fields }),
            None if path.is_empty() => self.problem("a service config", "must be a JSON object: start it with {"),
            None => self.problem(path, "must be an object"),
        }
    }

    /// Reads a field if it is present.
    fn optional<'a, T>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        read: impl FnOnce(&mut Self, &str, &'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.field(object, name).ok()??;
        read(self, &object.at(name), value)
    }

    /// Reads a field that must be present.
    fn required<'a, T>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        read: impl FnOnce(&mut Self, &str, &'a Value) -> Option<T>,
    ) -> Option<T> {
        match self.field(object, name) {
            Ok(Some(value)) => read(self, &object.at(name), value),
            Ok(None) => self.problem(&object.at(name), "is missing and has no default"),
            Err(Reported) => None,
        }
    }

    /// Reads a list. Skips elements that cannot be read.
    fn list<'a, T>(
        &mut self,
        path: &str,
        value: &'a Value,
        mut read: impl FnMut(&mut Self, &str, &'a Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(values) = value.as_array() else { return self.problem(path, "must be a list") };
        Some(values.iter().enumerate().filter_map(|(at, value)| read(self, &format!("{path}[{at}]"), value)).collect())
    }

    fn config(&mut self, root: &Value) -> Option<ServiceConfig> {
        let object = self.object("", root)?;
        let methods =
            self.optional(&object, "methodConfig", |reader, path, value| reader.list(path, value, Self::method));
        let throttling = self.optional(&object, "retryThrottling", Self::throttling);
        match (ServiceConfig::new(methods.unwrap_or_default()), throttling) {
            (Ok(config), Some(throttling)) => Some(config.with_throttling(throttling)),
            (Ok(config), None) => Some(config),
            (Err(error), _) => {
                error.problems().for_each(|problem| self.record(problem.to_owned()));
                None
            }
        }
    }

    fn method(&mut self, path: &str, value: &Value) -> Option<MethodConfig> {
        let object = self.object(path, value)?;
        let names = self.optional(&object, "name", |reader, path, value| reader.list(path, value, Self::name));
        let timeout = self.optional(&object, "timeout", Self::duration);
        let retries = self.field(&object, "retryPolicy").ok()?;
        let hedging = self.field(&object, "hedgingPolicy").ok()?;
        let attempts = match (retries, hedging) {
            (Some(_), Some(_)) => {
                return self.problem(&object.path, "has both a retryPolicy and a hedgingPolicy; remove one of them");
            }
            (Some(value), None) => AttemptPolicy::Retry(self.retries(&object.at("retryPolicy"), value)?),
            (None, Some(value)) => AttemptPolicy::Hedge(self.hedging(&object.at("hedgingPolicy"), value)?),
            (None, None) => AttemptPolicy::Single,
        };
        let method = MethodConfig::new(names.unwrap_or_default(), attempts);
        Some(match timeout {
            Some(limit) => method.with_timeout(limit),
            None => method,
        })
    }

    /// Reads a method name. An empty string counts as absent.
    fn name(&mut self, path: &str, value: &Value) -> Option<MethodName> {
        let object = self.object(path, value)?;
        let service = self.optional(&object, "service", Self::text).unwrap_or_default().to_owned();
        let method = self.optional(&object, "method", Self::text).unwrap_or_default().to_owned();
        match (service.is_empty(), method.is_empty()) {
            (true, true) => Some(MethodName::All),
            (true, false) => self.problem(&object.path, "names a method without its service; add the service"),
            (false, true) => Some(MethodName::Service(service)),
            (false, false) => Some(MethodName::Method(service, method)),
        }
    }

    fn retries(&mut self, path: &str, value: &Value) -> Option<MethodRetries> {
        let object = self.object(path, value)?;
        let attempts = self.required(&object, "maxAttempts", Self::attempts);
        let initial = self.required(&object, "initialBackoff", Self::backoff);
        let max = self.required(&object, "maxBackoff", Self::backoff);
        let multiplier = self.required(&object, "backoffMultiplier", Self::multiplier);
        let codes = self.required(&object, "retryableStatusCodes", |reader, path, value| {
            if value.as_array().is_some_and(Vec::is_empty) {
                return reader.problem(path, "is empty; add at least one code, such as UNAVAILABLE");
            }
            // Without any valid code, each of them is a problem of its own.
            reader.codes(path, value).filter(|codes| !codes.is_empty())
        });
        match MethodRetries::from_fields(attempts?.get(), (initial?, max?), multiplier?, codes?) {
            Ok(retries) => Some(retries),
            Err(error) => self.problem(&object.path, &format!("is invalid: {error}")),
        }
    }

    fn hedging(&mut self, path: &str, value: &Value) -> Option<Hedging> {
        let object = self.object(path, value)?;
        let attempts = self.required(&object, "maxAttempts", Self::attempts);
        let delay = match self.field(&object, "hedgingDelay") {
            // Without a delay, all attempts start at once.
            Ok(None) => Some(Duration::ZERO),
            Ok(Some(value)) => self.duration(&object.at("hedgingDelay"), value),
            Err(Reported) => None,
        };
        let codes = self.optional(&object, "nonFatalStatusCodes", Self::codes);
        Some(Hedging::from_fields(attempts?, delay?, codes.unwrap_or_default()))
    }

    fn throttling(&mut self, path: &str, value: &Value) -> Option<RetryThrottling> {
        let object = self.object(path, value)?;
        let max_tokens = self.required(&object, "maxTokens", |reader, path, value| {
            let tokens = integer(value).and_then(|tokens| u32::try_from(tokens).ok());
            let tokens = tokens.filter(|tokens| (1..=1000).contains(tokens));
            tokens.or_else(|| reader.problem(path, "must be an integer from 1 to 1000"))
        });
        let token_ratio = self.required(&object, "tokenRatio", |reader, path, value| {
            // Only three decimals count. The epsilon keeps 0.001, whose nearest float may be below it.
            let ratio =
                value.as_f64().map(|ratio| (ratio * 1e3 + 1e-6).floor()).filter(|milli| (1.0..=1e6).contains(milli));
            let rule = "must be a number from 0.001 to 1000; only three decimals count";
            ratio.map(|milli| Ratio::millionths(milli as u32 * 1000)).or_else(|| reader.problem(path, rule))
        });
        match RetryThrottling::new(max_tokens?, token_ratio?) {
            Ok(throttling) => Some(throttling),
            Err(error) => self.problem(&object.path, &format!("is invalid: {error}")),
        }
    }

    fn attempts(&mut self, path: &str, value: &Value) -> Option<NonZeroU32> {
        let attempts = integer(value).filter(|&attempts| attempts >= 2);
        let Some(attempts) = attempts else {
            return self.problem(path, "must be an integer of 2 or more, since it counts the first attempt");
        };
        NonZeroU32::new(u32::try_from(attempts).unwrap_or(u32::MAX))
    }

    fn backoff(&mut self, path: &str, value: &Value) -> Option<Duration> {
        match self.duration(path, value)? {
            Duration::ZERO => self.problem(path, "must be greater than zero"),
            duration => Some(duration),
        }
    }

    fn duration(&mut self, path: &str, value: &Value) -> Option<Duration> {
        let duration = value.as_str().and_then(duration::parse);
        duration.or_else(|| self.problem(path, "must be a duration in seconds, such as \"0.1s\""))
    }

    fn multiplier(&mut self, path: &str, value: &Value) -> Option<f64> {
        match value.as_f64() {
            Some(multiplier) if multiplier >= 1.0 => Some(multiplier),
            Some(multiplier) if multiplier > 0.0 => {
                self.problem(path, "is below 1, so the delays would shrink, which is not supported; use 1 or more")
            }
            _ => self.problem(path, "must be a number of 1 or more, such as 2"),
        }
    }

    fn text<'a>(&mut self, path: &str, value: &'a Value) -> Option<&'a str> {
        value.as_str().or_else(|| self.problem(path, "must be a string"))
    }

    fn codes(&mut self, path: &str, value: &Value) -> Option<Codes> {
        let codes = self.list(path, value, |reader, path, value| {
            let code = match value {
                Value::String(name) => Codes::code_from_name(name),
                _ => integer(value).and_then(|code| u32::try_from(code).ok()).filter(|code| *code <= 16),
            };
            code.or_else(|| {
                reader.problem(
                    path,
                    "is not a gRPC status code; use a name such as UNAVAILABLE, or a number from 0 to 16",
                )
            })
        });
        codes.map(|codes| Codes::new(&codes))
    }
}

/// Returns a whole number of 0 or more. Protobuf's JSON mapping also writes it as `4.0`.
fn integer(value: &Value) -> Option<u64> {
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=1e15).contains(number));
    value.as_u64().or_else(|| whole().map(|number| number as u64))
}
