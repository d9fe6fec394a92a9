use core::time::Duration;

use super::{
    Attempts, HedgingPolicy, MAX_PROBLEMS, MethodConfig, MethodName, OtherField, Problem, RetryPolicy, ServiceConfig,
    StatusCode, Throttling,
};
use crate::entry::Setting;
use crate::fields::{Field, Fields, join};
use crate::position::{ReadError, Span};
use crate::tree::{Node, Value, checked, json};
use crate::units;

/// Parses a service config from JSON. Fields that do not concern retries are ignored.
///
/// # Errors
/// [`ReadError`] with the place, if the text is not JSON, or longer than 64 MiB. Everything else is a [`Problem`] of
/// the config.
pub fn parse(text: &str) -> Result<ServiceConfig, ReadError> {
    let text = checked(text)?;
    json(text).map(|document| parse_document(&document))
}

/// Reads a service config that has been parsed as JSON or YAML.
pub(crate) fn parse_document(document: &Node) -> ServiceConfig {
    let mut parser = Parser { config: ServiceConfig::default() };
    if !matches!(document.value, Value::Map(_)) {
        parser.problem("a service config", document.span, "must be a JSON object: start it with {");
        return parser.config;
    }
    let mut root = Fields::of(document, "");
    for (path, node) in parser.list(&mut root, "methodConfig").unwrap_or_default() {
        let method = parser.method(path, node);
        parser.config.methods.extend(method);
    }
    parser.config.throttling = parser.optional(&mut root, "retryThrottling", Parser::throttling);
    parser.config
}

struct Parser {
    config: ServiceConfig,
}

impl Parser {
    fn problem(&mut self, path: &str, span: Span, text: &str) {
        if self.config.problems.len() < MAX_PROBLEMS {
            self.config.problems.push(Problem { path: path.to_owned(), span, text: text.to_owned() });
        } else {
            self.config.other_problems += 1;
        }
    }

    fn problem_of<T>(&mut self, field: &Field<'_>, text: &str) -> Option<T> {
        self.problem(&field.path, field.span(), text);
        None
    }

