use core::sync::atomic::AtomicBool;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::SystemTime;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use stagger_core::{DelaySource, Policy, StopReason};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{RunId, Stamp};

use super::event::{AttemptEnded, Done, Event, NextStep, lossy_words, one_line};
use crate::run::fd;
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

/// The report that `--report` writes when the run ends.
#[derive(Debug)]
pub(crate) struct Report {
    /// `None` for standard output.
    file: Option<File>,
    attempts: VecDeque<AttemptEnded>,
    omitted: u64,
}

/// Maximum number of attempts in a report, so that a run without a limit needs bounded memory; the last ones are kept.
const MAX_ATTEMPTS: usize = 10_000;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(serialize_with = "lossy_words")]
    command: &'a [OsString],
    #[serde(serialize_with = "one_line")]
    policy: &'a Policy,
    #[serde(flatten)]
    end: &'a Done,
    /// Number of earlier attempts that are not in `attempt_log`.
    attempt_log_omitted: u64,
    attempt_log: &'a VecDeque<AttemptEnded>,
}

const REPORT_SCHEMA: &str = "stagger.run-report/1";

impl Report {
    /// Opens the destination before the run, so that an error is reported early.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let file = if path == Path::new("-") {
            None
        } else {
            Some(fd::open_to_write("--report", path, OpenOptions::new().write(true).truncate(true))?)
        };
        Ok(Self { file, attempts: VecDeque::new(), omitted: 0 })
    }

    /// Adds an attempt, dropping the oldest beyond the maximum.
    pub(crate) fn add(&mut self, attempt: &AttemptEnded) {
        if self.attempts.len() == MAX_ATTEMPTS {
            self.attempts.pop_front();
            self.omitted += 1;
        }
        self.attempts.push_back(attempt.clone());
    }

    /// Writes the report; the error is `Interrupted` if `cancelled` was set while the write was blocked.
    pub(crate) fn write(
        self,
        command: &[OsString],
        policy: &Policy,
        done: &Done,
        cancelled: &AtomicBool,
    ) -> io::Result<()> {
        let document = Document {
            schema: REPORT_SCHEMA,
            command,
            policy,
            end: done,
            attempt_log_omitted: self.omitted,
            attempt_log: &self.attempts,
        };
        let mut text = serde_json::to_string_pretty(&document)?;
        text.push('\n');
        match &self.file {
            None => fd::write_all(rustix::stdio::stdout(), text.as_bytes(), cancelled),
            Some(file) => fd::write_all(file.as_fd(), text.as_bytes(), cancelled),
        }
    }
}
