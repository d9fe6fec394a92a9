//! AWS Step Functions: the Amazon States Language.

use core::time::Duration;

use stagger_core::Jitter;

use crate::entry::{Entry, EntryKind, Limit, RemarkKind, Setting};
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
            for (retrier_path, retrier) in retry.items() {
                entries.push(read_retrier(retrier, retrier_path, timeout));
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

fn seconds(field: &Field<'_>, remarks: &mut Vec<crate::entry::Remark>) -> Option<Setting<Duration>> {
    field.parse(remarks, "a number of seconds", |text| Duration::try_from_secs_f64(text.parse().ok()?).ok())
}

fn read_retrier(retrier: &Node, path: String, timeout: Option<Setting<Duration>>) -> Entry {
    let mut fields = Fields::of(retrier, path);
    let mut entry = Entry::new(Format::StepFunctions, EntryKind::Step, fields.path.clone(), retrier.span);
    let remarks = &mut entry.remarks;
    let errors = fields.take("ErrorEquals");
    let words = errors.as_ref().map(Field::words).unwrap_or_default();
    entry.may_repeat_unsafe =
        Some(words.iter().any(|error| matches!(*error, "States.ALL" | "States.TaskFailed" | "States.Timeout")));
    let retries = fields.count("MaxAttempts", remarks).unwrap_or(Setting::default(RETRIES));
    let settings = &mut entry.settings;
    settings.attempts = Some(retries.map(|retries| Limit::At(retries.saturating_add(1))));
    settings.attempt_timeout = Some(Setting::or_unlimited(timeout));
    let interval = fields.read("IntervalSeconds", |field| seconds(field, remarks));
    let rate = fields.number("BackoffRate", remarks);
    let longest = fields.read("MaxDelaySeconds", |field| seconds(field, remarks));
    let jitter = fields.read("JitterStrategy", |field| {
        field.parse(remarks, "NONE or FULL", |text| match text {
            "FULL" => Some(Jitter::Full),
            "NONE" => Some(Jitter::None),
            _ => None,
        })
    });
    if retries.value > 0 {
        settings.base = Some(interval.unwrap_or(Setting::default(INTERVAL)));
        settings.multiplier = Some(rate.unwrap_or(Setting::default(RATE)));
        settings.cap = Some(Setting::or_unlimited(longest));
        settings.jitter = Some(jitter.unwrap_or(Setting::default(Jitter::None)));
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
