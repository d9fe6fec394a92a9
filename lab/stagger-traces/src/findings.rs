//! From totals to a report: what counts as a finding.

use crate::names::{Name, Names};
use crate::report::{DelayFrom, EdgeReport, HintsIgnored, InStep, LateAttempts, Layer, Multiplication, Report, Storm};
use crate::totals::{Delays, EdgeId, EdgeKey, EdgeTotals, Step, Totals};

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
        in_step.extend(steps(found).map(|(retry, from, step)| {
            let (caller, callee) = ends(key);
            InStep { caller, callee, retry, delay_ns: step.delay, from, share: step.share, retries: step.samples }
        }));
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
    Report {
        spans: counts.spans,
        traces: totals.traces,
        traces_closed_early: counts.closed_early,
        traces_split: counts.split,
        spans_without_parent: totals.orphans,
        duplicate_spans: totals.duplicates,
        unknown_values: counts.unknown_values,
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
}

/// Returns the retries of an edge that are in step: their number, and the delay that most have.
fn steps(found: &EdgeTotals) -> impl Iterator<Item = (u32, DelayFrom, Step)> {
    let in_step = |delays: &Delays| delays.step().filter(|step| step.samples >= ENOUGH && step.share >= IN_STEP);
    (1..).zip(found.delays.iter().zip(&found.intervals)).filter_map(move |(retry, (delays, intervals))| {
        let from_end = in_step(delays).map(|step| (retry, DelayFrom::End, step));
        from_end.or_else(|| in_step(intervals).map(|step| (retry, DelayFrom::Start, step)))
    })
}

/// Returns the parts of time in which retries are the majority, those next to one another joined.
fn storms(totals: &Totals) -> Vec<Storm> {
    let width = totals.timeline.width();
    let mut storms: Vec<Storm> = Vec::new();
    for (start, part) in totals.timeline.parts() {
        if part.retries < STORM || part.retries <= part.first {
            continue;
        }
        match storms.last_mut().filter(|last| last.start_ns.saturating_add(last.length_ns) == start) {
            Some(last) => {
                last.length_ns = last.length_ns.saturating_add(width);
                last.first += part.first;
                last.retries += part.retries;
            }
            None => {
                storms.push(Storm { start_ns: start, length_ns: width, first: part.first, retries: part.retries });
            }
        }
    }
    storms.sort_by_key(|storm| core::cmp::Reverse((storm.retries, storm.start_ns)));
    storms
}
