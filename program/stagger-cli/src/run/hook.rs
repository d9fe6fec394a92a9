use core::time::Duration;

use rustix::process::Pid;
use rustix::stdio::stderr;
use stagger::time::Clock;
use stagger_terminal::output::error::CliError;

use super::attempt::{Attempt, RunContext};
use super::launch::{AdviceEnv, AttemptEnv, Launcher, Redirect, Supervision};
use super::log::Count;
use super::patterns::LineMatcher;
use super::settings::{Settings, TerminationSettings};
use super::signals::CaughtSignal;
use super::status::AttemptStatus;
use super::stdin::StdinSource;
use super::stream::Stream;

/// The command of `--on-retry`, which runs between two attempts.
#[derive(Debug)]
pub(super) struct Hook {
    launcher: Launcher,
    termination: TerminationSettings,
    timeout: Option<Duration>,
    retried_by: Option<Pid>,
}

impl Hook {
    pub(super) fn new(settings: &Settings<'_>, supervision: Supervision) -> Option<Self> {
        let launcher = Launcher::script(core::slice::from_ref(settings.args.on_retry.as_ref()?), supervision);
        Some(Self {
            launcher,
            termination: settings.termination,
            timeout: settings.timeout,
            retried_by: settings.nesting.retried_by,
        })
    }

    /// Runs the hook before the attempt `next`, within the time limit of an attempt. A failure is only logged. A signal
    /// that ends the run also ends the hook, and is returned.
    pub(super) fn run(
        &mut self,
        next: Count,
        failed: AttemptStatus,
        context: &mut RunContext<'_>,
    ) -> Result<Option<CaughtSignal>, CliError> {
        let now = context.clock.now();
        let env = AttemptEnv {
            count: next,
            last_exit: Some(failed.code()),
            elapsed: now.saturating_since(context.started),
            advice: AdviceEnv::None,
            retried_by: self.retried_by,
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
        let until = self.timeout.map(|timeout| now.saturating_add(timeout));
        let finished = Attempt::new(child, stdout, Stream::inherited(), self.termination, until, context.ends_at)
            .supervise(context)?;
        if finished.status != AttemptStatus::Exit(0) && finished.interrupted.is_none() {
            context.logger.warn(&format!("--on-retry command failed: {}; retrying anyway", finished.status));
        }
        Ok(finished.interrupted)
    }
}
