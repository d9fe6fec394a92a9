//! Reads the fields of a service config, and finds everything that a channel refuses.

use std::collections::HashSet;

use core::time::Duration;

use serde_json::{Map, Value};
use stagger::Ratio;

use super::config::MethodName;
use super::fields::{
    ConfigFields, Field, HedgingFields, MethodFields, Path, Problem, RetryFields, ThrottlingFields, parse_duration,
};
use crate::grpc::Codes;

/// Maximum number of problems that are kept, and of bytes of the text of each: a config has as many problems as its
/// author likes, and names as long.
const MAX_PROBLEMS: usize = 100;
const MAX_LENGTH: usize = 500;

const RETRY_FIELDS: [&str; 6] = [
    "maxAttempts",
    "initialBackoff",
    "maxBackoff",
    "backoffMultiplier",
    "retryableStatusCodes",
    "perAttemptRecvTimeout",
];
const HEDGING_FIELDS: [&str; 3] = ["maxAttempts", "hedgingDelay", "nonFatalStatusCodes"];

impl ConfigFields {
    /// Reads a service config. Fields that do not concern retries are ignored; `null` counts as absent, as everywhere
    /// in protobuf's JSON mapping.
    #[must_use]
    pub fn read(json: &Value) -> Self {
        let mut reader = Reader::default();
        let root = Member { path: Path::default(), value: json };
        let Value::Object(members) = json else {
            reader.problem(root.path, "a service config must be a JSON object: start it with {");
            return reader.config;
        };
        let root = Object { path: root.path, members };
        if let Some(list) = reader.take(&root, "methodConfig") {
            for item in reader.items(&list) {
                let method = reader.method(item);
                reader.config.methods.extend(method);
            }
        }
        if let Some(member) = reader.take(&root, "retryThrottling") {
            reader.config.throttling = reader.throttling(&member);
        }
        reader.config
    }
}

#[derive(Default)]
struct Reader<'a> {
    config: ConfigFields,
    /// Service and method, to find those that are configured twice.
    names: HashSet<(&'a str, &'a str)>,
}

/// A value and its path.
struct Member<'a> {
    path: Path,
    value: &'a Value,
}

