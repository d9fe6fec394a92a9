use core::time::Duration;

use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::SIGPIPE;
use stagger_core::{
    DelaySource, Guards, Instant, Outcome, Policy, ServerHint, StopReason, guard::Permits, machine::Decision,
    machine::RetryMachine, machine::RetryState,
};

use super::attempt::Surroundings;
use super::ended::{Ended, SignalName};
use super::fd;
use super::hook::Hook;
use super::log::{Count, Done, Event, Next, Scene, Tried};
use super::report::Report;
use super::runner::{Runner, Terms, Trial, Upshot};
use super::settings::Settings;
use super::signals::Caught;
use crate::error::{CliError, OWN_FAILURE};

/// Runs the command until it works or the policy says that it is enough: a driver of [`RetryMachine`], which decides
/// everything about whether and when.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    settings: &'a Settings,
    around: Surroundings<'a>,
    runner: Runner<'a>,
    hook: Option<Hook>,
    report: Option<Report>,
    began: Instant,
    waited: Duration,
    attempts: u64,
}

/// How stagger itself ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exit(u8),
    /// As if the signal had met it unprepared.
    Signal(i32),
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        around: Surroundings<'a>,
        runner: Runner<'a>,
        hook: Option<Hook>,
        report: Option<Report>,
    ) -> Self {
        let began = around.clock.now();
        Self { settings, around, runner, hook, report, began, waited: Duration::ZERO, attempts: 0 }
    }

    /// # Errors
    /// stagger itself failed. The command does not run any more then.
    pub(super) fn drive(mut self) -> Result<Ending, CliError> {
        let policy = &self.settings.policy;
        let mut state = RetryState::started(self.began);
        // The stream of the first client that `stagger plan --sample` shows.
        let mut retry = RetryMachine::new(policy, &mut state, self.settings.seed.for_call(0));
        let (ending, stop) = self.attempts(policy, &mut retry)?;
        self.done(ending, stop);
        Ok(ending)
    }

    fn attempts(
        &mut self,
        policy: &Policy,
        retry: &mut RetryMachine<'_>,
    ) -> Result<(Ending, Option<StopReason>), CliError> {
        let clock = self.around.clock;
        let guards = Guards::none();
        let spread = retry.spread(|| clock.now());
        if !spread.is_zero() {
            self.around.console.tell(&Event::Spread(spread));
        }
        if let Some(caught) = self.rest(self.began.saturating_add(spread), self.count(1))? {
            return Ok(interrupted(caught));
        }
        let mut permit = Permits::NONE;
        loop {
            permit = match retry.begin(permit, || clock.now(), &guards) {
                Ok(permit) => permit,
                // Only a breaker refuses, and there is none.
                Err(stop) => return Ok((Ending::Exit(OWN_FAILURE), Some(stop))),
            };
            let count = self.count(retry.attempt());
            let limit = self.settings.timeout;
            let trial = self.runner.attempt(Terms { count, limit, began: self.began }, &mut self.around)?;
            self.attempts += 1;

            retry.reset_if_healthy(trial.took);
            let ended_at = clock.now();
            let bounds = policy.bounds(retry.retry_number());
            let decision = retry.decide(outcome(trial.upshot), permit, || ended_at, &guards);
            self.tell(count, &trial, next(policy, &trial, &decision, bounds), ended_at);
            let after = match decision {
                Decision::Retry { after, permit: lent, .. } => {
                    permit = lent;
                    after
                }
                Decision::Stop(stop) => return Ok((ending(&trial), Some(stop))),
                _ => return Ok((ending(&trial), None)),
            };
            let coming = self.count(retry.attempt().saturating_add(1));
            let by_hook = match &mut self.hook {
                Some(hook) => hook.run(coming, trial.ended, limit, self.began, &mut self.around)?,
                None => None,
            };
            if let Some(caught) = by_hook {
                return Ok(interrupted(caught));
            }
            if let Some(caught) = self.rest(ended_at.saturating_add(after), coming)? {
                return Ok(interrupted(caught));
            }
        }
    }

    /// Waits for the next attempt, unless somebody wants the run to end.
    fn rest(&mut self, until: Instant, count: Count) -> Result<Option<Caught>, CliError> {
        let Surroundings { clock, signals, console } = &mut self.around;
        let since = clock.now();
        console.show(Scene::Waiting { count, until, since });
        let caught = loop {
            if let Some(caught) = signals.take_idle(|| console.clear()) {
                break Some(caught);
            }
            let now = clock.now();
            if now >= until {
                break None;
            }
            console.tick(now);
            let next = console.next_tick().map_or(until, |tick| tick.min(until));
            let mut fds = [PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
            fd::wait(&mut fds, Some(next.saturating_since(now))).map_err(|error| CliError::io("cannot wait", error))?;
        };
        console.hide();
        self.waited = self.waited.saturating_add(clock.now().saturating_since(since));
        if let Some(caught) = caught {
            console.note(&format!("interrupted by {} before attempt {count}", SignalName(caught.signal)));
        }
        Ok(caught)
    }

    fn tell(&mut self, count: Count, trial: &Trial, next: Next, now: Instant) {
        let total = now.saturating_since(self.began);
        let tried = Tried { count, ended: trial.ended, took: trial.took, next, total, waited: self.waited };
        self.around.console.tell(&Event::Tried(&tried));
        if let Some(report) = &mut self.report {
            report.add(&tried);
        }
    }

    fn done(&mut self, ending: Ending, stop: Option<StopReason>) {
        let (exit, signal) = match ending {
            Ending::Exit(code) => (code, None),
            Ending::Signal(signal) => (Ended::Signal(signal).code(), Some(signal)),
        };
        let done = Done {
            ok: stop.is_none() && signal.is_none(),
            exit,
            signal,
            stop,
            attempts: self.attempts,
            total: self.around.clock.now().saturating_since(self.began),
            waited: self.waited,
            seed: self.settings.seed.get(),
        };
        self.around.console.tell(&Event::Done(&done));
        if let Some(report) = self.report.take()
            && let Err(error) = report.write(&self.settings.child.command, &self.settings.policy, &done)
        {
            self.around.console.warn(&format!("cannot write the report: {error}"));
        }
    }

    fn count(&self, n: u32) -> Count {
        Count { n, max: self.settings.policy.max_attempts() }
    }
}

