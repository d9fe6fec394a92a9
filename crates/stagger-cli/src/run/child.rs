use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpid};

use super::process_tree::{ProcessTree, is_group_dead};
use super::status::AttemptStatus;

/// A running command and its descendants.
///
/// Dropping it kills the command and its descendants, unless [`poll`](Self::poll) has reported its end.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    target: SignalTarget,
    /// Whether the command itself has ended and was reaped.
    reaped: bool,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// The processes that a signal for the command is sent to.
#[derive(Debug)]
enum SignalTarget {
    /// The process group that the command leads.
    Group,
    /// The command and each of its descendants: it shares stagger's process group, which may contain unrelated processes
    /// (`stagger run … | less`).
    Tree(ProcessTree),
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

impl Child {
    pub(super) fn spawn(command: &mut Command, group: ProcessGroup) -> io::Result<Self> {
        if group == ProcessGroup::Own {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let target = match group {
            ProcessGroup::Own => SignalTarget::Group,
            ProcessGroup::Shared => SignalTarget::Tree(ProcessTree::default()),
        };
        let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        Ok(Self { pid, target, reaped: false, stdout, stderr })
    }

    /// Returns the change of state since the last poll. Reaps the command when it has ended.
    pub(super) fn poll(&mut self) -> io::Result<ChildState> {
        if self.reaped {
            return Ok(ChildState::Running);
        }
        let Some((_, status)) = waitpid(Some(self.pid), WaitOptions::NOHANG | WaitOptions::UNTRACED)? else {
            return Ok(ChildState::Running);
        };
        if let Some(signal) = status.stopping_signal() {
            return Ok(ChildState::Stopped(signal));
        }
        self.reaped = true;
        Ok(ChildState::Ended(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => AttemptStatus::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => AttemptStatus::Signal(signal),
            // Unreachable: a reported process has stopped, exited or been killed.
            (None, None) => AttemptStatus::Exit(u8::MAX),
        }))
    }

    /// Sends `signal` to the command and its descendants. Succeeds if none are left; fails if this user may not signal
    /// one of them (`sudo`).
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match &mut self.target {
            SignalTarget::Group => ignore_missing(kill_process_group(self.pid, signal)),
            SignalTarget::Tree(tree) => {
                let root = (!self.reaped).then_some(self.pid);
                tree.refresh(root);
                let reached = root.into_iter().chain(tree.members());
                reached.map(|pid| ignore_missing(kill_process(pid, signal))).fold(Ok(()), Result::and)
            }
        }
    }

    /// Returns whether the command and all its descendants are gone.
    pub(super) fn is_gone(&mut self) -> bool {
        self.reaped
            && match &mut self.target {
                SignalTarget::Group => test_kill_process_group(self.pid) == Err(Errno::SRCH) || is_group_dead(self.pid),
                SignalTarget::Tree(tree) => {
                    tree.refresh(None);
                    tree.members().next().is_none()
                }
            }
    }

    /// Stops tracking a command that cannot be killed, so that dropping it does not block.
    pub(super) fn abandon(&mut self) {
        self.reaped = true;
    }

    /// Returns whether the command runs in stagger's own process group.
    pub(super) fn shares_our_group(&self) -> bool {
        matches!(self.target, SignalTarget::Tree(_))
    }
}

impl Drop for Child {
    /// Kills a command that is still running, which happens only if stagger itself fails.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.signal(Signal::KILL);
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