struct Object<'a> {
    path: Path,
    members: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    fn problem(&mut self, path: Path, text: impl Into<String>) {
        if self.config.problems.len() == MAX_PROBLEMS {
            self.config.other_problems += 1;
            return;
        }
        let mut text = text.into();
        if text.len() > MAX_LENGTH {
            let end = (0..=MAX_LENGTH).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            text.push('…');
        }
        self.config.problems.push(Problem { path, text });
    }

    /// Takes a field. gRPC in Go also reads names in other capitals; gRPC in other languages ignores such a field
    /// without a word, so it is a problem, and read all the same.
    fn take(&mut self, object: &Object<'a>, name: &str) -> Option<Member<'a>> {
        let exact = object.members.get(name).filter(|value| !value.is_null());
        let mut found = exact.map(|value| Member { path: object.path.member(name), value });
        for (key, value) in object.members {
            if key != name && is_spelling(key, name) && !value.is_null() {
                let path = object.path.member(key);
                self.problem(path.clone(), format!("must be written {name}"));
                if found.is_none() {
                    found = Some(Member { path, value });
                }
            }
        }
        found
    }

    /// Takes a field that must be present.
    fn require(&mut self, object: &Object<'a>, name: &str) -> Option<Member<'a>> {
        let found = self.take(object, name);
        if found.is_none() {
            self.problem(object.path.member(name), "is missing and has no default");
        }
        found
    }

    fn object(&mut self, member: Member<'a>) -> Option<Object<'a>> {
        match member.value {
            Value::Object(members) => Some(Object { path: member.path, members }),
            _ => {
                self.problem(member.path, "must be an object");
                None
            }
        }
    }

    /// Returns the items of a list; none if it is not a list.
    fn items(&mut self, list: &Member<'a>) -> Vec<Member<'a>> {
        match list.value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, value)| Member { path: list.path.item(at), value }).collect()
            }
            _ => {
                self.problem(list.path.clone(), "must be a list");
                Vec::new()
            }
        }
    }

    fn method(&mut self, member: Member<'a>) -> Option<MethodFields> {
        let object = self.object(member)?;
        let mut names = Vec::new();
        if let Some(list) = self.take(&object, "name") {
            for item in self.items(&list) {
                names.extend(self.name(item));
            }
        }
        let timeout = self.take(&object, "timeout").and_then(|member| self.duration(member));
        let retries = self.take(&object, "retryPolicy");
        let hedging = self.take(&object, "hedgingPolicy");
        let (retries, hedging) = match (retries, hedging) {
            (Some(_), Some(_)) => {
                let text = "has both a retryPolicy and a hedgingPolicy; remove one of them";
                self.problem(object.path.clone(), text);
                (None, None)
            }
            (retries, hedging) => {
                (retries.and_then(|member| self.retries(member)), hedging.and_then(|member| self.hedging(member)))
            }
        };
        Some(MethodFields { path: object.path, names, timeout, retries, hedging })
    }

    /// Reads the name of a method. An empty text counts as absent.
    fn name(&mut self, member: Member<'a>) -> Option<MethodName> {
        let object = self.object(member)?;
        let service = self.text(&object, "service");
        let method = self.text(&object, "method");
        let name = match (service, method) {
            ("", "") => MethodName::All,
            ("", _) => {
                self.problem(object.path, "names a method without its service; add the service");
                return None;
            }
            (service, "") => MethodName::Service(service.to_owned()),
            (service, method) => MethodName::Method(service.to_owned(), method.to_owned()),
        };
        if !self.names.insert((service, method)) {
            self.problem(object.path, format!("names {name} again; remove one of the entries"));
        }
        Some(name)
    }

    fn text(&mut self, object: &Object<'a>, name: &str) -> &'a str {
        match self.take(object, name) {
            Some(Member { value: Value::String(text), .. }) => text,
            Some(member) => {
                self.problem(member.path, "must be a string");
                ""
            }
            None => "",
        }
    }

    fn retries(&mut self, member: Member<'a>) -> Option<RetryFields> {
        let object = self.object(member)?;
        let max_attempts = self.require(&object, "maxAttempts").and_then(|member| self.attempts(member));
        let initial_backoff = self.require(&object, "initialBackoff").and_then(|member| self.backoff(member));
        let max_backoff = self.require(&object, "maxBackoff").and_then(|member| self.backoff(member));
        let backoff_multiplier = self.require(&object, "backoffMultiplier").and_then(|member| self.multiplier(member));
        let mut codes = Codes::NONE;
        if let Some(list) = self.require(&object, "retryableStatusCodes") {
            codes = self.codes(&list);
            if list.value.as_array().is_some_and(Vec::is_empty) {
                self.problem(list.path, "is empty; add at least one code, such as UNAVAILABLE");
            }
        }
        let attempt_timeout = self.take(&object, "perAttemptRecvTimeout").and_then(|member| self.duration(member));
        let others = others(&object, &RETRY_FIELDS);
        let path = object.path;
        let fields = RetryFields {
            path,
            max_attempts,
            initial_backoff,
            max_backoff,
            backoff_multiplier,
            codes,
            attempt_timeout,
            others,
        };
        if let Some(Err(error)) = fields.build() {
            self.problem(fields.path.clone(), format!("is invalid: {error}"));
        }
        Some(fields)
    }

    fn hedging(&mut self, member: Member<'a>) -> Option<HedgingFields> {
        let object = self.object(member)?;
        let max_attempts = self.require(&object, "maxAttempts").and_then(|member| self.attempts(member));
        let delay = self.take(&object, "hedgingDelay").and_then(|member| self.duration(member));
        let codes = match self.take(&object, "nonFatalStatusCodes") {
            Some(list) => self.codes(&list),
            None => Codes::NONE,
        };
        let others = others(&object, &HEDGING_FIELDS);
        Some(HedgingFields { path: object.path, max_attempts, delay, codes, others })
    }

    fn throttling(&mut self, member: &Member<'a>) -> Option<ThrottlingFields> {
        let object = self.object(Member { path: member.path.clone(), value: member.value })?;
        let max_tokens = self.require(&object, "maxTokens").and_then(|member| match member.value.as_f64() {
            Some(tokens) if (1.0..=1_000.0).contains(&tokens) && tokens.fract() == 0.0 => {
                Some(Field { path: member.path, value: tokens as u32 })
            }
            _ => self.refuse(member, "must be an integer from 1 to 1000"),
        });
        let token_ratio = self.require(&object, "tokenRatio").and_then(|member| {
            // The epsilon keeps 0.001, whose nearest float may be below it.
            let millis = member.value.as_f64().map(|ratio| (ratio * 1e3 + 1e-6).floor());
            match millis {
                Some(millis) if (1.0..=1e6).contains(&millis) => {
                    Some(Field { path: member.path, value: Ratio::millionths(millis as u32 * 1_000) })
                }
                _ => self.refuse(member, "must be a number from 0.001 to 1000; only three decimals count"),
            }
        });
        Some(ThrottlingFields { path: object.path, max_tokens, token_ratio })
    }

    fn refuse<T>(&mut self, member: Member<'a>, text: &str) -> Option<T> {
        self.problem(member.path, text);
        None
    }

    fn attempts(&mut self, member: Member<'a>) -> Option<Field<u32>> {
        const RULE: &str = "must be an integer of 2 or more, since it counts the first attempt";
        let value = match member.value.as_f64() {
            // A saturating conversion: a channel reduces what is above its limit.
            Some(attempts) if attempts.fract() == 0.0 && (0.0..=1e15).contains(&attempts) => attempts as u32,
            _ => return self.refuse(member, RULE),
        };
        if value < 2 {
            self.problem(member.path.clone(), RULE);
        }
        Some(Field { path: member.path, value })
    }

    fn backoff(&mut self, member: Member<'a>) -> Option<Field<Duration>> {
        let length = self.duration(member)?;
        if length.value.is_zero() {
            self.problem(length.path.clone(), "must be greater than zero");
        }
        Some(length)
    }

    fn duration(&mut self, member: Member<'a>) -> Option<Field<Duration>> {
        match member.value.as_str().and_then(parse_duration) {
            Some(value) => Some(Field { path: member.path, value }),
            None => self.refuse(member, "must be a duration in seconds, such as \"0.1s\""),
        }
    }

    fn multiplier(&mut self, member: Member<'a>) -> Option<Field<f64>> {
        // A number in quotes is none: protobuf accepts it, but few libraries of gRPC do.
        let value = member.value.as_f64();
        match value {
            Some(multiplier) if multiplier >= 1.0 => {}
            Some(multiplier) if multiplier > 0.0 => {
                let text = "is below 1, so the delays would shrink, which is not supported; use 1 or more";
                self.problem(member.path.clone(), text);
            }
            _ => self.problem(member.path.clone(), "must be a number of 1 or more, such as 2"),
        }
        Some(Field { path: member.path, value: value? })
    }

    fn codes(&mut self, list: &Member<'a>) -> Codes {
        let mut codes = Vec::new();
        for item in self.items(list) {
            match code(item.value) {
                Some(code) => codes.push(code),
                None => self.problem(
                    item.path,
                    "is not a gRPC status code; use a name such as UNAVAILABLE, or a number from 0 to 16",
                ),
            }
        }
        Codes::new(&codes)
    }
}

/// Reads a status code: a name or a number, in quotes or not.
fn code(value: &Value) -> Option<u32> {
    let number = match value {
        Value::String(name) => match Codes::code_from_name(name) {
            Some(code) => return Some(code),
            None => name.parse().ok()?,
        },
        _ => value.as_f64()?,
    };
    if (0.0..=16.0).contains(&number) && number.fract() == 0.0 { Some(number as u32) } else { None }
}

/// Returns the names of the fields that are not in this list.
fn others(object: &Object<'_>, known: &[&str]) -> Vec<String> {
    let is_known = |key: &str| known.iter().any(|name| is_spelling(key, name));
    let others = object.members.iter().filter(|(key, value)| !value.is_null() && !is_known(key));
    others.map(|(key, _)| key.clone()).collect()
}

/// Returns whether a key is a name in other capitals, or with underscores or hyphens. What is more than twice as long
/// is not: paths contain keys, so they must not be long.
fn is_spelling(key: &str, name: &str) -> bool {
    if key.len() > 2 * name.len() {
        return false;
    }
    let letters = key.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    letters.map(|letter| letter.to_ascii_lowercase()).eq(name.bytes().map(|letter| letter.to_ascii_lowercase()))
}
