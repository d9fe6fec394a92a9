use std::io::Read;

use crate::error::ReadError;
use crate::findings::{Counts, report};
use crate::names::Names;
use crate::read::{FoundSpan, Sink, read};
use crate::report::Report;
use crate::span::{Kind, Span};
use crate::totals::Totals;
use crate::trace;
use crate::window::Window;

/// Spans that are held at the same time by default.
const MAX_SPANS: usize = 100_000;

/// Finds retries in any number of files.
///
/// A trace is put together from spans of all files in the order in which they are read. At most 100,000 spans are held;
/// then the trace that has waited longest for a span is closed. If the spans of a trace are further apart, as in files
/// of one service each, it is counted in parts: [`Report::traces_split`] has their number, and
/// [`with_max_spans`](Self::with_max_spans) holds more.
#[derive(Debug)]
pub struct Analyzer {
    names: Names,
    window: Window,
    totals: Totals,
    counts: Counts,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl Analyzer {
    /// Creates an analyzer that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_spans(MAX_SPANS)
    }

    /// Creates an analyzer that holds so many spans, at least one. A span takes about 100 bytes, and a trace
    /// 400 more.
    #[must_use]
    pub fn with_max_spans(spans: usize) -> Self {
        Self { names: Names::new(), window: Window::new(spans), totals: Totals::default(), counts: Counts::default() }
    }

    /// Reads a file to its end: OTLP/JSON or Jaeger's JSON, one value or several.
    ///
    /// # Errors
    /// [`ReadError`] with the place, if the reader fails, the text is not JSON, a value has another type than the
    /// format says, is nested deeper than 127 values, or a text is longer than 16 MiB. What came before it has been
    /// counted.
    pub fn read(&mut self, reader: impl Read) -> Result<(), ReadError> {
        read(reader, self)
    }

    /// Returns the report on all that was read.
    #[must_use]
    pub fn finish(mut self) -> Report {
        while let Some(spans) = self.window.close() {
            trace::add(spans, &mut self.totals);
        }
        self.counts.closed_early = self.window.closed_early;
        self.counts.split = self.window.split;
        report(&self.totals, &self.names, self.counts)
    }
}

impl Sink for Analyzer {
    fn span(&mut self, found: FoundSpan<'_>) {
        self.counts.spans += 1;
        // The attempts of gRPC's own spans are internal ones below that of the call.
        let is_attempt = found.kind == Kind::Internal && found.name.starts_with("Attempt.");
        let span = Span {
            id: found.id,
            parent: found.parent,
            service: self.names.keep(found.service),
            name: self.names.keep(found.name),
            peer: self.names.keep(found.peer),
            kind: if is_attempt { Kind::Client } else { found.kind },
            ending: found.ending,
            resends: found.resends,
            start: found.start,
            end: found.end.max(found.start),
            hint: found.hint,
        };
        if let Some(closed) = self.window.add(found.trace, span) {
            trace::add(closed, &mut self.totals);
        }
    }

    fn unknown(&mut self) {
        self.counts.unknown_values += 1;
    }
}
