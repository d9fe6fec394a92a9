//! OTLP as JSON: `ExportTraceServiceRequest`, and what Tempo answers with, which has other names around it.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::attributes::{Attributes, kind};
use super::stream::{FoundSpan, Sink};
use super::values::{Elements, Id, List, Members, Number, Object, Scalar, Text};

/// Most spans that wait for the name of their service, which usually comes first.
const MAX_WAITING: usize = 10_000;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Span {
    // Writers of protobuf may be set to keep its names.
    #[serde(alias = "trace_id")]
    trace_id: Id,
    #[serde(alias = "span_id")]
    span_id: Id,
    #[serde(alias = "parent_span_id")]
    parent_span_id: Id,
    name: Text,
    kind: Scalar,
    #[serde(alias = "start_time_unix_nano")]
    start_time_unix_nano: Number,
    #[serde(alias = "end_time_unix_nano")]
    end_time_unix_nano: Number,
    attributes: Attributes,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: Scalar,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    attributes: Attributes,
}

/// Passes a span on.
fn pass(span: &Span, service: &str, sink: &mut impl Sink) {
    sink.span(FoundSpan {
        trace: span.trace_id.0,
        id: span.span_id.0 as u64,
        parent: span.parent_span_id.0 as u64,
        service,
        name: &span.name.0,
        peer: &span.attributes.peer,
        kind: kind(&span.kind.0),
        ending: span.attributes.ending(matches!(&*span.status.code.0, "2" | "STATUS_CODE_ERROR")),
        resends: span.attributes.resends,
        start: span.start_time_unix_nano.0,
        end: span.end_time_unix_nano.0,
        hint: span.attributes.hint,
    });
}

/// The service of a resource, as soon as it is known, and the spans that have come before.
struct Service<'a, S> {
    name: Option<String>,
    waiting: Vec<Span>,
    sink: &'a mut S,
}

impl<S: Sink> Service<'_, S> {
    fn span(&mut self, span: Span) {
        match &self.name {
            Some(service) => pass(&span, service, self.sink),
            None => {
                self.waiting.push(span);
                if self.waiting.len() >= MAX_WAITING {
                    self.pass_waiting();
                }
            }
        }
    }

    fn pass_waiting(&mut self) {
        let name = self.name.as_deref().unwrap_or_default();
        self.waiting.drain(..).for_each(|span| pass(&span, name, self.sink));
    }
}

/// `resourceSpans`: a service each.
pub(super) struct ResourceSpans<'a, S> {
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Elements for ResourceSpans<'_, S> {
    const EXPECTED: &'static str = "a list of resource spans";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let service = Service { name: None, waiting: Vec::new(), sink: &mut *self.sink };
        Ok(items.next_element_seed(Object(service))?.is_some())
    }
}

impl<S: Sink> Members for Service<'_, S> {
    const EXPECTED: &'static str = "an object with resource and scopeSpans";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "resource" => {
                self.name = map.next_value::<Option<Resource>>()?.map(|found| found.attributes.service);
                self.pass_waiting();
            }
            "scopeSpans" | "scope_spans" | "instrumentationLibrarySpans" | "instrumentation_library_spans" => {
                map.next_value_seed(List(ScopeSpans(self)))?;
            }
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }

    fn end(&mut self) {
        self.pass_waiting();
    }
}

/// `scopeSpans`.
struct ScopeSpans<'a, 'b, S>(&'a mut Service<'b, S>);

impl<S: Sink> Elements for ScopeSpans<'_, '_, S> {
    const EXPECTED: &'static str = "a list of scope spans";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        Ok(items.next_element_seed(Object(Scope(self.0)))?.is_some())
    }
}

/// An element of `scopeSpans`.
struct Scope<'a, 'b, S>(&'a mut Service<'b, S>);

impl<S: Sink> Members for Scope<'_, '_, S> {
    const EXPECTED: &'static str = "an object with spans";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "spans" => map.next_value_seed(List(Spans(self.0))),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

/// `spans`.
struct Spans<'a, 'b, S>(&'a mut Service<'b, S>);

impl<S: Sink> Elements for Spans<'_, '_, S> {
    const EXPECTED: &'static str = "a list of spans";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let span = items.next_element()?;
        let is_there = span.is_some();
        span.into_iter().for_each(|span| self.0.span(span));
        Ok(is_there)
    }
}
