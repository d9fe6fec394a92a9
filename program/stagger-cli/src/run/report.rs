use core::sync::atomic::AtomicBool;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use serde::Serialize;
use stagger_core::Policy;
use stagger_terminal::output::error::CliError;

use super::fd;
use super::log::{AttemptEnded, Done, lossy_words, one_line};

/// The report that `--report` writes when the run ends.
#[derive(Debug)]
pub(super) struct Report {
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

const SCHEMA: &str = "stagger.run-report/1";

impl Report {
    /// Opens the destination before the run, so that an error is reported early.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let create = |path: &Path| fd::open_to_write("--report", path, OpenOptions::new().write(true).truncate(true));
        let file = Some(path).filter(|path| *path != Path::new("-")).map(create).transpose()?;
        Ok(Self { file, attempts: VecDeque::new(), omitted: 0 })
    }

    /// Adds an attempt, dropping the oldest beyond the maximum.
    pub(super) fn add(&mut self, attempt: &AttemptEnded) {
        if self.attempts.len() == MAX_ATTEMPTS {
            self.attempts.pop_front();
            self.omitted += 1;
        }
        self.attempts.push_back(attempt.clone());
    }

    /// Writes the report; the error is `Interrupted` if `cancelled` was set while the write was blocked.
    pub(super) fn write(
        self,
        command: &[OsString],
        policy: &Policy,
        done: &Done,
        cancelled: &AtomicBool,
    ) -> io::Result<()> {
        let document = Document {
            schema: SCHEMA,
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
