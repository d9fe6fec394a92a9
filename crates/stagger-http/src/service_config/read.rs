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
    let mut problems = Vec::new();
    let mut reader = Reader { problems: &mut problems };
    // If the config could not be read, there is at least one problem.
    let config = reader.config(&root).unwrap_or_default();
    ServiceConfigError::unless(problems, config)
}

/// Collects problems. A method that returns `None` has recorded a problem, unless the field is optional and absent.
struct Reader<'a> {
    problems: &'a mut Vec<String>,
}

/// A JSON object and its path.
struct Object<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// Returns a field. `null` counts as absent, as everywhere in protobuf's JSON mapping.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

impl Reader<'_> {
    fn problem<T>(&mut self, path: &str, rule: &str) -> Option<T> {
        self.problems.push(format!("{path} {rule}"));
        None
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
        read(self, &object.at(name), object.get(name)?)
    }

    /// Reads a field that must be present.
    fn required<'a, T>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        read: impl FnOnce(&mut Self, &str, &'a Value) -> Option<T>,
    ) -> Option<T> {
        match object.get(name) {
            Some(value) => read(self, &object.at(name), value),
            None => self.problem(&object.at(name), "is missing and has no default"),
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
                self.problems.extend(error.problems().map(str::to_owned));
                None
            }
        }
    }

    fn method(&mut self, path: &str, value: &Value) -> Option<MethodConfig> {
        let object = self.object(path, value)?;
        let names = self.optional(&object, "name", |reader, path, value| reader.list(path, value, Self::name));
        let timeout = self.optional(&object, "timeout", Self::duration);
        let attempts = match (object.get("retryPolicy"), object.get("hedgingPolicy")) {
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
            let codes = reader.codes(path, value)?;
            if codes.is_empty() {
                reader.problem(path, "is empty; add at least one code, such as UNAVAILABLE")
            } else {
                Some(codes)
            }
        });
        match MethodRetries::from_fields(attempts?.get(), (initial?, max?), multiplier?, codes?) {
            Ok(retries) => Some(retries),
            Err(error) => self.problem(&object.path, &format!("is invalid: {error}")),
        }
    }

    fn hedging(&mut self, path: &str, value: &Value) -> Option<Hedging> {
        let object = self.object(path, value)?;
        let attempts = self.required(&object, "maxAttempts", Self::attempts);
        let has_delay = object.get("hedgingDelay").is_some();
        let delay = self.optional(&object, "hedgingDelay", Self::duration);
        let codes = self.optional(&object, "nonFatalStatusCodes", Self::codes);
        // Without a delay, all attempts start at once.
        let delay = if has_delay { delay? } else { Duration::ZERO };
        Some(Hedging::from_fields(attempts?, delay, codes.unwrap_or_default()))
    }

    fn throttling(&mut self, path: &str, value: &Value) -> Option<RetryThrottling> {
        let object = self.object(path, value)?;
        let max_tokens = self.required(&object, "maxTokens", |reader, path, value| {
            let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
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
        let attempts = value.as_u64().filter(|&attempts| attempts >= 2);
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
                _ => value.as_u64().and_then(|code| u32::try_from(code).ok()).filter(|code| *code <= 16),
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
