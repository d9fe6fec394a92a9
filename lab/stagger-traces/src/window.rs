//! Traces that are being put together, in bounded memory.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::span::Span;

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
        if self.closed_order.len() > MAX_CLOSED {
            if let Some(oldest) = self.closed_order.pop_front() {
                self.closed.remove(&oldest);
            }
        }
    }

    /// Closes the oldest trace, at the end of all files.
    pub(crate) fn close(&mut self) -> Option<Vec<Span>> {
        let oldest = self.order.values().next().copied()?;
        self.remove(oldest)
    }
}
