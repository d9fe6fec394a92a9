use core::num::NonZeroU32;

use serde::Serialize;
use stagger_core::DelaySource;

use super::super::ended::{Ended, Kind, SignalName};
use super::event::{Done, Event, Next, Started, Tried};

/// The version of the lines; it changes when a field changes its meaning or goes.
pub(super) const SCHEMA: &str = "stagger.run/1";

/// What to write for an event where a program reads: one JSON object.
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
    Done(Ending),
    Note { message: &'a str },
    Warning { message: &'a str },
}

/// An attempt in a log line and in the report.
#[derive(Clone, Debug, Serialize)]
pub(in crate::run) struct Attempt {
    n: u32,
    /// `null`: without a limit.
    max: Option<NonZeroU32>,
    result: Kind,
    /// What stands for the result as an exit code.
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    took_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_cap_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

/// The end of a run in a log line and in the report.
#[derive(Clone, Debug, Serialize)]
pub(in crate::run) struct Ending {
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
            Event::Tried(tried) => Self::Attempt(tried.into()),
            Event::Done(done) => Self::Done(done.into()),
            Event::Note(message) => Self::Note { message },
            Event::Warning(message) => Self::Warning { message },
        }
    }
}

impl From<&Tried> for Attempt {
    fn from(tried: &Tried) -> Self {
        let attempt = Self {
            n: tried.count.n,
            max: tried.count.max,
            result: tried.ended.kind(),
            code: tried.ended.code(),
            signal: match tried.ended {
                Ended::Signal(signal) => Some(SignalName(signal).to_string()),
                _ => None,
            },
            took_s: tried.took.as_secs_f64(),
            next_s: None,
            next_from: None,
            policy_cap_s: None,
            asked_s: None,
            stop: None,
            why: None,
        };
        match &tried.next {
            Next::Done => attempt,
            Next::Retry { after, source, bounds, asked, .. } => Self {
                next_s: Some(after.as_secs_f64()),
                next_from: Some(if *source == DelaySource::Hint { "advice" } else { "policy" }),
                policy_cap_s: bounds.map(|(_, high)| high.as_secs_f64()),
                asked_s: asked.map(|asked| asked.as_secs_f64()),
                ..attempt
            },
            Next::Stop { stop, why, .. } => Self { stop: Some(stop.name()), why: why.map(|why| why.name()), ..attempt },
            Next::Interrupted(_) => Self { stop: Some(stagger_core::StopReason::Cancelled.name()), ..attempt },
        }
    }
}

impl From<&Done> for Ending {
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
