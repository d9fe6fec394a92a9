//! AWS Step Functions: the Amazon States Language.
//!
//! Read in the specification of the language, in `RetryProps` of the CDK, and in the developer guide of November 2026.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `MaxAttempts` | 3 | 0: no retry | | no whole number |
//! | `IntervalSeconds` | 1 s | | | 0; no whole number |
//! | `BackoffRate` | 2 | | | below 1 |
//! | `MaxDelaySeconds` | no limit | | | 0; no whole number |
//! | `JitterStrategy` | NONE | | | other words |
//! | `ErrorEquals` | | | | `States.ALL` beside others, or before the last retrier |
//! | `TimeoutSeconds` of a Task | no limit | | beside `TimeoutSecondsPath`: not known | 0; no whole number |
//! | `TimeoutSeconds` of Parallel, Map | | | | there is no such field |
//! | `TimeoutSeconds` of the machine | not known | | | no whole number |
//! | `Retry` | none | | | in states that are neither Task nor Parallel nor Map |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting};
use crate::fields::{Field, Fields, join};
use crate::format::Format;
use crate::tree::{Node, Value};

const INTERVAL: Duration = Duration::from_secs(1);
const RATE: f64 = 2.0;
const RETRIES: u32 = 3;

pub(crate) fn is_state_machine(document: &Node) -> bool {
    document.get("StartAt").is_some()
        && document.get("States").is_some_and(|states| matches!(states.value, Value::Map(_)))
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut remarks = Vec::new();
    let overall = Fields::of(document, "").read("TimeoutSeconds", |field| positive(field, &mut remarks));
    states(document, "", overall, &mut entries);
    if let Some(first) = entries.first_mut() {
        first.remarks.append(&mut remarks);
    }
    entries
}

/// Reads the states of a machine, and those inside of them. The parser limits the depth.
fn states(machine: &Node, path: &str, overall: Found<Duration>, entries: &mut Vec<Entry>) {
    for state in machine.get("States").map(Node::members).unwrap_or_default() {
        let path = join(path, &state.key);
        let mut fields = Fields::of(&state.node, path.clone());
        let kind = state.node.text_of("Type");
        let mut remarks = Vec::new();
        let timeout = timeout(&mut fields, kind, &mut remarks);
        if let Some(retry) = fields.take("Retry") {
            // States of other types have no retriers.
            let is_refused = kind.is_some_and(|kind| !matches!(kind, "Task" | "Parallel" | "Map"));
            let retriers = retry.items();
            let last = retriers.len().saturating_sub(1);
            for (at, (retrier_path, retrier)) in retriers.into_iter().enumerate() {
                let mut entry = read_retrier(retrier, retrier_path, timeout, at == last);
                entry.settings.timeout = overall.limit();
                entry.remarks.append(&mut remarks);
                if is_refused {
                    let text = "only Task, Parallel and Map may have it: the machine is refused";
                    entry.remarks.push(retry.remark(RemarkKind::Invalid, text));
                }
                entries.push(entry);
            }
        }
        for branch in state.node.get("Branches").map(Node::items).unwrap_or_default() {
            states(branch, &path, overall, entries);
        }
        for name in ["ItemProcessor", "Iterator"] {
            if let Some(inner) = state.node.get(name) {
                // Its items are executions of their own.
                let is_distributed = inner.text_at(&["ProcessorConfig", "Mode"]) == Some("DISTRIBUTED");
                states(inner, &path, if is_distributed { Found::Absent } else { overall }, entries);
            }
        }
    }
}

/// Reads the limit of an attempt, which tasks alone have; `None` if the state has none of its own.
fn timeout(fields: &mut Fields<'_>, kind: Option<&str>, remarks: &mut Vec<Remark>) -> Option<Setting<Limit<Duration>>> {
    let (own, path) = (fields.take("TimeoutSeconds"), fields.take("TimeoutSecondsPath"));
    if kind.is_some_and(|kind| kind != "Task") {
        let found = [own, path].into_iter().flatten();
        let text = "a state of this type has no such field: the machine is refused";
        remarks.extend(found.map(|field| field.remark(RemarkKind::Invalid, text)));
        return None;
    }
    if let Some(field) = path {
        remarks.push(field.remark(RemarkKind::NotRead, "the input says it: the value is not known"));
        return Some(Setting::stated(Limit::Unknown, field.span()));
    }
    Some(own.map_or(Found::Absent, |field| positive(&field, remarks)).limit_or(Limit::None))
}

/// Reads a whole number of seconds of which 0 is not accepted.
fn positive(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    field.positive(remarks).map(|seconds| Duration::from_secs(seconds.into()))
}

fn read_retrier(retrier: &Node, path: String, timeout: Option<Setting<Limit<Duration>>>, is_last: bool) -> Entry {
    let mut fields = Fields::of(retrier, path);
    let mut entry = Entry::new(Format::StepFunctions, EntryKind::Step, fields.path.clone(), retrier.span);
    let remarks = &mut entry.remarks;
    let errors = fields.take("ErrorEquals");
    let words = errors.as_ref().map(Field::words).unwrap_or_default();
    if let Some(errors) = &errors
        && words.contains(&"States.ALL")
        && (words.len() > 1 || !is_last)
    {
        let text = "States.ALL stands alone, and in the last retrier: the machine is refused";
        remarks.push(errors.remark(RemarkKind::Invalid, text));
    }
    entry.may_repeat_unsafe =
        Some(words.iter().any(|error| matches!(*error, "States.ALL" | "States.TaskFailed" | "States.Timeout")));
    let retries = fields.count("MaxAttempts", remarks);
    let settings = &mut entry.settings;
    settings.attempts = Some(retries.retries_or(RETRIES));
    // A state has one limit for the attempts of all its retriers: one without retries says nothing about it.
    settings.attempt_timeout = timeout.filter(|timeout| timeout.is_stated() || !settings.never_retries());
    let interval = fields.read("IntervalSeconds", |field| positive(field, remarks));
    let rate = fields.read("BackoffRate", |field| {
        field.parse(remarks, "a number of 1 or more", |text| text.parse().ok().filter(|&rate: &f64| rate >= 1.0))
    });
    let longest = fields.read("MaxDelaySeconds", |field| positive(field, remarks));
    let jitter = fields.read("JitterStrategy", |field| {
        field.parse(remarks, "NONE or FULL", |text| match text {
            "FULL" => Some(Jitter::Full),
            "NONE" => Some(Jitter::None),
            _ => None,
        })
    });
    if !settings.never_retries() {
        settings.base = interval.or(INTERVAL);
        settings.multiplier = rate.or(RATE);
        settings.cap = Some(longest.limit_or(Limit::None));
        settings.jitter = jitter.or(Jitter::None);
    }
    let comment = fields.take("Comment");
    drop(comment);
    remarks.push(Remark {
        kind: RemarkKind::Note,
        path: fields.path.clone(),
        span: entry.span,
        text: format!(
            "counts the failures of {} only: a state may be tried once more for each of its retriers",
            words.join(", ")
        ),
    });
    fields.finish(remarks);
    entry
}
