//! Jaeger's JSON, as its interface and its command line write it.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess};

use super::attributes::Attributes;
use super::stream::{FoundSpan, Sink};
use super::values::{Elements, Id, List, Members, Number, Object, Text};

/// Most spans of a trace that wait for the names of their services, which come after them.
const MAX_WAITING: usize = 50_000;

/// Most processes of a trace whose names are kept.
const MAX_PROCESSES: usize = 10_000;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Span {
    #[serde(rename = "traceID")]
    trace_id: Id,
    #[serde(rename = "spanID")]
    span_id: Id,
    /// Of older writers.
    #[serde(rename = "parentSpanID")]
    parent_span_id: Id,
    #[serde(rename = "operationName")]
    name: Text,
    references: Parent,
    /// Microseconds.
    #[serde(rename = "startTime")]
    start: Number,
    /// Microseconds.
    duration: Number,
    tags: Attributes,
    #[serde(rename = "processID")]
    process: Text,
    /// Of writers that have it in place.
    #[serde(rename = "process")]
    own_process: Process,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reference {
    #[serde(rename = "refType")]
    kind: Text,
    #[serde(rename = "spanID")]
    span_id: Id,
}

/// The first reference to a parent; the others are not kept.
#[derive(Default)]
struct Parent(Option<Id>);

impl<'de> Deserialize<'de> for Parent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut found = Self::default();
        List(References(&mut found)).deserialize(deserializer)?;
        Ok(found)
    }
}

struct References<'a>(&'a mut Parent);

impl Elements for References<'_> {
    const EXPECTED: &'static str = "a list of references";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let Some(reference) = items.next_element::<Reference>()? else { return Ok(false) };
        if reference.kind.0 == "CHILD_OF" && self.0.0.is_none() {
            self.0.0 = Some(reference.span_id);
        }
        Ok(true)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Process {
    #[serde(rename = "serviceName")]
    service: Text,
}

fn pass(span: &Span, processes: &HashMap<String, String>, sink: &mut impl Sink) {
    let start = span.start.0.saturating_mul(1_000);
    let service = processes.get(&span.process.0).unwrap_or(&span.own_process.service.0);
    sink.span(FoundSpan {
        trace: span.trace_id.0,
        id: span.span_id.0 as u64,
        parent: span.references.0.unwrap_or(span.parent_span_id).0 as u64,
        service,
        name: &span.name.0,
        peer: &span.tags.peer,
        kind: span.tags.kind.unwrap_or_default(),
        ending: span.tags.ending(false),
        resends: span.tags.resends,
        start,
        end: start.saturating_add(span.duration.0.saturating_mul(1_000)),
        hint: span.tags.hint,
    });
}

/// `data`: a list of traces.
pub(super) struct Traces<'a, S> {
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Elements for Traces<'_, S> {
    const EXPECTED: &'static str = "a list of traces";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let trace = Trace::new(&mut *self.sink);
        Ok(items.next_element_seed(Object(trace))?.is_some())
    }
}

/// A trace: its spans wait for the names of their services, which come after them.
pub(super) struct Trace<'a, S> {
    waiting: Vec<Span>,
    processes: HashMap<String, String>,
    pub(super) sink: &'a mut S,
}

impl<'a, S> Trace<'a, S> {
    pub(super) fn new(sink: &'a mut S) -> Self {
        Self { waiting: Vec::new(), processes: HashMap::new(), sink }
    }
}

impl<S: Sink> Members for Trace<'_, S> {
    const EXPECTED: &'static str = "an object with spans and processes";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "spans" => map.next_value_seed(List(Spans(self))),
            "processes" => map.next_value_seed(Object(Processes(&mut self.processes))),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }

    fn end(&mut self) {
        self.waiting.drain(..).for_each(|span| pass(&span, &self.processes, self.sink));
    }
}

/// `spans`.
struct Spans<'a, 'b, S>(&'a mut Trace<'b, S>);

impl<S: Sink> Elements for Spans<'_, '_, S> {
    const EXPECTED: &'static str = "a list of spans";

    fn element<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let Some(span) = items.next_element()? else { return Ok(false) };
        if self.0.waiting.len() >= MAX_WAITING {
            // Without the names of the services that have not come yet.
            self.0.end();
        }
        self.0.waiting.push(span);
        Ok(true)
    }
}

/// `processes`: the names of services by the identifiers of processes.
struct Processes<'a>(&'a mut HashMap<String, String>);

impl Members for Processes<'_> {
    const EXPECTED: &'static str = "an object of processes";

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let process = map.next_value::<Process>()?;
        if self.0.len() < MAX_PROCESSES {
            self.0.insert(key.to_owned(), process.service.0);
        }
        Ok(())
    }
}
