use std::time::SystemTime;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use stagger_core::{DelaySource, StopReason};
use stagger_terminal::output::stamp::{RunId, Stamp};

use super::event::{AttemptEnded, Event, NextStep};
use crate::run::status::{AttemptStatus, SignalName};

/// The schema of the lines; its number changes when a field is removed or changes its meaning.
const SCHEMA: &str = "stagger.run/1";

/// Formats an event of the run `run` as one JSON object.
pub(super) fn line(event: &Event<'_>, run: &RunId, time: SystemTime) -> Option<String> {
    serde_json::to_string(&Envelope { schema: SCHEMA, stamp: Stamp::new(run, time), event }).ok()
}

#[derive(Serialize)]
struct Envelope<'a> {
    schema: &'static str,
    #[serde(flatten)]
    stamp: Stamp<'a>,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// An attempt in a log line and in the report.
impl Serialize for AttemptEnded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("n", &self.count.n)?;
        // `null` for no limit.
        fields.serialize_entry("max", &self.count.max)?;
        fields.serialize_entry("result", self.status.kind())?;
        fields.serialize_entry("code", &self.status.code())?;
        if let AttemptStatus::Signal(signal) = self.status {
            fields.serialize_entry("signal", &SignalName(signal).to_string())?;
        }
        if let Some(status) = self.http_status {
            fields.serialize_entry("http_status", &status)?;
        }
        fields.serialize_entry("took_s", &self.took.as_secs_f64())?;
        match self.next {
            NextStep::Done => {}
            NextStep::Retry { after, source, bounds, retry_after, .. } => {
                fields.serialize_entry("next_s", &after.as_secs_f64())?;
                let from = if source == DelaySource::Hint { "advice" } else { "policy" };
                fields.serialize_entry("next_from", from)?;
                if let Some((_, high)) = bounds {
                    fields.serialize_entry("next_max_s", &high.as_secs_f64())?;
                }
                if let Some(retry_after) = retry_after {
                    fields.serialize_entry("retry_after_s", &retry_after.as_secs_f64())?;
                }
            }
            NextStep::Stop { stop, reason, .. } => {
                fields.serialize_entry("stop", stop.name())?;
                if let Some(reason) = reason {
                    fields.serialize_entry("reason", reason.name())?;
                }
            }
            NextStep::Interrupted(_) => fields.serialize_entry("stop", StopReason::Cancelled.name())?,
        }
        fields.end()
    }
}
