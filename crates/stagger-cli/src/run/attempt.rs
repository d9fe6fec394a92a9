use core::time::Duration;
use std::io;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use signal_hook::consts::{SIGTTIN, SIGTTOU};
use stagger_core::Instant;

use super::child::{Child, Sight};
use super::clock::Clock;
use super::drain::Drain;
use super::ended::{Ended, NotRun, SignalName};
use super::fd;
use super::log::Console;
use super::settings::StopSettings;
use super::signals::{Caught, Notice, Signals};
use super::stream::{Output, Stream};

/// A command that was started, until it and what it has started are over.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    child: Child,
    stdout: Stream<'a>,
    stderr: Stream<'a>,
    stop: StopSettings,
    phase: Phase,
    ended: Option<Ended>,
    timed_out: bool,
    interrupted: Option<Caught>,
    /// Once the command has ended.
    drain: Option<Drain>,
    /// How long until the next look whether everybody is gone, of which nobody tells us.
    patience: Duration,
}

/// What everybody needs who waits.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) clock: Clock,
    pub(super) signals: &'a mut Signals,
    pub(super) console: &'a mut Console,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Finished<'a> {
    pub(super) ended: Ended,
    /// The signal that asked to end the run, if one did.
    pub(super) interrupted: Option<Caught>,
    pub(super) stdout: Output<'a>,
    pub(super) stderr: Output<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It may run until then.
    Running { until: Option<Instant> },
    /// It was told to end, and is killed then.
    Ending { kill_at: Option<Instant> },
    /// It was killed. What cannot be killed is not waited for beyond this.
    Killed { leave_at: Instant },
}

/// How long the killed may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(1);
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(100);

impl<'a> Attempt<'a> {
    /// Takes over a command that was just started and may run until `until`.
    pub(super) fn new(
        child: Child,
        stdout: Stream<'a>,
        stderr: Stream<'a>,
        stop: StopSettings,
        until: Option<Instant>,
    ) -> Self {
        Self {
            child,
            stdout,
            stderr,
            stop,
            phase: Phase::Running { until },
            ended: None,
            timed_out: false,
            interrupted: None,
            drain: None,
            patience: FIRST_LOOK,
        }
    }

