//! What the traces tell: the report, and what counts as a finding.

use serde::Serialize;

use crate::span::{Name, Names};
use crate::totals::{Delays, EdgeId, EdgeKey, EdgeTotals, Step, Totals};

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
    /// Values at the top of a file that are neither OTLP, nor Jaeger's or Tempo's.
    pub unknown_values: u64,
    /// Spans without an identifier of their own or of their trace. They are not counted.
    pub invalid_spans: u64,
    /// What the traces are enough for.
    pub evidence: Evidence,
    /// The most retries with the same number from one service to another, of which the delays can be compared.
    pub comparable_retries: u64,
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

/// What traces are enough for, if nothing is found in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// There is no span of a client: nothing is known of retries.
    NoCalls,
    /// No call was repeated.
    NoRetries,
    /// Some calls were repeated, too few to say whether their delays are equal.
    FewRetries,
    /// The delays of retries could be compared.
    Enough,
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

    /// Returns how many calls were made.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.edges.iter().map(|edge| edge.calls).sum()
    }

    /// Returns how many attempts were retries.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.edges.iter().map(|edge| edge.attempts.saturating_sub(edge.calls)).sum()
    }

    /// Retries with the same number, from one service to another, that are enough to say whether their delays are
    /// equal.
    pub const ENOUGH: u64 = ENOUGH;
}

/// Retries of which it can be said whether their delays are equal.
const ENOUGH: u64 = 20;

/// Share of retries with one delay from which on they are in step. Jitter of ±20 % has a quarter of them within 6 %.
const IN_STEP: f64 = 0.5;

/// Late attempts, and retries before their time, that may be an accident.
const ACCIDENTS: u64 = 2;

/// Fewest retries of a second that is part of a storm.
const STORM: u64 = 20;

pub(crate) fn report(totals: &Totals, names: &Names, counts: Counts) -> Report {
    let text = |name: Name| names.text(name).to_owned();
    let ends = |key: EdgeKey| (text(key.caller), text(key.callee));
    let mut edges: Vec<EdgeReport> = Vec::new();
    let (mut in_step, mut late, mut hints_ignored) = (Vec::new(), Vec::new(), Vec::new());
    for (_, key, found) in totals.edges.iter() {
        let (caller, callee) = ends(key);
        edges.push(EdgeReport {
            caller,
            callee,
            calls: found.calls,
            attempts: found.attempts,
            failures: found.failures,
            most_attempts: found.most_attempts,
            caused: found.caused,
        });
        for (retry, from, step) in steps(found) {
            let (caller, callee) = ends(key);
            let Step { delay: delay_ns, share, samples: retries } = step;
            in_step.push(InStep { caller, callee, retry, delay_ns, from, share, retries });
        }
        if found.late > ACCIDENTS {
            let (caller, callee) = ends(key);
            let (attempts, retries) = (found.attempts, found.late_retries);
            late.push(LateAttempts { caller, callee, late: found.late, retries, attempts });
        }
        if found.early > ACCIDENTS {
            let (caller, callee) = ends(key);
            hints_ignored.push(HintsIgnored { caller, callee, early: found.early, hinted: found.hinted });
        }
    }
    edges.sort_by(|a, b| {
        (b.caused, b.attempts, &a.caller, &a.callee).cmp(&(a.caused, a.attempts, &b.caller, &b.callee))
    });
    in_step.sort_by(|a: &InStep, b| {
        (b.retries, &a.caller, &a.callee, a.retry).cmp(&(a.retries, &b.caller, &b.callee, b.retry))
    });
    late.sort_by(|a: &LateAttempts, b| (b.late, &a.caller, &a.callee).cmp(&(a.late, &b.caller, &b.callee)));
    hints_ignored.sort_by(|a: &HintsIgnored, b| (b.early, &a.caller, &a.callee).cmp(&(a.early, &b.caller, &b.callee)));
    let layer = |edge: &EdgeId, attempts: &u32| {
        let (caller, callee) = ends(totals.edges.key(*edge));
        Layer { caller, callee, attempts: *attempts }
    };
    let multiplications = totals.paths.sorted().into_iter().map(|path| Multiplication {
        layers: path.edges.iter().zip(&path.factors).map(|(edge, attempts)| layer(edge, attempts)).collect(),
        guilty: path.guilty,
        product: path.product,
        traces: path.traces,
    });
    let retries: u64 = edges.iter().map(|edge| edge.attempts.saturating_sub(edge.calls)).sum();
    let comparable_retries =
        totals.edges.iter().flat_map(|(_, _, found)| &found.delays).map(Delays::total).max().unwrap_or_default();
    let evidence = match (edges.is_empty(), retries) {
        (true, _) => Evidence::NoCalls,
        (false, 0) => Evidence::NoRetries,
        _ if comparable_retries < ENOUGH => Evidence::FewRetries,
        _ => Evidence::Enough,
    };
    Report {
        spans: counts.spans,
        traces: totals.traces,
        traces_closed_early: counts.closed_early,
        traces_split: counts.split,
        spans_without_parent: totals.orphans,
        duplicate_spans: totals.duplicates,
        unknown_values: counts.unknown_values,
        invalid_spans: counts.invalid_spans,
        evidence,
        comparable_retries,
        edges,
        multiplications: multiplications.collect(),
        in_step,
        late,
        hints_ignored,
        storms: storms(totals),
    }
}

/// What is counted before traces are put together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) spans: u64,
    pub(crate) closed_early: u64,
    pub(crate) split: u64,
    pub(crate) unknown_values: u64,
    pub(crate) invalid_spans: u64,
}

/// Returns the retries of an edge that are in step: their number, and the delay that most have.
fn steps(found: &EdgeTotals) -> Vec<(u32, DelayFrom, Step)> {
    let in_step = |delays: &Delays| delays.step().filter(|step| step.samples >= ENOUGH && step.share >= IN_STEP);
    let mut steps = Vec::new();
    for (retry, (delays, intervals)) in (1..).zip(found.delays.iter().zip(&found.intervals)) {
        // Clients that count from the start of the attempt before have other delays from its end.
        if let Some(step) = in_step(delays) {
            steps.push((retry, DelayFrom::End, step));
        } else if let Some(step) = in_step(intervals) {
            steps.push((retry, DelayFrom::Start, step));
        }
    }
    steps
}

/// Returns the parts of time in which retries are the majority, those next to one another joined.
fn storms(totals: &Totals) -> Vec<Storm> {
    let width = totals.timeline.width();
    let mut storms: Vec<Storm> = Vec::new();
    for (start, part) in totals.timeline.parts() {
        if part.retries < STORM || part.retries <= part.first {
            continue;
        }
        match storms.last_mut() {
            Some(last) if last.start_ns.saturating_add(last.length_ns) == start => {
                last.length_ns = last.length_ns.saturating_add(width);
                last.first += part.first;
                last.retries += part.retries;
            }
            _ => storms.push(Storm { start_ns: start, length_ns: width, first: part.first, retries: part.retries }),
        }
    }
    storms.sort_by_key(|storm| core::cmp::Reverse((storm.retries, storm.start_ns)));
    storms
}
