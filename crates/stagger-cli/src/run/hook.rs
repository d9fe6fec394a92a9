use core::time::Duration;
use std::ffi::OsString;
use std::io;

use rustix::stdio::stderr;
use stagger_core::Instant;

use super::attempt::{Attempt, Surroundings};
use super::child::Grouping;
use super::ended::Ended;
use super::launch::{Circumstances, Launch, Route};
use super::log::Count;
use super::pattern::Watch;
use super::settings::StopSettings;
use super::signals::Caught;
use super::stdin::Feed;
use super::stream::Stream;
use crate::error::CliError;

/// The command of `--on-retry`, which cleans up between two attempts.
#[derive(Debug)]
pub(super) struct Hook {
    launch: Launch,
    stop: StopSettings,
}

impl Hook {
    pub(super) fn new(line: &OsString, stop: StopSettings, grouping: Grouping) -> Self {
        Self { launch: Launch::script(core::slice::from_ref(line), grouping), stop }
    }

    /// Runs it for the attempt that comes, in the time that an attempt may take. It fails without consequence, except
    /// that a signal to stagger ends it and the run.
    ///
    /// # Errors
    /// stagger itself failed.
    pub(super) fn run(
        &mut self,
        coming: Count,
        failed: Ended,
        limit: Option<Duration>,
        began: Instant,
        around: &mut Surroundings<'_>,
    ) -> Result<Option<Caught>, CliError> {
        let now = around.clock.now();
        let circumstances = Circumstances {
            count: coming,
            last_exit: Some(failed.code()),
            elapsed: now.saturating_since(began),
            advice: None,
        };
        // What it prints is not what the command prints.
        let mut child = match self.launch.start(&mut Feed::Null, [Route::Pipe, Route::Inherit], &circumstances) {
            Ok(child) => child,
            Err(error) => {
                around.console.warn(&format!("--on-retry: {}", error.message));
                return Ok(None);
            }
        };
        let stdout = match child.stdout.take() {
            Some(pipe) => Stream::passed(pipe, stderr(), Watch::new([])),
            None => Stream::inherited(),
        };
        let until = limit.map(|limit| now.saturating_add(limit));
        let finished = Attempt::new(child, stdout, Stream::inherited(), self.stop, until).supervise(around);
        let finished = finished.map_err(|error: io::Error| CliError::io("cannot look after --on-retry", error))?;
        if finished.ended != Ended::Exit(0) && finished.interrupted.is_none() {
            around.console.warn(&format!("--on-retry: {}", finished.ended));
        }
        Ok(finished.interrupted)
    }
}
