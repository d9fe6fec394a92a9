use core::time::Duration;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde_json::Value;
use stagger_core::Policy;

use super::read::LogEntry;

/// The schema of `stagger run --log json`.
const RUN: &str = "stagger.run/1";

pub(super) enum Line {
    /// A new run with this policy.
    Start(Box<Policy>),
    Delay(LogEntry),
    /// A delay that was requested by a server or the command.
    Hinted,
    Other,
}

#[derive(Deserialize)]
struct Fields {
    schema: Option<String>,
    event: Option<String>,
    policy: Option<String>,
    n: Option<u32>,
    next_s: Option<f64>,
    next_from: Option<String>,
    delay_s: Option<f64>,
    client: Option<Value>,
    retry: Option<u32>,
    time_s: Option<f64>,
    /// When the line was written, in RFC 3339.
    time: Option<Value>,
    /// The run that wrote the line.
    run: Option<Value>,
}

/// Parses a JSON line; an error says what was expected.
pub(super) fn read_json(line: usize, text: &str) -> Result<Line, String> {
    let fields: Fields = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
    match &fields.schema {
        Some(schema) if schema == RUN => from_run_log(line, fields),
        Some(schema) => Err(format!("unknown schema `{schema}`; expected {RUN}, or an object with delay_s")),
        None => from_object(line, fields),
    }
}

fn from_run_log(line: usize, fields: Fields) -> Result<Line, String> {
    match (fields.event.as_deref(), fields.next_s) {
        (Some("start"), _) => {
            let policy = fields.policy.ok_or("the start event has no policy")?;
            let policy: Policy = policy.parse().map_err(|error| format!("policy: {error}"))?;
            Ok(Line::Start(Box::new(policy)))
        }
        (Some("attempt"), Some(_)) if fields.next_from.as_deref() == Some("advice") => Ok(Line::Hinted),
        (Some("attempt"), Some(next)) => {
            let delay = seconds("next_s", next)?;
            // The attempt ended when the line was written, so the retry follows after the delay.
            let ended = fields.time.as_ref().map(since_epoch).transpose()?;
            Ok(Line::Delay(LogEntry {
                line,
                delay,
                client: fields.run.map(name).transpose()?.map(|run| format!("run {run}")),
                retry: Some(fields.n.filter(|n| *n > 0).ok_or("the attempt event has no number n, counted from 1")?),
                time: ended.map(|ended| ended.saturating_add(delay)),
            }))
        }
        (Some(_), _) => Ok(Line::Other),
        (None, _) => Err(format!("the {RUN} line has no event")),
    }
}

fn from_object(line: usize, fields: Fields) -> Result<Line, String> {
    let delay = fields.delay_s.ok_or("missing delay_s; expected an object with delay_s, in seconds")?;
    if fields.retry == Some(0) {
        return Err("retry is 0; retries count from 1".to_owned());
    }
    Ok(Line::Delay(LogEntry {
        line,
        delay: seconds("delay_s", delay)?,
        client: fields.client.map(name).transpose()?,
        retry: fields.retry,
        time: fields.time_s.map(|time| seconds("time_s", time)).transpose()?,
    }))
}

/// Parses a time of the log, as the length of time since the Unix epoch.
fn since_epoch(time: &Value) -> Result<Duration, String> {
    if let Some(text) = time.as_str() {
        if let Ok(time) = humantime::parse_rfc3339(text) {
            if let Ok(since) = time.duration_since(UNIX_EPOCH) {
                return Ok(since);
            }
        }
    }
    Err(format!("time is {time}; expected one like \"2026-01-31T12:00:00.5Z\""))
}

fn name(client: Value) -> Result<String, String> {
    match client {
        Value::String(word) => Ok(word),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("client is {other}; expected a string or a number")),
    }
}

fn seconds(field: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{field} is {seconds}: {error}"))
}
