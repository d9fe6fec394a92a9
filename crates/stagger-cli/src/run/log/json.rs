use core::num::NonZeroU32;

use serde::Serialize;
use stagger_core::{DelaySource, StopReason};

use super::super::classifier::NoRetryReason;
use super::super::status::{AttemptStatus, SignalName};
use super::event::{AttemptEnded, Done, Event, NextStep};

/// The schema of the lines; its number changes when a field is removed or changes its meaning.
pub(super) const SCHEMA: &str = "stagger.run/1";

/// Formats an event as one JSON object.
pub(super) fn line(event: &Event<'_>) -> Option<String> {
    serde_json::to_string(&Envelope { schema: SCHEMA, event: Object::from(event) }).ok()
}

#[derive(Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    #[serde(flatten)]
    event: Object<'a>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Object<'a> {
    Start { policy: String, seed: u64, command: Vec<String> },
    Spread { wait_s: f64 },
    Attempting { n: u32, max: Option<NonZeroU32> },
    Attempt(Attempt),
    Done(&'a Done),
    Note { message: &'a str },
    Warning { message: &'a str },
}

/// An attempt in a log line and in the report.
#[derive(Clone, Debug, Serialize)]
pub(in crate::run) struct Attempt {
    n: u32,
    /// `null` for no limit.
    max: Option<NonZeroU32>,
    result: &'static str,
    /// The result as an exit code.
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    took_s: f64,
    #[serde(flatten)]
    next: Next,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Next {
    Done {},
    Retry {
        next_s: f64,
        next_from: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_max_s: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_s: Option<f64>,
    },
    Stop {
        stop: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    },
}

impl<'a> From<&Event<'a>> for Object<'a> {
    fn from(event: &Event<'a>) -> Self {
        match *event {
            Event::Started { policy, seed, command } => Self::Start {
                policy: policy.to_string(),
                seed,
                command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            },
            Event::Spread(wait) => Self::Spread { wait_s: wait.as_secs_f64() },
            Event::Attempting(count) => Self::Attempting { n: count.n, max: count.max },
            Event::AttemptEnded(attempt) => Self::Attempt(attempt.into()),
            Event::Done(done) => Self::Done(done),
            Event::Note(message) => Self::Note { message },
            Event::Warning(message) => Self::Warning { message },
        }
    }
}

impl From<&AttemptEnded> for Attempt {
    fn from(ended: &AttemptEnded) -> Self {
        Self {
            n: ended.count.n,
            max: ended.count.max,
            result: ended.status.kind(),
            code: ended.status.code(),
            signal: match ended.status {
                AttemptStatus::Signal(signal) => Some(SignalName(signal).to_string()),
                _ => None,
            },
            took_s: ended.took.as_secs_f64(),
            next: match &ended.next {
                NextStep::Done => Next::Done {},
                NextStep::Retry { after, source, bounds, retry_after, .. } => Next::Retry {
                    next_s: after.as_secs_f64(),
                    next_from: if *source == DelaySource::Hint { "advice" } else { "policy" },
                    next_max_s: bounds.map(|(_, high)| high.as_secs_f64()),
                    retry_after_s: retry_after.map(|retry_after| retry_after.as_secs_f64()),
                },
                NextStep::Stop { stop, reason, .. } => {
                    Next::Stop { stop: stop.name(), reason: reason.map(NoRetryReason::name) }
                }
                NextStep::Interrupted(_) => Next::Stop { stop: StopReason::Cancelled.name(), reason: None },
            },
        }
    }
}
