use core::fmt;
use core::time::Duration;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rustix::io::Result;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::poll::poll_until;

/// The variable that marks the descendants of one spawned program, wherever they hide: a process
/// that starts a session of its own and whose parent has died is in no group and under no parent of
/// ours, but it has kept its environment.
pub(crate) const TREE_VARIABLE: &str = "KIT_PROCESS_TREE";

/// How long the killed are given to be gone. SIGKILL is at once, but the kernel has pages to free.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Everything that one spawned program is or has started.
///
/// Found by process group, session, parent and environment on systems with a `/proc`; by process
/// group alone elsewhere. The root must not have been reaped, or its number could mean somebody
/// else.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    root: Pid,
    mark: OsString,
}

/// A process that outlived the program that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakedProcess {
    /// Its process id.
    pub id: i32,
    /// Its arguments, separated by spaces.
    pub command: String,
}

/// One live process, as `/proc/N/stat` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// With the id, this names one process for ever: ids come back, start times do not.
    started: u64,
}

impl ProcessTree {
    pub(crate) fn new(root: Pid, mark: OsString) -> Self {
        Self { root, mark }
    }

    /// Who of the family is alive, apart from the root.
    pub(crate) fn leaked(&self) -> Vec<LeakedProcess> {
        let root = self.root.as_raw_nonzero().get();
        let members = self.members().into_iter().filter(|process| process.id != root);
        members.map(|process| LeakedProcess { id: process.id, command: command(process.id) }).collect()
    }

    /// SIGKILL to every member, again and again until none is left: between looking and killing,
    /// the not yet killed can fork.
    pub(crate) fn kill(&self) {
        // Looked up before anybody dies: whoever is known by their parent alone is unknown after that.
        let mut members = self.members();
        // An error means that there is nobody left to kill.
        let _ = kill_process_group(self.root, Signal::KILL);
        poll_until(GONE_WITHIN, || {
            let found = self.members();
            members.retain(|member| member.is_alive() && !found.iter().any(|other| member.is(*other)));
            members.extend(found);
            for process in &members {
                // Gone meanwhile is as good as killed.
                let _ = process.signal(Signal::KILL);
            }
            members.is_empty().then_some(())
        });
    }

    fn members(&self) -> Vec<Process> {
        let root = self.root.as_raw_nonzero().get();
        let (mut members, mut others): (Vec<_>, Vec<_>) = Process::all().into_iter().partition(|process| {
            [process.id, process.group, process.session].contains(&root) || self.is_marked(process.id)
        });
        // Children of members are members; a child can have a lower number than its parent, so
        // until nothing changes.
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

    /// `None` for the dead: a zombie does nothing any more, and only its parent can take it away.
    fn parse(id: i32, stat: &str) -> Option<Self> {
        // proc(5): the command stands in brackets and may itself hold brackets and spaces.
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

    /// Parent, group and session change in a life.
    fn is(self, other: Self) -> bool {
        (self.id, self.started) == (other.id, other.started)
    }

    fn is_alive(self) -> bool {
        Self::read(Path::new(&format!("/proc/{}", self.id))).is_some_and(|now| now.is(self))
    }

    /// By descriptor, so that a process that took over the number meanwhile is left alone.
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
    fn stat_is_read_even_when_the_command_has_brackets_and_spaces() {
        let line = "77 (a ) b (c) S 5 70 60 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 0 0";
        let read = Process { id: 77, parent: 5, group: 70, session: 60, started: 9876 };
        assert_eq!(Process::parse(77, line), Some(read));
    }

    #[test]
    fn zombies_do_not_count() {
        assert_eq!(Process::parse(7, "7 (x) Z 5 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9876 0 0"), None);
    }
}
