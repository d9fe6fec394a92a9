use core::time::Duration;

use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::SIGPIPE;
use stagger::time::Clock;
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{DelaySource, Guards, Instant, Outcome, Policy, ServerHint, StopReason};
use stagger_terminal::output::error::{CliError, RUN_FAILURE};
use stagger_terminal::output::line::short;

use super::attempt::RunContext;
use super::budget::SharedBudget;
use super::fd;
use super::hook::Hook;
use super::log::Report;
use super::log::{Activity, AttemptEnded, Count, Done, Event, NextStep};
use super::runner::{AttemptOutcome, AttemptResult, Runner};
use super::settings::Settings;
use super::signals::CaughtSignal;
use super::status::{AttemptStatus, SignalName, TIMEOUT_CODE};

/// Runs the command until it succeeds or the policy stops: a driver of [`RetryMachine`], which decides whether and when
/// to retry.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    pub(super) settings: &'a Settings<'a>,
    pub(super) context: RunContext<'a>,
    pub(super) runner: Runner<'a>,
    pub(super) budget: Option<&'a SharedBudget>,
    pub(super) hook: Option<Hook>,
    pub(super) report: Option<Report>,
    pub(super) waited: Duration,
    pub(super) attempts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunExit {
    Code(u8),
    /// By this signal, as if it were not handled.
    Signal(i32),
}

impl Driver<'_> {
    /// Runs attempts until the run ends; on an error, the command is no longer running.
    pub(super) fn drive(mut self) -> Result<RunExit, CliError> {
        let policy = &self.settings.policy;
        let mut state = RetryState::started(self.context.started);
        // The same random stream as that of the first client of `stagger plan --sample`.
        let mut retry =
            RetryMachine::new(policy, &mut state, self.settings.seed.for_call(0)).deadline(self.context.ends_at);
        let (exit, stop) = self.attempts(policy, &mut retry)?;
        if stop == Some(StopReason::Attempts)
            && let Some(outer) = self.settings.nesting.stands_down_for
        {
            self.context.logger.note(&format!(
                "standing down: the retries are left to the outer stagger run (PID {outer}); to retry here as well, \
                 add \
                 --nested allow"
            ));
        }
        self.finish(exit, stop);
        Ok(exit)
    }

    fn attempts(
        &mut self,
        policy: &Policy,
        retry: &mut RetryMachine<'_>,
    ) -> Result<(RunExit, Option<StopReason>), CliError> {
        let clock = self.context.clock;
        let budget = self.budget.map(SharedBudget::guard);
        let guards = Guards::of(budget.as_slice());
        let spread = retry.spread(|| clock.now());
        if !spread.is_zero() {
            self.context.logger.log(&Event::Spread { wait: spread });
        }
        if let Some(caught) = self.sleep_until(self.context.started.saturating_add(spread), self.count(1))? {
            return Ok(interrupted(caught));
        }
        let mut permit = Permits::NONE;
        let mut next_count = self.count(1);
        loop {
            permit = match retry.begin(permit, || clock.now(), &guards) {
                Ok(permit) => permit,
                Err(StopReason::Deadline) => {
                    let limit = short(self.settings.time_limit.unwrap_or_default());
                    let message = format!("giving up before attempt {next_count}: --time-limit {limit} is reached");
                    self.context.logger.note(&message);
                    return Ok((RunExit::Code(TIMEOUT_CODE), Some(StopReason::Deadline)));
                }
                // A budget rejects no attempt.
                Err(stop) => return Ok((RunExit::Code(RUN_FAILURE), Some(stop))),
            };
            let count = self.count(retry.attempt());
            let attempt = self.runner.attempt(count, &mut self.context)?;
            self.attempts += 1;

            retry.reset_if_healthy(attempt.took);
            let ended_at = clock.now();
            let bounds = policy.bounds(retry.retry_number());
            let decision = match retry.decide(outcome(attempt.outcome), permit, || ended_at, &guards) {
                Decision::Stop(_) if attempt.outcome == AttemptOutcome::TimeLimit => {
                    Decision::Stop(StopReason::Deadline)
                }
                decision => decision,
            };
            self.warn_about_budget();
            self.report_attempt(count, &attempt, next(self.settings, &attempt, &decision, bounds), ended_at);
            let after = match decision {
                Decision::Retry { after, permit: next_permit, .. } => {
                    permit = next_permit;
                    after
                }
                Decision::Stop(StopReason::Deadline) => {
                    return Ok((RunExit::Code(TIMEOUT_CODE), Some(StopReason::Deadline)));
                }
                Decision::Stop(stop) => return Ok((run_exit(&attempt), Some(stop))),
                _ => return Ok((run_exit(&attempt), None)),
            };
            next_count = self.count(retry.attempt().saturating_add(1));
            let caught = match &mut self.hook {
                Some(hook) => hook.run(next_count, attempt.status, &mut self.context)?,
                None => None,
            };
            let caught = match caught {
                Some(caught) => Some(caught),
                None => self.sleep_until(ended_at.saturating_add(after), next_count)?,
            };
            if let Some(caught) = caught {
                guards.release(permit, || clock.now());
                self.warn_about_budget();
                return Ok(interrupted(caught));
            }
        }
    }

    fn warn_about_budget(&mut self) {
        if let Some(warning) = self.budget.and_then(SharedBudget::take_warning) {
            self.context.logger.warn(&warning);
        }
    }

    /// Waits until the next attempt is due, or until a signal requests the end of the run.
    fn sleep_until(&mut self, until: Instant, count: Count) -> Result<Option<CaughtSignal>, CliError> {
        let RunContext { clock, signals, logger, .. } = &mut self.context;
        let since = clock.now();
        logger.show(Activity::Waiting { count, until, since });
        let caught = loop {
            if let Some(caught) = signals.take_idle(|| logger.clear()) {
                break Some(caught);
            }
            let now = clock.now();
            if now >= until {
                break None;
            }
            logger.tick(now);
            let next = logger.next_tick().map_or(until, |tick| tick.min(until));
            let mut fds = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
            fd::wait(&mut fds, Some(next.saturating_since(now)))
                .map_err(|error| CliError::io("cannot wait for signals", error))?;
        };
        logger.hide();
        self.waited = self.waited.saturating_add(clock.now().saturating_since(since));
        if let Some(caught) = caught {
            logger.note(&format!("interrupted by {} before attempt {count}", SignalName(caught.signal)));
        }
        Ok(caught)
    }

    fn report_attempt(&mut self, count: Count, attempt: &AttemptResult, next: NextStep, now: Instant) {
        let total = now.saturating_since(self.context.started);
        let &AttemptResult { status, took, http_status, .. } = attempt;
        let ended = AttemptEnded { count, status, http_status, took, next, total, waited: self.waited };
        self.context.logger.log(&Event::AttemptEnded(&ended));
        if let Some(report) = &mut self.report {
            report.add(&ended);
        }
    }

    fn finish(&mut self, run_exit: RunExit, stop: Option<StopReason>) {
        let (exit, signal) = match run_exit {
            RunExit::Code(code) => (code, None),
            RunExit::Signal(signal) => (AttemptStatus::Signal(signal).code(), Some(signal)),
        };
        let done = Done {
            ok: stop.is_none() && signal.is_none(),
            exit,
            signal: signal.map(|signal| SignalName(signal).to_string()),
            stop: stop.map(|stop| stop.name()),
            attempts: self.attempts,
            total_s: self.context.clock.now().saturating_since(self.context.started).as_secs_f64(),
            waited_s: self.waited.as_secs_f64(),
            seed: self.settings.seed.get(),
        };
        self.context.logger.log(&Event::Done(&done));
        if let Some(report) = self.report.take()
            && let Err(error) =
                report.write(&self.settings.args.command, &self.settings.policy, &done, &self.context.signals.terminate)
        {
            self.context.logger.warn(&format!("cannot write the report: {error}"));
        }
    }

    fn count(&self, n: u32) -> Count {
        Count { n, max: self.settings.policy.max_attempts() }
    }
}

