use core::time::Duration;
use std::io;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use signal_hook::consts::{SIGTTIN, SIGTTOU};
use stagger::time::{Clock, SystemClock};
use stagger_core::Instant;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

use super::child::{Child, ChildState, Reach};
use super::fd;
use super::log::Logger;
use super::settings::TerminationSettings;
use super::signals::{CaughtSignal, SignalRequest, Signals};
use super::status::{AttemptStatus, NotRun, SignalName};
use super::stream::{Drain, Output, Stream};

/// A started command, supervised until it has ended; after a termination signal, until its descendants have ended, too.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    child: Child,
    stdout: Stream<'a>,
    stderr: Stream<'a>,
    termination: TerminationSettings,
    phase: Phase,
    status: Option<AttemptStatus>,
    /// When the time limit of the run expires.
    run_ends_at: Option<Instant>,
    timed_out: Option<TimedOut>,
    interrupted: Option<CaughtSignal>,
    /// Set when the command has ended.
    drain: Option<Drain>,
    /// Time until the next check whether all descendants are gone, for which there is no notification.
    poll_interval: Duration,
}

/// The clock, signals and log, shared by everything that waits during a run.
#[derive(Debug)]
pub(super) struct RunContext<'a> {
    pub(super) clock: SystemClock,
    pub(super) started: Instant,
    /// When the time limit of the run expires.
    pub(super) ends_at: Option<Instant>,
    pub(super) signals: &'a mut Signals,
    pub(super) logger: &'a mut Logger,
}

#[derive(Debug)]
pub(super) struct Finished<'a> {
    pub(super) status: AttemptStatus,
    /// The limit that has ended the command, if any.
    pub(super) timed_out: Option<TimedOut>,
    /// The signal that requested the end of the run, if any.
    pub(super) interrupted: Option<CaughtSignal>,
    pub(super) stdout: Output<'a>,
    pub(super) stderr: Output<'a>,
    /// Whether stagger sent a termination signal.
    was_terminated: bool,
    /// The descendants of a command that has exited by itself, if any are left.
    background: Option<Child>,
}

/// The time limit that has ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedOut {
    /// `--timeout`
    Attempt,
    /// `--time-limit`
    Run,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It may run until the deadline.
    Running { until: Option<Instant> },
    /// It has exited by itself, and its descendants may do so until `until`.
    Lingering { until: Instant },
    /// It was sent a termination signal, and is killed at `kill_at`.
    Terminating { kill_at: Option<Instant> },
    /// It was killed. Processes that cannot be killed are not awaited beyond `give_up_at`.
    Killed { give_up_at: Instant },
}

