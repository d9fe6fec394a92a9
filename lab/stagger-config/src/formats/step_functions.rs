//! AWS Step Functions: the Amazon States Language.
//!
//! Read in the specification of the language, and in the developer guide of November 2026.
//!
//! | field | default | 0 | refused |
//! |---|---|---|---|
//! | `MaxAttempts` | 3 | 0: no retry | no whole number |
//! | `IntervalSeconds` | 1 s | | no number |
//! | `BackoffRate` | 2 | | below 1 |
//! | `MaxDelaySeconds` | no limit | | no number |
//! | `JitterStrategy` | NONE | | other words |
//! | `TimeoutSeconds` of the state | no limit | | no number |
//! | `Retry` | none | | in states that are neither Task nor Parallel nor Map |

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Found, Limit, RemarkKind};
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
    states(document, "", &mut entries);
    entries
}

/// Reads the states of a machine, and those inside of them. The parser limits the depth.
fn states(machine: &Node, path: &str, entries: &mut Vec<Entry>) {
    for state in machine.get("States").map(Node::members).unwrap_or_default() {
        let path = join(path, &state.key);
        let mut fields = Fields::of(&state.node, path.clone());
        let mut timeout_remarks = Vec::new();
        let timeout = fields.read("TimeoutSeconds", |field| seconds(field, &mut timeout_remarks));
        if let Some(retry) = fields.take("Retry") {
            // States of other types have no retriers.
            let kind = state.node.text_of("Type");
            let is_refused = kind.is_some_and(|kind| !matches!(kind, "Task" | "Parallel" | "Map"));
            for (retrier_path, retrier) in retry.items() {
                let mut entry = read_retrier(retrier, retrier_path, timeout);
                entry.remarks.append(&mut timeout_remarks);
                if is_refused {
                    let text = "only Task, Parallel and Map may have it: the machine is refused";
                    entry.remarks.push(retry.remark(RemarkKind::Invalid, text));
                }
                entries.push(entry);
            }
        }
        for branch in state.node.get("Branches").map(Node::items).unwrap_or_default() {
            states(branch, &path, entries);
        }
        for name in ["ItemProcessor", "Iterator"] {
            if let Some(inner) = state.node.get(name) {
                states(inner, &path, entries);
            }
        }
    }
}

fn seconds(field: &Field<'_>, remarks: &mut Vec<crate::entry::Remark>) -> Found<Duration> {
    field.parse(remarks, "a number of seconds", |text| Duration::try_from_secs_f64(text.parse().ok()?).ok())
}

fn read_retrier(retrier: &Node, path: String, timeout: Found<Duration>) -> Entry {
    let mut fields = Fields::of(retrier, path);
    let mut entry = Entry::new(Format::StepFunctions, EntryKind::Step, fields.path.clone(), retrier.span);
    let remarks = &mut entry.remarks;
    let errors = fields.take("ErrorEquals");
    let words = errors.as_ref().map(Field::words).unwrap_or_default();
    entry.may_repeat_unsafe =
        Some(words.iter().any(|error| matches!(*error, "States.ALL" | "States.TaskFailed" | "States.Timeout")));
    let retries = fields.count("MaxAttempts", remarks);
    let settings = &mut entry.settings;
    settings.attempts = Some(retries.retries_or(RETRIES));
    settings.attempt_timeout = Some(timeout.limit_or(Limit::None));
    let interval = fields.read("IntervalSeconds", |field| seconds(field, remarks));
    let rate = fields.read("BackoffRate", |field| {
        field.parse(remarks, "a number of 1 or more", |text| text.parse().ok().filter(|&rate: &f64| rate >= 1.0))
    });
    let longest = fields.read("MaxDelaySeconds", |field| seconds(field, remarks));
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
    remarks.push(crate::entry::Remark {
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