    /// Waits until it is over.
    ///
    /// # Errors
    /// What was held back cannot be stored, or the system fails. The command is killed then.
    pub(super) fn supervise(mut self, around: &mut Surroundings<'_>) -> io::Result<Finished<'a>> {
        loop {
            let now = around.clock.now();
            self.act(now, around.console);
            if self.is_over(now) {
                return Ok(self.finish());
            }
            around.console.tick(now);
            self.wait(now, around)?;
            // The signals first: a command that ends after we looked must wake us again, and not have its end thrown
            // away with the signals that were taken after the look.
            let notices = around.signals.take();
            self.look(around)?;
            for notice in notices {
                self.obey(notice, around);
            }
        }
    }

    /// Does what is due.
    fn act(&mut self, now: Instant, console: &mut Console) {
        let phase = self.phase;
        match phase {
            Phase::Running { until: Some(until) } if now >= until && self.ended.is_none() => {
                self.timed_out = true;
                self.tell_to_end(self.stop.signal, now, console);
            }
            Phase::Ending { kill_at: Some(kill_at) } if now >= kill_at && !self.is_gone() => self.kill(now, console),
            _ => {}
        }
    }

    fn is_over(&mut self, now: Instant) -> bool {
        let drained = self.stdout.is_done() && self.stderr.is_done() || self.drain.is_some_and(|drain| drain.is_over());
        match self.phase {
            Phase::Running { .. } => self.ended.is_some() && drained,
            Phase::Ending { .. } => self.is_gone() && drained,
            Phase::Killed { leave_at } if self.ended.is_some() => drained && (now >= leave_at || self.is_gone()),
            // It cannot be killed. To start the next attempt beside it would be worse than to wait.
            Phase::Killed { leave_at } => now >= leave_at && self.interrupted.is_some(),
        }
    }

    fn is_gone(&mut self) -> bool {
        self.ended.is_some() && self.child.is_gone()
    }

    /// Waits until something is due or has come, and moves what the streams have brought.
    fn wait(&mut self, now: Instant, around: &Surroundings<'_>) -> io::Result<()> {
        let deadline = match self.phase {
            Phase::Running { until } if self.ended.is_none() => until,
            Phase::Running { .. } => None,
            Phase::Ending { kill_at } => kill_at,
            Phase::Killed { leave_at } => Some(leave_at),
        };
        // What is past has been seen to; it may only wait for something else.
        let deadline = deadline.filter(|at| *at > now);
        let look = (self.ended.is_some() && !matches!(self.phase, Phase::Running { .. })).then(|| {
            self.patience = (self.patience * 2).min(LONGEST_LOOK);
            now.saturating_add(self.patience)
        });
        let next = [deadline, look, self.quiet_at(), around.console.next_tick()].into_iter().flatten().min();

        let interests = [self.stdout.interest(), self.stderr.interest()];
        let streams = interests.each_ref().map(Option::is_some);
        let signals = PollFd::from_borrowed_fd(around.signals.fd(), PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = interests.into_iter().flatten().chain([signals]).collect();
        fd::wait(&mut fds, next.map(|next| next.saturating_since(now)))?;

        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let [stdout, stderr] = streams.map(|is_polled| is_polled && ready.next() == Some(true));
        if stdout {
            self.stdout.go_on()?;
        }
        if stderr {
            self.stderr.go_on()?;
        }
        if stdout || stderr {
            self.has_moved(around.clock.now());
        } else if self.quiet_at().is_some()
            && let Some(drain) = &mut self.drain
        {
            drain.nothing_came(around.clock.now());
        }
        Ok(())
    }

    /// When streams that bring nothing more are left. A reader who is slow is waited for, unless the run must end.
    fn quiet_at(&self) -> Option<Instant> {
        let is_blocked = self.stdout.is_blocked() || self.stderr.is_blocked();
        self.drain.filter(|_| !is_blocked || self.interrupted.is_some()).map(|drain| drain.quiet_at())
    }

    /// How many bytes went through our hands.
    fn seen(&self) -> u64 {
        self.stdout.seen() + self.stderr.seen()
    }

    /// A stream has brought something, or taken it.
    fn has_moved(&mut self, now: Instant) {
        let seen = self.seen();
        if self.drain.as_mut().is_some_and(|drain| !drain.moved(now, seen)) {
            self.stdout.close();
            self.stderr.close();
        }
    }

    /// Looks what has become of the command.
    fn look(&mut self, around: &mut Surroundings<'_>) -> io::Result<()> {
        match self.child.look()? {
            Sight::Stopped(signal) if [SIGTTIN, SIGTTOU].contains(&signal) => around.console.note(&format!(
                "the command was stopped by {}: it wants the terminal; run it with --foreground",
                SignalName(signal)
            )),
            Sight::Running | Sight::Stopped(_) => {}
            Sight::Ended(ended) => {
                self.ended = Some(ended);
                self.drain = Some(Drain::begin(around.clock.now(), self.seen()));
            }
        }
        Ok(())
    }

    fn obey(&mut self, notice: Notice, around: &mut Surroundings<'_>) {
        let now = around.clock.now();
        match notice {
            Notice::End(caught) if self.interrupted.is_some() => {
                self.interrupted = Some(caught);
                self.kill(now, around.console);
            }
            Notice::End(caught) => {
                self.interrupted = Some(caught);
                around.console.clear();
                if self.has_it_already(caught) {
                    self.wait_for_the_end(now);
                } else {
                    self.tell_to_end(caught.signal, now, around.console);
                }
            }
            Notice::PassOn(caught) => {
                if !self.has_it_already(caught) {
                    self.send(caught.signal, around.console);
                }
            }
            Notice::Stop(caught) => {
                if !self.has_it_already(caught) {
                    self.send(caught.signal, around.console);
                }
                around.console.clear();
                Signals::stop_here();
                // The time in which it could not run is not its own.
                self.postpone(around.clock.now().saturating_since(now));
            }
            Notice::Continue => self.send(Signal::CONT.as_raw(), around.console),
        }
    }

    /// The terminal sends its signals to the whole foreground group, and so to a command that is in ours.
    fn has_it_already(&self, caught: Caught) -> bool {
        caught.from_terminal && self.child.shares_our_group()
    }

    fn tell_to_end(&mut self, signal: i32, now: Instant, console: &mut Console) {
        self.send(signal, console);
        // What is stopped cannot end.
        self.send(Signal::CONT.as_raw(), console);
        self.wait_for_the_end(now);
    }

    fn wait_for_the_end(&mut self, now: Instant) {
        // A deadline that already runs is not put off.
        if matches!(self.phase, Phase::Running { .. }) {
            self.phase = Phase::Ending { kill_at: self.stop.kill_after.map(|length| now.saturating_add(length)) };
        }
    }

    fn kill(&mut self, now: Instant, console: &mut Console) {
        self.send(Signal::KILL.as_raw(), console);
        self.phase = Phase::Killed { leave_at: now.saturating_add(AFTER_KILL) };
    }

    fn send(&mut self, signal: i32, console: &mut Console) {
        let sent = match Signal::from_named_raw(signal) {
            Some(signal) => self.child.signal(signal),
            None => Err(io::ErrorKind::InvalidInput.into()),
        };
        if let Err(error) = sent {
            console
                .warn(&format!("cannot send {} to the command: {error}; it may still be running", SignalName(signal)));
        }
    }

    fn postpone(&mut self, by: Duration) {
        match &mut self.phase {
            Phase::Running { until: Some(at) } | Phase::Ending { kill_at: Some(at) } => *at = at.saturating_add(by),
            _ => {}
        }
    }

    fn finish(mut self) -> Finished<'a> {
        let ended = match self.ended {
            Some(_) if self.timed_out => Ended::Timeout,
            Some(ended) => ended,
            // It has taken too long to end, and we go without having seen it.
            None => {
                self.child.leave();
                Ended::Timeout
            }
        };
        Finished { ended, interrupted: self.interrupted, stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Finished<'_> {
    /// There was nothing to supervise.
    pub(super) fn not_run(reason: NotRun) -> Self {
        let nothing = || Stream::inherited().finish();
        Self { ended: Ended::NotRun(reason), interrupted: None, stdout: nothing(), stderr: nothing() }
    }
}
