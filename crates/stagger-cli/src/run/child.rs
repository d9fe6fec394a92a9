use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpid};

use super::ended::Ended;
use super::processes::{Tree, is_dead_group};

/// A running command and everything it has started.
///
/// However it is dropped, nothing of it is left running unless [`look`](Self::look) has seen its end.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    reach: Reach,
    /// The command itself has ended and was collected.
    collected: bool,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// Whom a signal for the command reaches.
#[derive(Debug)]
enum Reach {
    /// The process group that it leads.
    Group,
    /// It shares stagger's own group, which may hold others (`stagger run … | less`): its descendants, one by one.
    Tree(Tree),
}

/// Which process group the command runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grouping {
    /// One of its own, so that all of it can be signalled.
    Own,
    /// Stagger's, so that it may read the terminal: a group in the background that does is stopped.
    Shared,
}

/// What the system tells about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing new.
    Running,
    /// It was stopped by this signal.
    Stopped(i32),
    /// It has ended.
    Ended(Ended),
}

impl Child {
    /// # Errors
    /// Why the command cannot be run.
    pub(super) fn spawn(command: &mut Command, grouping: Grouping) -> io::Result<Self> {
        if grouping == Grouping::Own {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let reach = match grouping {
            Grouping::Own => Reach::Group,
            Grouping::Shared => Reach::Tree(Tree::new()),
        };
        let (stdout, stderr) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        Ok(Self { pid, reach, collected: false, stdout, stderr })
    }

    /// What has become of the command since the last look. It is collected when it has ended.
    pub(super) fn look(&mut self) -> io::Result<Sight> {
        if self.collected {
            return Ok(Sight::Running);
        }
        let Some((_, status)) = waitpid(Some(self.pid), WaitOptions::NOHANG | WaitOptions::UNTRACED)? else {
            return Ok(Sight::Running);
        };
        if let Some(signal) = status.stopping_signal() {
            return Ok(Sight::Stopped(signal));
        }
        self.collected = true;
        Ok(Sight::Ended(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ended::Exit(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => Ended::Signal(signal),
            // The system knows no third way to end.
            (None, None) => Ended::Exit(u8::MAX),
        }))
    }

    /// Sends `signal` to everything that belongs to the command. That nobody is left is no failure.
    ///
    /// # Errors
    /// Some of it may not be signalled by this user (`sudo`).
    pub(super) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match &mut self.reach {
            Reach::Group => unless_gone(kill_process_group(self.pid, signal)),
            Reach::Tree(tree) => {
                let root = (!self.collected).then_some(self.pid);
                tree.refresh(root);
                let reached = root.into_iter().chain(tree.members());
                reached.map(|pid| unless_gone(kill_process(pid, signal))).fold(Ok(()), Result::and)
            }
        }
    }

    /// Whether the command and all that it has started are gone.
    pub(super) fn is_gone(&mut self) -> bool {
        self.collected
            && match &mut self.reach {
                Reach::Group => test_kill_process_group(self.pid) == Err(Errno::SRCH) || is_dead_group(self.pid),
                Reach::Tree(tree) => {
                    tree.refresh(None);
                    tree.members().next().is_none()
                }
            }
    }

    /// Leaves it to itself: it cannot be killed, and we must go.
    pub(super) fn leave(&mut self) {
        self.collected = true;
    }

    pub(super) fn shares_our_group(&self) -> bool {
        matches!(self.reach, Reach::Tree(_))
    }
}

impl Drop for Child {
    /// Only a failure of our own comes here with a command that still runs.
    fn drop(&mut self) {
        if !self.collected {
            let _ = self.signal(Signal::KILL);
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

fn unless_gone(sent: Result<(), Errno>) -> io::Result<()> {
    match sent {
        Err(Errno::SRCH) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
