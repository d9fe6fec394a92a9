//! Traces of services that are played, and the files that they write.

use stagger_traces::{Analyzer, Report};

/// A span that is played. Times are microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: u64,
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) service: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: u8,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) has_failed: bool,
    /// Keys and values; a number if it has only digits.
    pub(crate) attributes: Vec<(&'static str, String)>,
}

pub(crate) const SERVER: u8 = 2;
pub(crate) const CLIENT: u8 = 3;

/// The spans of a test, and how far the clock of each service is ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) spans: Vec<Span>,
    pub(crate) skew_us: Vec<(&'static str, i64)>,
}

impl Recorded {
    /// Adds a span, and returns its identifier.
    pub(crate) fn add(
        &mut self,
        (trace, parent): (u64, u64),
        (service, name, kind): (&'static str, &'static str, u8),
        (start, end): (u64, u64),
        has_failed: bool,
    ) -> u64 {
        let id = self.spans.len() as u64 + 1;
        let attributes = Vec::new();
        self.spans.push(Span { trace, id, parent, service, name, kind, start, end, has_failed, attributes });
        id
    }

    /// Adds an attribute to the last span.
    pub(crate) fn with(&mut self, key: &'static str, value: impl core::fmt::Display) {
        self.spans.last_mut().expect("there is a span").attributes.push((key, format!("{value}")));
    }

    fn skewed(&self, service: &str, time: u64) -> u64 {
        let skew = self.skew_us.iter().find(|(skewed, _)| *skewed == service).map_or(0, |(_, skew)| *skew);
        // Long after 1970.
        (1_700_000_000_000_000 + time).checked_add_signed(skew).expect("a time")
    }

    fn services(&self) -> Vec<&'static str> {
        let mut services: Vec<_> = self.spans.iter().map(|span| span.service).collect();
        services.sort_unstable();
        services.dedup();
        services
    }

    /// Writes OTLP: a line for each service.
    pub(crate) fn otlp(&self) -> String {
        let value = |value: &str| match value.parse::<u64>() {
            Ok(_) => format!(r#"{{"intValue": "{value}"}}"#),
            Err(_) => format!(r#"{{"stringValue": "{value}"}}"#),
        };
        let span = |span: &Span| {
            let attributes: Vec<_> = span
                .attributes
                .iter()
                .map(|(key, text)| format!(r#"{{"key": "{key}", "value": {}}}"#, value(text)))
                .collect();
            format!(
                r#"{{"traceId": "{:032x}", "spanId": "{:016x}", "parentSpanId": "{}", "name": "{}", "kind": {},
"startTimeUnixNano": "{}000", "endTimeUnixNano": "{}000", "attributes": [{}], "status": {{{}}}, "flags": 257}}"#,
                span.trace,
                span.id,
                if span.parent == 0 { String::new() } else { format!("{:016x}", span.parent) },
                span.name,
                span.kind,
                self.skewed(span.service, span.start),
                self.skewed(span.service, span.end),
                attributes.join(", "),
                if span.has_failed { "\"code\": 2, \"message\": \"x\"" } else { "" }
            )
            .replace('\n', " ")
        };
        let line = |service: &&str| {
            let spans: Vec<_> = self.spans.iter().filter(|span| span.service == *service).map(span).collect();
            format!(
                r#"{{"resourceSpans": [{{"resource": {{"attributes": [{{"key": "host.name", "value": {{"stringValue": "h"}}}}, {{"key": "service.name", "value": {{"stringValue": "{service}"}}}}]}}, "scopeSpans": [{{"scope": {{"name": "s"}}, "spans": [{}]}}]}}]}}
"#,
                spans.join(", ")
            )
        };
        self.services().iter().map(line).collect()
    }

    /// Writes Jaeger's JSON: one object.
    pub(crate) fn jaeger(&self) -> String {
        let services = self.services();
        let tag = |key: &str, value: &str| match value.parse::<u64>() {
            Ok(_) => format!(r#"{{"key": "{key}", "type": "int64", "value": {value}}}"#),
            Err(_) => format!(r#"{{"key": "{key}", "type": "string", "value": "{value}"}}"#),
        };
        let span = |span: &Span| {
            let mut tags: Vec<_> = span.attributes.iter().map(|(key, value)| tag(key, value)).collect();
            tags.push(tag("span.kind", if span.kind == CLIENT { "client" } else { "server" }));
            if span.has_failed {
                tags.push(r#"{"key": "error", "type": "bool", "value": true}"#.to_owned());
            }
            let references = match span.parent {
                0 => String::new(),
                parent => {
                    format!(r#"{{"refType": "CHILD_OF", "traceID": "{:x}", "spanID": "{parent:x}"}}"#, span.trace)
                }
            };
            let process = services.iter().position(|service| *service == span.service).unwrap_or_default();
            format!(
                r#"{{"traceID": "{:x}", "spanID": "{:x}", "operationName": "{}", "references": [{references}], "startTime": {}, "duration": {}, "tags": [{}], "logs": [], "processID": "p{process}"}}"#,
                span.trace,
                span.id,
                span.name,
                self.skewed(span.service, span.start),
                span.end - span.start,
                tags.join(", ")
            )
        };
        let mut traces: Vec<_> = self.spans.iter().map(|span| span.trace).collect();
        traces.sort_unstable();
        traces.dedup();
        let processes: Vec<_> = services
            .iter()
            .enumerate()
            .map(|(at, service)| format!(r#""p{at}": {{"serviceName": "{service}", "tags": []}}"#))
            .collect();
        let trace = |trace: &u64| {
            let spans: Vec<_> = self.spans.iter().filter(|span| span.trace == *trace).map(span).collect();
            format!(
                r#"{{"traceID": "{trace:x}", "spans": [{}], "processes": {{{}}}}}"#,
                spans.join(", "),
                processes.join(", ")
            )
        };
        let traces: Vec<_> = traces.iter().map(trace).collect();
        format!(r#"{{"data": [{}], "total": 0, "errors": null}}"#, traces.join(",\n"))
    }

    /// Returns the report, which is the same for both formats.
    pub(crate) fn report(&self) -> Report {
        let [otlp, jaeger] = [self.otlp(), self.jaeger()].map(|text| report(&text));
        assert_eq!(otlp, jaeger);
        otlp
    }
}

pub(crate) fn report(text: &str) -> Report {
    let mut analyzer = Analyzer::new();
    analyzer.read(text.as_bytes()).unwrap_or_else(|error| panic!("{}:{}: {error}", error.line(), error.column()));
    analyzer.finish()
}

/// Numbers without a pattern, the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number below another.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
