//! Files to a report: spans are put together to traces, in bounded memory, and counted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Read;

use crate::report::{Counts, Report, report};
use crate::span::{Kind, Names, Span};
use crate::stream::{FoundSpan, ReadError, Sink, read};
use crate::totals::Totals;
use crate::trace;

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
    /// The first member of the first value of this file that is of no known format.
    unknown_member: Option<String>,
}

/// What was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRead {
    /// Spans.
    pub spans: u64,
    /// Spans without an identifier of their own or of their trace, which are left out.
    pub invalid_spans: u64,
    /// Values at the top of the file that are of no known format.
    pub unknown_values: u64,
    /// The first member of the first of these values, at most 40 characters of it. It may have any characters.
    pub unknown_member: Option<String>,
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
        Self {
            names: Names::new(),
            window: Window::new(spans),
            totals: Totals::default(),
            counts: Counts::default(),
            unknown_member: None,
        }
    }

    /// Reads a file to its end: OTLP/JSON, Jaeger's JSON or what Tempo answers with, one value or several. Returns what
    /// was read from this file: one of another format has no spans.
    ///
    /// # Errors
    /// [`ReadError`] with the place, if the reader fails, the text is not JSON, a value has another type than the
    /// format says, is nested deeper than 127 values, or a text is longer than 16 MiB. What came before it has been
    /// counted.
    pub fn read(&mut self, reader: impl Read) -> Result<FileRead, ReadError> {
        let before = self.counts;
        self.unknown_member = None;
        read(reader, self)?;
        Ok(FileRead {
            spans: self.counts.spans - before.spans,
            invalid_spans: self.counts.invalid_spans - before.invalid_spans,
            unknown_values: self.counts.unknown_values - before.unknown_values,
            unknown_member: self.unknown_member.take(),
        })
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
        // Without identifiers it is in no trace, and OTLP calls it invalid: it is probably something else.
        if found.id == 0 || found.trace == 0 {
            self.counts.invalid_spans += 1;
            return;
        }
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

    fn unknown(&mut self, member: Option<String>) {
        self.counts.unknown_values += 1;
        if self.unknown_member.is_none() {
            self.unknown_member = member;
        }
    }
}

/// Most spans of one trace: with more, it is closed.
const MAX_PER_TRACE: usize = 50_000;

/// Traces that were closed last, whose further spans are recognized.
const MAX_CLOSED: usize = 100_000;

/// Traces whose spans may still come: the one that has waited longest for a span is closed first.
#[derive(Debug)]
pub(crate) struct Window {
    open: HashMap<u128, Open>,
    /// The open traces by the number of their last span.
    order: BTreeMap<u64, u128>,
    spans: usize,
    max_spans: usize,
    number: u64,
    closed: HashSet<u128>,
    closed_order: VecDeque<u128>,
    /// Traces that were closed to make room.
    pub(crate) closed_early: u64,
    /// Traces of which spans came after they had been closed.
    pub(crate) split: u64,
}

#[derive(Debug)]
struct Open {
    last: u64,
    spans: Vec<Span>,
}

impl Window {
    pub(crate) fn new(max_spans: usize) -> Self {
        Self {
            open: HashMap::new(),
            order: BTreeMap::new(),
            spans: 0,
            max_spans: max_spans.max(1),
            number: 0,
            closed: HashSet::new(),
            closed_order: VecDeque::new(),
            closed_early: 0,
            split: 0,
        }
    }

    /// Adds a span. Returns the trace that is closed to make room.
    pub(crate) fn add(&mut self, trace: u128, span: Span) -> Option<Vec<Span>> {
        self.number += 1;
        let open = self.open.entry(trace).or_insert_with(|| Open { last: self.number, spans: Vec::new() });
        if open.spans.is_empty() {
            self.split += u64::from(self.closed.contains(&trace));
        } else {
            self.order.remove(&open.last);
        }
        open.spans.push(span);
        open.last = self.number;
        let is_full = open.spans.len() >= MAX_PER_TRACE;
        self.order.insert(self.number, trace);
        self.spans += 1;
        let oldest = if is_full { Some(trace) } else { self.oldest_if_full() };
        let closed = self.remove(oldest?);
        self.closed_early += 1;
        self.remember(oldest?);
        closed
    }

    fn oldest_if_full(&self) -> Option<u128> {
        if self.spans <= self.max_spans {
            return None;
        }
        self.order.values().next().copied()
    }

    fn remove(&mut self, trace: u128) -> Option<Vec<Span>> {
        let open = self.open.remove(&trace)?;
        self.order.remove(&open.last);
        self.spans -= open.spans.len();
        Some(open.spans)
    }

    fn remember(&mut self, trace: u128) {
        if self.closed.insert(trace) {
            self.closed_order.push_back(trace);
        }
        if self.closed_order.len() > MAX_CLOSED
            && let Some(oldest) = self.closed_order.pop_front()
        {
            self.closed.remove(&oldest);
        }
    }

    /// Closes the oldest trace, at the end of all files.
    fn close(&mut self) -> Option<Vec<Span>> {
        let oldest = self.order.values().next().copied()?;
        self.remove(oldest)
    }
}
