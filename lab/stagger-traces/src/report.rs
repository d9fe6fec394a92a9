//! What the traces tell.

use serde::Serialize;

/// What traces tell about retries: numbers and names, and no sentences.
///
/// Lists have the gravest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Spans that were read.
    pub spans: u64,
    /// Traces that were put together.
    pub traces: u64,
    /// Traces that were closed before the end of the files, to make room. Spans that came for them later make traces of
    /// their own.
    pub traces_closed_early: u64,
    /// Traces of which spans came after they had been closed: they are counted in parts.
    pub traces_split: u64,
    /// Spans whose parent is in no file, or was not sampled.
    pub spans_without_parent: u64,
    /// Spans that are in their trace twice. They are counted once.
    pub duplicate_spans: u64,
    /// Values at the top of a file that are neither OTLP nor Jaeger's.
    pub unknown_values: u64,
    /// The services that call one another, and how often.
    pub edges: Vec<EdgeReport>,
    /// Layers that multiply one another.
    pub multiplications: Vec<Multiplication>,
    /// Delays that are equal for most retries.
    pub in_step: Vec<InStep>,
    /// Attempts whose caller had given up before.
    pub late: Vec<LateAttempts>,
    /// Retries that did not wait as long as the server had asked.
    pub hints_ignored: Vec<HintsIgnored>,
    /// Parts of time in which retries are the majority.
    pub storms: Vec<Storm>,
}

/// Calls from a service to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EdgeReport {
    /// The service that calls.
    pub caller: String,
    /// The service that is called; if it has no spans, what the attributes of the caller's spans name.
    pub callee: String,
    /// Calls, each of which has one attempt or more.
    pub calls: u64,
    /// Attempts.
    pub attempts: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Most attempts of one call.
    pub most_attempts: u32,
    /// Attempts, on this edge and on those below it, that would not have been made without the retries on this edge.
    pub caused: u64,
}

impl EdgeReport {
    /// Returns the attempts per call.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        if self.calls == 0 { 1.0 } else { self.attempts as f64 / self.calls as f64 }
    }
}

/// Calls below one another, more than one of which is retried.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Multiplication {
    /// The calls, the outermost first, with the attempts of each in the trace with most.
    pub layers: Vec<Layer>,
    /// The layer whose retries cause most attempts in that trace; of several, the outermost.
    pub guilty: usize,
    /// The product of the attempts.
    pub product: u64,
    /// Traces in which layers of this path multiply one another.
    pub traces: u64,
}

/// A call of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Layer {
    /// The service that calls, and retries.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Attempts of the call.
    pub attempts: u32,
}

/// Between which points a delay is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayFrom {
    /// From the end of the attempt before.
    End,
    /// From the start of the attempt before.
    Start,
}

/// A retry that most calls make after the same delay, so that calls which fail together are repeated together.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InStep {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// The number of the retry, from 1.
    pub retry: u32,
    /// The delay in nanoseconds; 0 if it is below a millisecond.
    pub delay_ns: u64,
    /// Where it begins.
    pub from: DelayFrom,
    /// The share of retries with this delay, within 3 %.
    pub share: f64,
    /// Retries with this number.
    pub retries: u64,
}

/// Attempts that began after a caller had given up: their results are lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LateAttempts {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Late attempts.
    pub late: u64,
    /// Retries among them.
    pub retries: u64,
    /// All attempts on this edge.
    pub attempts: u64,
}

/// Retries before the time that the server had asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HintsIgnored {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Retries that came too early.
    pub early: u64,
    /// Retries after an answer with `Retry-After`.
    pub hinted: u64,
}

/// A part of time in which more attempts are retries than not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Storm {
    /// Its start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Its length in nanoseconds, in whole seconds.
    pub length_ns: u64,
    /// First attempts.
    pub first: u64,
    /// Retries.
    pub retries: u64,
}

impl Report {
    /// Returns whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.multiplications.is_empty()
            && self.in_step.is_empty()
            && self.late.is_empty()
            && self.hints_ignored.is_empty()
            && self.storms.is_empty()
    }
}