    /// Takes a field; `null` counts as absent, as everywhere in protobuf's JSON mapping. gRPC in Go also reads names in
    /// other capitals; gRPC in other languages ignores such a field without a word, so it is a problem.
    fn take<'a>(&mut self, fields: &mut Fields<'a>, name: &str) -> Option<Field<'a>> {
        let field = fields.take(name)?;
        if field.path.rsplit('.').next() != Some(name) {
            self.problem(&field.path, field.key_span, &format!("must be written {name}"));
        }
        Some(field)
    }

    /// Takes a field that may be absent, and reads its value.
    fn optional<T>(
        &mut self,
        fields: &mut Fields<'_>,
        name: &str,
        read: fn(&mut Self, &Field<'_>) -> Option<T>,
    ) -> Option<T> {
        let field = self.take(fields, name)?;
        read(self, &field)
    }

    /// Takes a field that must be present, and reads its value. `place` is the mapping around it.
    fn required<T>(
        &mut self,
        fields: &mut Fields<'_>,
        place: Span,
        name: &str,
        read: fn(&mut Self, &Field<'_>) -> Option<T>,
    ) -> Option<T> {
        let Some(field) = self.take(fields, name) else {
            self.problem(&join(&fields.path, name), place, "is missing and has no default");
            return None;
        };
        read(self, &field)
    }

    /// Takes a list. `None` if it is absent, or is none.
    fn list<'a>(&mut self, fields: &mut Fields<'a>, name: &str) -> Option<Vec<(String, &'a Node)>> {
        let field = self.take(fields, name)?;
        self.items(&field)
    }

    fn items<'a>(&mut self, field: &Field<'a>) -> Option<Vec<(String, &'a Node)>> {
        match field.node.value {
            Value::List(_) => Some(field.items()),
            _ => self.problem_of(field, "must be a list"),
        }
    }

    /// Starts to read an object.
    fn object<'a>(&mut self, path: &str, span: Span, node: &'a Node) -> Option<Fields<'a>> {
        if matches!(node.value, Value::Map(_)) {
            return Some(Fields::of(node, path));
        }
        self.problem(path, span, "must be an object");
        None
    }

    fn method(&mut self, path: String, node: &Node) -> Option<MethodConfig> {
        let mut fields = self.object(&path, node.span, node)?;
        let names = self.list(&mut fields, "name").unwrap_or_default();
        let names = names.into_iter().filter_map(|(path, node)| self.name(&path, node)).collect();
        let timeout = self.optional(&mut fields, "timeout", Self::duration);
        let retries = self.take(&mut fields, "retryPolicy");
        let hedging = self.take(&mut fields, "hedgingPolicy");
        if retries.is_some() && hedging.is_some() {
            self.problem(&path, node.span, "has both a retryPolicy and a hedgingPolicy; remove one of them");
        }
        let mut others = Vec::new();
        let attempts = match (retries, hedging) {
            (Some(field), None) => self.retries(&field, &mut others).map(Attempts::Retry),
            (None, Some(field)) => self.hedging(&field, &mut others).map(Attempts::Hedge),
            // A channel reads neither of them if both are there.
            (Some(_), Some(_)) | (None, None) => None,
        };
        Some(MethodConfig {
            path,
            span: node.span,
            names,
            timeout,
            attempts: attempts.unwrap_or(Attempts::Single),
            others,
        })
    }

    /// Reads the name of a method. An empty text counts as absent.
    fn name(&mut self, path: &str, node: &Node) -> Option<MethodName> {
        let mut fields = self.object(path, node.span, node)?;
        let mut text = |name: &str| {
            let field = self.take(&mut fields, name)?;
            match field.text() {
                Some(text) => Some(text.to_owned()),
                None => self.problem_of(&field, "must be a string"),
            }
        };
        let name =
            MethodName { service: text("service").unwrap_or_default(), method: text("method").unwrap_or_default() };
        if name.service.is_empty() && !name.method.is_empty() {
            self.problem(path, node.span, "names a method without its service; add the service");
            return None;
        }
        Some(name)
    }

    fn retries(&mut self, field: &Field<'_>, others: &mut Vec<OtherField>) -> Option<RetryPolicy> {
        let place = field.span();
        let mut fields = self.object(&field.path, place, field.node)?;
        let mut found = RetryPolicy {
            span: place,
            max_attempts: None,
            initial_backoff: None,
            max_backoff: None,
            backoff_multiplier: None,
            codes: Vec::new(),
            attempt_timeout: None,
        };
        found.max_attempts = self.required(&mut fields, place, "maxAttempts", Self::attempts);
        found.initial_backoff = self.required(&mut fields, place, "initialBackoff", Self::backoff);
        found.max_backoff = self.required(&mut fields, place, "maxBackoff", Self::backoff);
        found.backoff_multiplier = self.required(&mut fields, place, "backoffMultiplier", Self::multiplier);
        found.codes =
            self.required(&mut fields, place, "retryableStatusCodes", Self::retryable_codes).unwrap_or_default();
        found.attempt_timeout = self.optional(&mut fields, "perAttemptRecvTimeout", Self::duration);
        others.extend(rest(fields));
        Some(found)
    }

    fn hedging(&mut self, field: &Field<'_>, others: &mut Vec<OtherField>) -> Option<HedgingPolicy> {
        let place = field.span();
        let mut fields = self.object(&field.path, place, field.node)?;
        let max_attempts = self.required(&mut fields, place, "maxAttempts", Self::attempts);
        let delay = self.optional(&mut fields, "hedgingDelay", Self::duration);
        let codes = self.optional(&mut fields, "nonFatalStatusCodes", Self::codes);
        others.extend(rest(fields));
        Some(HedgingPolicy { span: place, max_attempts, delay, codes: codes.unwrap_or_default() })
    }

    fn throttling(&mut self, field: &Field<'_>) -> Option<Throttling> {
        let place = field.span();
        let mut fields = self.object(&field.path, place, field.node)?;
        let max_tokens = self.required(&mut fields, place, "maxTokens", Self::max_tokens);
        let token_ratio_millis = self.required(&mut fields, place, "tokenRatio", Self::token_ratio);
        Some(Throttling { span: place, max_tokens, token_ratio_millis })
    }

    fn max_tokens(&mut self, field: &Field<'_>) -> Option<Setting<u32>> {
        match number(field.node) {
            Some(tokens) if (1.0..=1_000.0).contains(&tokens) && tokens.fract() == 0.0 => {
                Some(Setting::stated(tokens as u32, field.span()))
            }
            _ => self.problem_of(field, "must be an integer from 1 to 1000"),
        }
    }

    fn token_ratio(&mut self, field: &Field<'_>) -> Option<Setting<u32>> {
        if let Some(ratio) = number(field.node) {
            // The epsilon keeps 0.001, whose nearest float may be below it.
            let millis = (ratio * 1e3 + 1e-6).floor();
            if (1.0..=1e6).contains(&millis) {
                return Some(Setting::stated(millis as u32, field.span()));
            }
        }
        self.problem_of(field, "must be a number from 0.001 to 1000; only three decimals count")
    }

    fn attempts(&mut self, field: &Field<'_>) -> Option<Setting<u32>> {
        const WANTED: &str = "must be an integer of 2 or more, since it counts the first attempt";
        match number(field.node) {
            Some(attempts) if attempts.fract() == 0.0 && (0.0..=1e15).contains(&attempts) => {
                if attempts < 2.0 {
                    self.problem(&field.path, field.span(), WANTED);
                }
                // A saturating conversion: a channel reduces what is above its limit.
                Some(Setting::stated(attempts as u32, field.span()))
            }
            _ => self.problem_of(field, WANTED),
        }
    }

    fn backoff(&mut self, field: &Field<'_>) -> Option<Setting<Duration>> {
        let length = self.duration(field)?;
        if length.value.is_zero() {
            self.problem(&field.path, field.span(), "must be greater than zero");
        }
        Some(length)
    }

    fn duration(&mut self, field: &Field<'_>) -> Option<Setting<Duration>> {
        if let Some(text) = field.text()
            && let Some(length) = units::protobuf(text)
        {
            return Some(Setting::stated(length, field.span()));
        }
        self.problem_of(field, "must be a duration in seconds, such as \"0.1s\"")
    }

    fn multiplier(&mut self, field: &Field<'_>) -> Option<Setting<f64>> {
        let multiplier = number(field.node);
        match multiplier {
            Some(multiplier) if multiplier >= 1.0 => {}
            Some(multiplier) if multiplier > 0.0 => self.problem(
                &field.path,
                field.span(),
                "is below 1, so the delays would shrink, which is not supported; use 1 or more",
            ),
            _ => self.problem(&field.path, field.span(), "must be a number of 1 or more, such as 2"),
        }
        multiplier.map(|multiplier| Setting::stated(multiplier, field.span()))
    }

    fn retryable_codes(&mut self, field: &Field<'_>) -> Option<Vec<StatusCode>> {
        let codes = self.codes(field)?;
        if codes.is_empty() {
            self.problem(&field.path, field.span(), "is empty; add at least one code, such as UNAVAILABLE");
        }
        Some(codes)
    }

    fn codes(&mut self, field: &Field<'_>) -> Option<Vec<StatusCode>> {
        let items = self.items(field)?;
        let codes = items.into_iter().map(|(path, node)| {
            let text = node.text().unwrap_or_default().to_owned();
            StatusCode { path, span: node.span, text }
        });
        Some(codes.collect())
    }
}

/// The fields that have not been taken.
fn rest(mut fields: Fields<'_>) -> impl Iterator<Item = OtherField> {
    fields.rest().into_iter().map(|field| OtherField { span: field.span(), path: field.path })
}

/// A number that is not in quotes: protobuf accepts others, but few libraries of gRPC do.
fn number(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Scalar { text, is_quoted: false } => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}
