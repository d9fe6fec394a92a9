use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rustix::io::Result;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::running::is_true_within;

/// The environment variable that marks the descendants of one spawned program. A daemon that has started its own
/// session and whose parent has died is in none of our process groups and has no parent of ours, but keeps its
/// environment.
pub(crate) const TREE_VARIABLE: &str = "KIT_PROCESS_TREE";

/// Time that killed processes get to disappear: after SIGKILL, the kernel still has to free their memory.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// A spawned program and all its descendants.
///
/// Found by process group, session, parent and environment on systems with `/proc`; by process group only on others.
/// The root must not have been reaped, or its PID may belong to another process.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: Pid,
    mark: OsString,
}

/// A process that has outlived the program that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakedProcess {
    /// Process ID.
    pub id: i32,
    /// Command line, separated by spaces.
    pub command: String,
}

/// A live process, as read from `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// Start time; together with the PID it identifies a process uniquely, because PIDs are reused.
    started: u64,
}

impl ProcessTree {
    pub(crate) fn new(root: Pid, mark: OsString) -> Self {
        Self { root, mark }
    }

    /// Returns the live processes of the tree, without the root.
    pub(crate) fn leaked(&self) -> Vec<LeakedProcess> {
        let root = self.root.as_raw_nonzero().get();
        let members = self.members().into_iter().filter(|process| process.id != root);
        members.map(|process| LeakedProcess { id: process.id, command: command(process.id) }).collect()
    }

    /// Sends SIGKILL to every member, repeatedly until none are left: a process can fork between the scan and the
    /// signal.
    pub(crate) fn kill(&self) {
        // Scanned before the first kill: a process that is known only by its parent cannot be found after that.
        let mut members = self.members();
        // An error means that no process is left.
        let _ = kill_process_group(self.root, Signal::KILL);
        is_true_within(GONE_WITHIN, || {
            let found = self.members();
            members.retain(|member| member.is_alive() && !found.iter().any(|other| member.is(*other)));
            members.extend(found);
            for process in &members {
                // An error means that the process has exited meanwhile.
                let _ = process.signal(Signal::KILL);
            }
            members.is_empty()
        });
    }

    fn members(&self) -> Vec<Process> {
        let root = self.root.as_raw_nonzero().get();
        let (mut members, mut others): (Vec<_>, Vec<_>) = Process::all().into_iter().partition(|process| {
            [process.id, process.group, process.session].contains(&root) || self.is_marked(process.id)
        });
        // Children of members are members. A child can have a lower PID than its parent, so repeat until nothing
        // changes.
        loop {
            let (found, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|process| {
                process.parent == root || members.iter().any(|member| member.id == process.parent)
            });
            if found.is_empty() {
                return members;
            }
            members.extend(found);
            others = rest;
        }
    }

    fn is_marked(&self, id: i32) -> bool {
        let wanted = [TREE_VARIABLE.as_bytes(), b"=", self.mark.as_encoded_bytes()].concat();
        fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == wanted))
    }
}

impl fmt::Display for LeakedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.command)
    }
}

impl Process {
    fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries.flatten().filter_map(|entry| Self::read(&entry.path())).collect()
    }

    fn read(directory: &Path) -> Option<Self> {
        let id = directory.file_name()?.to_str()?.parse().ok()?;
        Self::parse(id, &fs::read_to_string(directory.join("stat")).ok()?)
    }

    /// Parses `/proc/PID/stat`; `None` for a zombie, which only its parent can reap.
    fn parse(id: i32, stat: &str) -> Option<Self> {
        // proc(5): the command is in parentheses and may itself contain parentheses and spaces.
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session) = (number()?, number()?, number()?);
        // Field 22; the session was field 6.
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { id, parent, group, session, started })
    }

    /// Returns whether both are the same process; its parent, group and session can change.
    fn is(self, other: Self) -> bool {
        (self.id, self.started) == (other.id, other.started)
    }

    fn is_alive(self) -> bool {
        Self::read(Path::new(&format!("/proc/{}", self.id))).is_some_and(|now| now.is(self))
    }

    /// Sends a signal by pidfd, so that a process that has reused the PID meanwhile is not signaled.
    #[cfg(target_os = "linux")]
    fn signal(self, signal: Signal) -> Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

        let id = Pid::from_raw(self.id).ok_or(rustix::io::Errno::SRCH)?;
        let handle = pidfd_open(id, PidfdFlags::empty())?;
        if self.is_alive() { pidfd_send_signal(handle, signal) } else { Ok(()) }
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(self, signal: Signal) -> Result<()> {
        rustix::process::kill_process(Pid::from_raw(self.id).ok_or(rustix::io::Errno::SRCH)?, signal)
    }
}

fn command(id: i32) -> String {
    let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments).replace('\0', " ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_and_spaces_is_parsed() {
        let line = "77 (a ) b (c) S 5 70 60 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 0 0";
        let read = Process { id: 77, parent: 5, group: 70, session: 60, started: 9876 };
        assert_eq!(Process::parse(77, line), Some(read));
    }

    #[test]
    fn zombies_are_ignored() {
        assert_eq!(Process::parse(7, "7 (x) Z 5 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9876 0 0"), None);
    }
}
