use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpid};

use super::process_tree::{ProcessTree, is_group_dead};
use super::status::AttemptStatus;

/// A running command and everything it has started.
///
/// However it is dropped, nothing of it is left running unless [`poll`](Self::poll) has seen its end.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    target: SignalTarget,
    /// The command itself has ended and was reaped.
    reaped: bool,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// Whom a signal for the command reaches.
#[derive(Debug)]
enum SignalTarget {
    /// The process group that it leads.
    Group,
    /// It shares stagger's own group, which may hold others (`stagger run … | less`): its descendants, one by one.
    Tree(ProcessTree),
}

/// Which process group the command runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessGroup {
    /// One of its own, so that all of it can be signalled.
    Own,
    /// Stagger's, so that it may read the terminal: a group in the background that does is stopped.
    Shared,
}

/// What the system tells about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    /// Nothing new.
    Running,
    /// It was stopped by this signal.
    Stopped(i32),
    /// It has ended.
    Ended(AttemptStatus),
}

impl Child {
    /// # Errors
    /// NoRetryReason the command cannot be run.
    pub(super) fn spawn(command: &mut Command, grouping: ProcessGroup) -> io::Result<Self> {
        if grouping == ProcessGroup::Own {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let target = match grouping {
            ProcessGroup::Own => SignalTarget::Group,
            ProcessGroup::Shared => SignalTarget::Tree(ProcessTree::new()),
        };
        let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        Ok(Self { pid, target, reaped: false, stdout, stderr })
    }

    /// What has become of the command since the last poll. It is reaped when it has ended.
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
            // The system knows no third way to end.
            (None, None) => AttemptStatus::Exit(u8::MAX),
        }))
    }

    /// Sends `signal` to everything that belongs to the command. That nobody is left is no failure.
    ///
    /// # Errors
    /// Some of it may not be signalled by this user (`sudo`).
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

    /// Whether the command and all that it has started are gone.
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

    /// Leaves it to itself: it cannot be killed, and we must go.
    pub(super) fn abandon(&mut self) {
        self.reaped = true;
    }

    pub(super) fn shares_our_group(&self) -> bool {
        matches!(self.target, SignalTarget::Tree(_))
    }
}

impl Drop for Child {
    /// Only a failure of our own comes here with a command that still runs.
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
