use core::time::Duration;
use std::ffi::OsString;
use std::io;

use rustix::stdio::stderr;
use stagger_core::Instant;

use super::attempt::{Attempt, RunContext};
use super::child::ProcessGroup;
use super::launch::{AttemptEnv, Launcher, Redirect};
use super::line_matcher::LineMatcher;
use super::log::Count;
use super::settings::TerminationSettings;
use super::signals::CaughtSignal;
use super::status::AttemptStatus;
use super::stdin::StdinSource;
use super::stream::Stream;
use crate::output::error::CliError;

/// The command of `--on-retry`, which runs between two attempts.
#[derive(Debug)]
pub(super) struct Hook {
    launcher: Launcher,
    termination: TerminationSettings,
}

impl Hook {
    pub(super) fn new(line: &OsString, termination: TerminationSettings, process_group: ProcessGroup) -> Self {
        Self { launcher: Launcher::script(core::slice::from_ref(line), process_group), termination }
    }

    /// Runs the hook before the attempt `next`, within the time limit of an attempt. A failure is only logged. A signal
    /// that ends the run also ends the hook, and is returned.
    pub(super) fn run(
        &mut self,
        next: Count,
        failed: AttemptStatus,
        timeout: Option<Duration>,
        run_started: Instant,
        context: &mut RunContext<'_>,
    ) -> Result<Option<CaughtSignal>, CliError> {
        let now = context.clock.now();
        let env = AttemptEnv {
            count: next,
            last_exit: Some(failed.code()),
            elapsed: now.saturating_since(run_started),
            advice: None,
        };
        // Keeps the output of the hook out of the output of the command.
        let mut child = match self.launcher.start(&mut StdinSource::Null, [Redirect::Pipe, Redirect::Inherit], &env) {
            Ok(child) => child,
            Err(error) => {
                context.logger.warn(&format!("--on-retry: {}", error.message));
                return Ok(None);
            }
        };
        let stdout = match child.stdout.take() {
            Some(pipe) => Stream::forwarded(pipe, stderr(), LineMatcher::new([])),
            None => Stream::inherited(),
        };
        let until = timeout.map(|timeout| now.saturating_add(timeout));
        let finished = Attempt::new(child, stdout, Stream::inherited(), self.termination, until).supervise(context);
        let finished = finished.map_err(|error: io::Error| CliError::io("cannot supervise --on-retry", error))?;
        if finished.status != AttemptStatus::Exit(0) && finished.interrupted.is_none() {
            context.logger.warn(&format!("--on-retry command failed: {}; retrying anyway", finished.status));
        }
        Ok(finished.interrupted)
    }
}