/// Time that the descendants of a failed command get to end by themselves: `tee` in `> >(tee log)` still has to write.
const LINGER: Duration = Duration::from_millis(200);
/// Time that killed processes get to disappear.
const KILL_WAIT: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl<'a> Attempt<'a> {
    /// Supervises a command that was just started and may run until `until`, and until the end of the run.
    pub(super) fn new(
        child: Child,
        stdout: Stream<'a>,
        stderr: Stream<'a>,
        termination: TerminationSettings,
        until: Option<Instant>,
        run_ends_at: Option<Instant>,
    ) -> Self {
        Self {
            child,
            stdout,
            stderr,
            termination,
            phase: Phase::Running { until },
            status: None,
            run_ends_at,
            timed_out: None,
            interrupted: None,
            drain: None,
            poll_interval: MIN_POLL_INTERVAL,
        }
    }

    /// Waits until the command has ended and its output is read; on an error, the command is killed.
    pub(super) fn supervise(mut self, context: &mut RunContext<'_>) -> Result<Finished<'a>, CliError> {
        loop {
            let now = context.clock.now();
            self.apply_deadlines(now, context.logger);
            if self.is_over(now) {
                return Ok(self.finish());
            }
            context.logger.tick(now);
            self.wait(now, context)?;
            // Take the signals before polling the child: if the command ends after the poll, its SIGCHLD must still be
            // pending to wake the next wait.
            let requests = context.signals.take();
            self.poll_child(context).map_err(cannot_supervise)?;
            for request in requests {
                self.handle_signal(request, context);
            }
        }
    }

    /// Terminates or kills the command if its deadline has passed.
    fn apply_deadlines(&mut self, now: Instant, logger: &mut Logger) {
        let phase = self.phase;
        match phase {
            Phase::Running { until } if self.status.is_none() => {
                self.timed_out = if is_past(self.run_ends_at, now) {
                    Some(TimedOut::Run)
                } else if is_past(until, now) {
                    Some(TimedOut::Attempt)
                } else {
                    None
                };
                if self.timed_out.is_some() {
                    self.terminate(self.termination.signal, now, logger);
                }
            }
            Phase::Lingering { until } if now >= until && !self.is_gone() => {
                self.terminate(self.termination.signal, now, logger);
            }
            Phase::Terminating { kill_at: Some(kill_at) } if now >= kill_at && !self.is_gone() => {
                self.kill(now, logger)
            }
            // A descendant may have escaped by starting another one in the meantime.
            Phase::Killed { .. } if !self.is_gone() => {
                let _ = self.child.signal(Signal::KILL, Reach::All);
            }
            _ => {}
        }
    }

    fn is_over(&mut self, now: Instant) -> bool {
        let drained = self.stdout.is_done() && self.stderr.is_done() || self.drain.is_some_and(|drain| drain.is_done);
        match self.phase {
            Phase::Running { .. } => self.status.is_some() && drained,
            Phase::Lingering { .. } | Phase::Terminating { .. } => self.is_gone() && drained,
            Phase::Killed { give_up_at } if self.status.is_some() => drained && (now >= give_up_at || self.is_gone()),
            // It cannot be killed. Waiting is better than running the next attempt in parallel.
            Phase::Killed { give_up_at } => now >= give_up_at && self.interrupted.is_some(),
        }
    }

    fn is_gone(&mut self) -> bool {
        self.status.is_some() && self.child.is_gone()
    }

    /// Waits for a deadline, a signal or output, and forwards or buffers the output.
    fn wait(&mut self, now: Instant, context: &RunContext<'_>) -> Result<(), CliError> {
        let deadline = match self.phase {
            Phase::Running { until } if self.status.is_none() => earlier(until, self.run_ends_at),
            Phase::Running { .. } => None,
            Phase::Lingering { until } => Some(until),
            Phase::Terminating { kill_at } => kill_at,
            Phase::Killed { give_up_at } => Some(give_up_at),
        };
        // A deadline in the past has been handled; only other events are awaited.
        let deadline = deadline.filter(|at| *at > now);
        let mut next_poll = None;
        if self.status.is_some() && !matches!(self.phase, Phase::Running { .. }) {
            self.poll_interval = (self.poll_interval * 2).min(MAX_POLL_INTERVAL);
            next_poll = Some(now.saturating_add(self.poll_interval));
        }
        let next = [deadline, next_poll, self.idle_deadline(), context.logger.next_tick()].into_iter().flatten().min();

        let poll_fds = [self.stdout.poll_fd(), self.stderr.poll_fd()];
        let streams = poll_fds.each_ref().map(Option::is_some);
        let signals = PollFd::from_borrowed_fd(context.signals.fd(), PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = poll_fds.into_iter().flatten().chain([signals]).collect();
        fd::wait(&mut fds, next.map(|next| next.saturating_since(now))).map_err(cannot_supervise)?;

        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let [stdout, stderr] = streams.map(|is_polled| is_polled && ready.next() == Some(true));
        if stdout {
            self.stdout.advance().map_err(|error| cannot_hold(&error))?;
        }
        if stderr {
            self.stderr.advance().map_err(|error| cannot_hold(&error))?;
        }
        if stdout || stderr {
            self.on_stream_progress(context.clock.now());
        } else if self.idle_deadline().is_some()
            && let Some(drain) = &mut self.drain
        {
            drain.on_idle(context.clock.now());
        }
        Ok(())
    }

    /// Returns when to stop reading idle streams; `None` while a slow reader blocks them, unless the run must end.
    fn idle_deadline(&self) -> Option<Instant> {
        let is_blocked = self.stdout.is_blocked() || self.stderr.is_blocked();
        if is_blocked && self.interrupted.is_none() {
            return None;
        }
        self.drain.map(|drain| drain.idle_deadline)
    }

    fn bytes_seen(&self) -> u64 {
        self.stdout.bytes_seen + self.stderr.bytes_seen
    }

    /// Records progress of a stream, and closes both if draining has reached its byte limit.
    fn on_stream_progress(&mut self, now: Instant) {
        let bytes_seen = self.bytes_seen();
        if let Some(drain) = &mut self.drain
            && !drain.on_progress(now, bytes_seen)
        {
            self.stdout.close();
            self.stderr.close();
        }
    }

    fn poll_child(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        match self.child.poll()? {
            ChildState::Stopped(signal) if [SIGTTIN, SIGTTOU].contains(&signal) => context.logger.note(&format!(
                "the command was stopped by {} because it uses the terminal from the background; add --foreground",
                SignalName(signal)
            )),
            ChildState::Running | ChildState::Stopped(_) => {}
            ChildState::Ended(status) => {
                self.status = Some(status);
                self.drain = Some(Drain::start(context.clock.now(), self.bytes_seen()));
            }
        }
        Ok(())
    }

    fn handle_signal(&mut self, request: SignalRequest, context: &mut RunContext<'_>) {
        let now = context.clock.now();
        match request {
            SignalRequest::Terminate(caught) if self.interrupted.is_some() => {
                self.interrupted = Some(caught);
                self.kill(now, context.logger);
            }
            SignalRequest::Terminate(caught) => {
                self.interrupted = Some(caught);
                context.logger.clear();
                if self.received_from_terminal(caught) {
                    self.start_grace_period(now);
                } else {
                    self.terminate(caught.signal, now, context.logger);
                }
            }
            SignalRequest::Forward(caught) => {
                if !self.received_from_terminal(caught) {
                    self.send(caught.signal, Reach::Job, context.logger);
                }
            }
            SignalRequest::Stop(caught) => {
                if !self.received_from_terminal(caught) {
                    self.send(caught.signal, Reach::Job, context.logger);
                }
                context.logger.clear();
                Signals::stop_self();
                // Time spent stopped does not count towards the time limit.
                self.extend_deadline(context.clock.now().saturating_since(now));
            }
            SignalRequest::Continue => self.send(Signal::CONT.as_raw(), Reach::Job, context.logger),
        }
    }

    /// Returns whether the terminal has sent the signal to the command, too: it signals the whole foreground group, and
    /// the command may share ours.
    fn received_from_terminal(&self, caught: CaughtSignal) -> bool {
        caught.from_terminal && self.child.shares_our_group()
    }

    fn terminate(&mut self, signal: i32, now: Instant, logger: &mut Logger) {
        self.send(signal, Reach::All, logger);
        // A stopped process does not handle the signal.
        self.send(Signal::CONT.as_raw(), Reach::All, logger);
        self.start_grace_period(now);
    }

    fn start_grace_period(&mut self, now: Instant) {
        // A deadline that is already set is not extended.
        if matches!(self.phase, Phase::Running { .. } | Phase::Lingering { .. }) {
            self.phase =
                Phase::Terminating { kill_at: self.termination.kill_after.map(|length| now.saturating_add(length)) };
        }
    }

    fn kill(&mut self, now: Instant, logger: &mut Logger) {
        self.send(Signal::KILL.as_raw(), Reach::All, logger);
        self.phase = Phase::Killed { give_up_at: now.saturating_add(KILL_WAIT) };
    }

    fn send(&mut self, signal: i32, reach: Reach, logger: &mut Logger) {
        let sent = match Signal::from_named_raw(signal) {
            Some(signal) => self.child.signal(signal, reach),
            None => Err(io::ErrorKind::InvalidInput.into()),
        };
        if let Err(error) = sent {
            logger
                .warn(&format!("cannot send {} to the command: {error}; it may still be running", SignalName(signal)));
        }
    }

    fn extend_deadline(&mut self, by: Duration) {
        match &mut self.phase {
            Phase::Running { until: Some(at) } | Phase::Terminating { kill_at: Some(at) } => {
                *at = at.saturating_add(by)
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Finished<'a> {
        let status = match self.status {
            Some(_) if self.timed_out.is_some() => AttemptStatus::Timeout,
            Some(status) => status,
            // It has taken too long to end; give up without its exit status.
            None => {
                self.child.abandon();
                AttemptStatus::Timeout
            }
        };
        let was_terminated = !matches!(self.phase, Phase::Running { .. } | Phase::Lingering { .. });
        let background = if was_terminated || self.child.is_gone() { None } else { Some(self.child) };
        Finished {
            status,
            timed_out: self.timed_out,
            interrupted: self.interrupted,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            was_terminated,
            background,
        }
    }
}

fn cannot_supervise(error: io::Error) -> CliError {
    CliError::io("cannot supervise the command", error)
}

/// Creates the error of output that does not fit the memory and could not be written to a file.
fn cannot_hold(error: &io::Error) -> CliError {
    let place = std::env::temp_dir();
    CliError::usage(format_args!(
        "cannot hold the command's output in {}: {error}; free space there, or set TMPDIR to another directory",
        path_shown(&place)
    ))
}

/// Returns whether a deadline has passed; `None` is never.
fn is_past(deadline: Option<Instant>, now: Instant) -> bool {
    deadline.is_some_and(|deadline| now >= deadline)
}

/// Returns the earlier of two deadlines; `None` is never.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

impl Finished<'_> {
    /// Creates the result of a command that could not be started.
    pub(super) fn not_run(reason: NotRun) -> Self {
        let nothing = || Stream::inherited().finish();
        Self {
            status: AttemptStatus::NotRun(reason),
            timed_out: None,
            interrupted: None,
            stdout: nothing(),
            stderr: nothing(),
            was_terminated: false,
            background: None,
        }
    }

    /// Ends the descendants of a command that has exited by itself, those that do not end on their own in a moment by
    /// the termination signal. A signal that requests the end of the run meanwhile is in `interrupted` afterwards.
    /// Returns whether any had to be ended.
    pub(super) fn end_background(
        &mut self,
        termination: TerminationSettings,
        context: &mut RunContext<'_>,
    ) -> Result<bool, CliError> {
        let Some(child) = self.background.take() else { return Ok(false) };
        let nothing = Stream::inherited;
        let mut rest = Attempt::new(child, nothing(), nothing(), termination, None, None);
        rest.status = Some(self.status);
        rest.phase = Phase::Lingering { until: context.clock.now().saturating_add(LINGER) };
        let rest = rest.supervise(context)?;
        self.interrupted = rest.interrupted;
        Ok(rest.was_terminated)
    }
}
