use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, test_kill_process_group, waitpid,
};

use super::process_tree::{ProcessTree, is_group_dead, reap};
use super::status::AttemptStatus;

/// A running command and its descendants.
///
/// Dropping it kills the command and its descendants, unless [`poll`](Self::poll) has reported its end.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    group: ProcessGroup,
    descendants: ProcessTree,
    /// Whether the command itself has ended and was reaped.
    reaped: bool,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// The process group in which the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessGroup {
    /// Its own, so that all its processes can be signaled at once.
    Own,
    /// Stagger's, so that it can read the terminal: a background group that does so is stopped.
    Shared,
}

/// The state of a command, as reported by `waitpid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    Running,
    Stopped(i32),
    Ended(AttemptStatus),
}

/// The processes that a signal is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The job: those that the terminal would signal, too.
    Job,
    /// Also the descendants in other process groups and sessions (`setsid`), and daemons.
    All,
}

impl Child {
    /// Starts the command. Processes that stagger has started before are not among its descendants.
    pub(super) fn spawn(command: &mut Command, group: ProcessGroup, adopts_orphans: bool) -> io::Result<Self> {
        if group == ProcessGroup::Own {
            command.process_group(0);
        }
        let descendants = ProcessTree::before_start(adopts_orphans);
        let mut child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).ok_or(Errno::SRCH)?;
        let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        Ok(Self { pid, group, descendants, reaped: false, stdout, stderr })
    }

    /// Returns the change of state since the last poll. Reaps the command when it has ended, and orphans that stagger
    /// has adopted.
    pub(super) fn poll(&mut self) -> io::Result<ChildState> {
        let mut state = ChildState::Running;
        let reaped = reap(|pid, status| {
            if pid == self.pid && !self.reaped {
                state = ChildState::from_wait(status);
                self.reaped = matches!(state, ChildState::Ended(_));
            }
        });
        match reaped {
            Err(Errno::CHILD) if self.reaped => Ok(state),
            reaped => reaped.map(|()| state).map_err(Into::into),
        }
    }

    /// Sends `signal` to the command and its descendants. Succeeds if none are left; fails if this user may not signal
    /// one of them (`sudo`).
    pub(super) fn signal(&mut self, signal: Signal, reach: Reach) -> io::Result<()> {
        let root = if self.reaped { None } else { Some(self.pid) };
        if reach == Reach::All || self.group == ProcessGroup::Shared {
            if self.reaped && self.descendants.is_known_empty() {
                return Ok(());
            }
            self.descendants.refresh(root);
        }
        let send = |pid| ignore_missing(kill_process(pid, signal));
        match (self.group, reach) {
            (ProcessGroup::Own, Reach::Job) => ignore_missing(kill_process_group(self.pid, signal)),
            (ProcessGroup::Own, Reach::All) => {
                // The ID of a group whose last process was reaped may belong to another one by now.
                let is_left = root.is_some() || self.descendants.may_have_member_in(self.pid);
                let job = if is_left { ignore_missing(kill_process_group(self.pid, signal)) } else { Ok(()) };
                self.descendants.members_outside(self.pid).map(send).fold(job, Result::and)
            }
            // It shares stagger's process group, which may contain unrelated processes (`stagger run … | less`).
            (ProcessGroup::Shared, _) => {
                root.into_iter().chain(self.descendants.members()).map(send).fold(Ok(()), Result::and)
            }
        }
    }

    /// Returns whether the command and all its descendants are gone.
    pub(super) fn is_gone(&mut self) -> bool {
        if !self.reaped {
            return false;
        }
        if self.descendants.is_known_empty() {
            return true;
        }
        // Those that have ended must not outlive stagger as zombies. Fails if there are none.
        let _ = reap(|_, _| {});
        self.descendants.refresh(None);
        self.descendants.members().next().is_none()
            && match self.group {
                ProcessGroup::Own => test_kill_process_group(self.pid) == Err(Errno::SRCH) || is_group_dead(self.pid),
                ProcessGroup::Shared => true,
            }
    }

    /// Stops tracking a command that cannot be killed, so that dropping it does not block.
    pub(super) fn abandon(&mut self) {
        self.reaped = true;
    }

    /// Returns whether the command runs in stagger's own process group.
    pub(super) fn shares_our_group(&self) -> bool {
        self.group == ProcessGroup::Shared
    }
}

impl ChildState {
    fn from_wait(status: WaitStatus) -> Self {
        if let Some(signal) = status.stopping_signal() {
            return Self::Stopped(signal);
        }
        Self::Ended(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => AttemptStatus::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => AttemptStatus::Signal(signal),
            // Unreachable: a reported process has stopped, exited or been killed.
            (None, None) => AttemptStatus::Exit(u8::MAX),
        })
    }
}

impl Drop for Child {
    /// Kills a command that is still running, which happens only if stagger itself fails.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.signal(Signal::KILL, Reach::All);
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

fn ignore_missing(sent: Result<(), Errno>) -> io::Result<()> {
    match sent {
        Err(Errno::SRCH) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