/// Converts the outcome of an attempt into the input of the decision.
fn outcome(outcome: AttemptOutcome) -> Outcome {
    match outcome {
        AttemptOutcome::Success | AttemptOutcome::StdoutClosed => Outcome::Success,
        AttemptOutcome::RepeatSuccess => Outcome::TRANSIENT,
        AttemptOutcome::Retry { kind, retry_after } => {
            Outcome::Failed { kind, hint: retry_after.map(ServerHint::AtLeast) }
        }
        AttemptOutcome::Stop(_) | AttemptOutcome::TimeLimit => Outcome::Permanent,
        AttemptOutcome::Interrupted(_) => Outcome::Cancelled,
    }
}

fn next(
    settings: &Settings<'_>,
    attempt: &AttemptResult,
    decision: &Decision,
    bounds: Option<(Duration, Duration)>,
) -> NextStep {
    match (decision, attempt.outcome) {
        (_, AttemptOutcome::Interrupted(caught)) => NextStep::Interrupted(caught.signal),
        (&Decision::Retry { after, source, .. }, outcome) => NextStep::Retry {
            after,
            source,
            // Another source has a delay outside of the schedule's interval.
            bounds: if source == DelaySource::Schedule { bounds } else { None },
            retry_after: match outcome {
                AttemptOutcome::Retry { retry_after, .. } => retry_after,
                _ => None,
            },
            repeat_success: outcome == AttemptOutcome::RepeatSuccess,
        },
        (&Decision::Stop(stop), outcome) => NextStep::Stop {
            stop,
            reason: match outcome {
                AttemptOutcome::Stop(reason) => Some(reason),
                _ => None,
            },
            limit: match stop {
                StopReason::Elapsed => settings.policy.max_elapsed(),
                StopReason::Hint => settings.policy.max_hint(),
                StopReason::Deadline => settings.time_limit,
                _ => None,
            },
        },
        _ => NextStep::Done,
    }
}

/// Returns how stagger exits after the last attempt.
fn run_exit(attempt: &AttemptResult) -> RunExit {
    match attempt.outcome {
        AttemptOutcome::Success => RunExit::Code(0),
        // Like every program that writes to a closed pipe.
        AttemptOutcome::StdoutClosed => RunExit::Signal(SIGPIPE),
        AttemptOutcome::Interrupted(caught) => RunExit::Signal(caught.signal),
        // The --until outcome was not reached, even if the command exited with 0.
        _ => RunExit::Code(attempt.status.code().max(1)),
    }
}

/// Returns how stagger exits when a signal has interrupted the run.
fn interrupted(caught: CaughtSignal) -> (RunExit, Option<StopReason>) {
    (RunExit::Signal(caught.signal), Some(StopReason::Cancelled))
}