/// What the decision is told about an attempt.
fn outcome(upshot: Upshot) -> Outcome {
    match upshot {
        Upshot::Done | Upshot::Unread => Outcome::Success,
        Upshot::Again => Outcome::TRANSIENT,
        Upshot::Retry { kind, asked } => Outcome::Failed { kind, hint: asked.map(ServerHint::AtLeast) },
        Upshot::Stop(_) => Outcome::Permanent,
        Upshot::Interrupted(_) => Outcome::Cancelled,
    }
}

/// What is told about a decision.
fn next(policy: &Policy, trial: &Trial, decision: &Decision, bounds: Option<(Duration, Duration)>) -> Next {
    match (decision, trial.upshot) {
        (_, Upshot::Interrupted(caught)) => Next::Interrupted(caught.signal),
        (&Decision::Retry { after, source, .. }, upshot) => Next::Retry {
            after,
            source,
            bounds: bounds.filter(|_| source == DelaySource::Schedule),
            asked: match upshot {
                Upshot::Retry { asked, .. } => asked,
                _ => None,
            },
            again: upshot == Upshot::Again,
        },
        (&Decision::Stop(stop), upshot) => Next::Stop {
            stop,
            why: match upshot {
                Upshot::Stop(why) => Some(why),
                _ => None,
            },
            limit: match stop {
                StopReason::Elapsed => policy.max_elapsed(),
                StopReason::Hint => policy.max_hint(),
                _ => None,
            },
        },
        _ => Next::Done,
    }
}

/// How a run ends whose last attempt this was.
fn ending(trial: &Trial) -> Ending {
    match trial.upshot {
        Upshot::Done => Ending::Exit(0),
        // As every program does that writes where nobody reads.
        Upshot::Unread => Ending::Signal(SIGPIPE),
        Upshot::Interrupted(caught) => Ending::Signal(caught.signal),
        // Not what was wanted, whatever the command says.
        _ => Ending::Exit(trial.ended.code().max(1)),
    }
}

fn interrupted(caught: Caught) -> (Ending, Option<StopReason>) {
    (Ending::Signal(caught.signal), Some(StopReason::Cancelled))
}
