use core::num::NonZeroU32;

use serde::Serialize;
use stagger_core::DelaySource;

use super::super::status::{AttemptStatus, SignalName, StatusKind};
use super::event::{AttemptEnded, Done, Event, NextStep, Started};

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
    Done(RunEnd),
    Note { message: &'a str },
    Warning { message: &'a str },
}

/// An attempt in a log line and in the report.
#[derive(Clone, Debug, Serialize)]
pub(in crate::run) struct Attempt {
    n: u32,
    /// `null` for no limit.
    max: Option<NonZeroU32>,
    result: StatusKind,
    /// The result as an exit code.
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    took_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_max_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// The end of a run in a log line and in the report.
#[derive(Clone, Debug, Serialize)]
pub(in crate::run) struct RunEnd {
    ok: bool,
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'static str>,
    attempts: u64,
    total_s: f64,
    waited_s: f64,
    seed: u64,
}

impl<'a> From<&Event<'a>> for Object<'a> {
    fn from(event: &Event<'a>) -> Self {
        match *event {
            Event::Started(Started { policy, seed, command }) => Self::Start {
                policy: policy.to_string(),
                seed,
                command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            },
            Event::Spread(wait) => Self::Spread { wait_s: wait.as_secs_f64() },
            Event::Attempting(count) => Self::Attempting { n: count.n, max: count.max },
            Event::AttemptEnded(attempt) => Self::Attempt(attempt.into()),
            Event::Done(done) => Self::Done(done.into()),
            Event::Note(message) => Self::Note { message },
            Event::Warning(message) => Self::Warning { message },
        }
    }
}

impl From<&AttemptEnded> for Attempt {
    fn from(ended: &AttemptEnded) -> Self {
        let attempt = Self {
            n: ended.count.n,
            max: ended.count.max,
            result: ended.status.kind(),
            code: ended.status.code(),
            signal: match ended.status {
                AttemptStatus::Signal(signal) => Some(SignalName(signal).to_string()),
                _ => None,
            },
            took_s: ended.took.as_secs_f64(),
            next_s: None,
            next_from: None,
            next_max_s: None,
            retry_after_s: None,
            stop: None,
            reason: None,
        };
        match &ended.next {
            NextStep::Done => attempt,
            NextStep::Retry { after, source, bounds, retry_after, .. } => Self {
                next_s: Some(after.as_secs_f64()),
                next_from: Some(if *source == DelaySource::Hint { "advice" } else { "policy" }),
                next_max_s: bounds.map(|(_, high)| high.as_secs_f64()),
                retry_after_s: retry_after.map(|retry_after| retry_after.as_secs_f64()),
                ..attempt
            },
            NextStep::Stop { stop, reason, .. } => {
                Self { stop: Some(stop.name()), reason: reason.map(|reason| reason.name()), ..attempt }
            }
            NextStep::Interrupted(_) => Self { stop: Some(stagger_core::StopReason::Cancelled.name()), ..attempt },
        }
    }
}

impl From<&Done> for RunEnd {
    fn from(done: &Done) -> Self {
        Self {
            ok: done.ok,
            exit: done.exit,
            signal: done.signal.map(|signal| SignalName(signal).to_string()),
            stop: done.stop.map(|stop| stop.name()),
            attempts: done.attempts,
            total_s: done.total.as_secs_f64(),
            waited_s: done.waited.as_secs_f64(),
            seed: done.seed,
        }
    }
}
