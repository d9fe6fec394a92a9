//! Descendants of the command whose parents have died.

use std::collections::HashMap;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

/// The descendants of a command, found by scanning `/proc`, also those in other process groups and sessions.
///
/// A descendant stays in the tree when its parent dies. If this process adopts orphans, no descendant escapes from the
/// tree: each is a child of this process or of another descendant. Without `/proc` as on Linux the tree is empty, and
/// only the command itself and its process group can be signaled.
#[derive(Debug)]
pub(super) struct ProcessTree {
    /// The PID of this process, if it adopts orphans.
    adopter: Option<i32>,
    /// The children that this process had before it started the command.
    others: Vec<Process>,
    members: HashMap<i32, Process>,
}

/// Start time of a process in clock ticks since boot; together with the PID it identifies a process uniquely.
type StartTime = u64;

/// A live process, as read from `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    start: StartTime,
}

/// Returns whether all processes of an existing process group are zombies: a zombie stays in its group until its parent
/// reaps it, which PID 1 of a container often never does. Returns `false` without `/proc`.
pub(super) fn is_group_dead(group: Pid) -> bool {
    let processes = live_processes();
    !processes.is_empty() && !processes.iter().any(|p| p.group == raw(group))
}

/// Returns whether a process is an ancestor of this one; `None` if the system does not tell.
pub(super) fn is_ancestor(pid: Pid) -> Option<bool> {
    // Deeper than any real tree; PIDs that are reused during the walk could form a loop.
    const MAX_DEPTH: usize = 1_000;
    let mut child = raw(getpid());
    for _ in 0..MAX_DEPTH {
        let parent = parent_of(child)?;
        if parent == raw(pid) {
            return Some(true);
        }
        // The parent of PID 1, and of a process whose parent is outside of this PID namespace.
        if parent == 0 {
            return Some(false);
        }
        child = parent;
    }
    None
}

fn parent_of(pid: i32) -> Option<i32> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|process| process.parent)
}

impl ProcessTree {
    /// Creates the tree of a command that is started next. Whatever descends from this process already is not part of
    /// it.
    pub(super) fn before_start(adopts_orphans: bool) -> Self {
        let adopter = if adopts_orphans { Some(raw(getpid())) } else { None };
        let mut others = Vec::new();
        if adopts_orphans && has_children() {
            others = live_processes().into_iter().filter(|p| Some(p.parent) == adopter).collect();
        }
        Self { adopter, others, members: HashMap::new() }
    }

    /// Rescans the processes for descendants of `command`, if it is alive, and of the known members.
    pub(super) fn refresh(&mut self, command: Option<Pid>) {
        self.update(command.map(raw), &live_processes());
    }

    fn update(&mut self, command: Option<i32>, processes: &[Process]) {
        self.members.retain(|_, known| processes.iter().any(|p| p.is(known)));
        // One pass for each level of the tree, and one that finds nothing.
        loop {
            let found = processes.iter().filter(|p| {
                let parent = Some(p.parent);
                parent == command || parent == self.adopter || self.members.contains_key(&p.parent)
            });
            let new: Vec<Process> = found
                .filter(|p| Some(p.pid) != command && !self.others.iter().any(|other| p.is(other)))
                .filter(|p| self.members.get(&p.pid) != Some(p))
                .copied()
                .collect();
            if new.is_empty() {
                return;
            }
            self.members.extend(new.into_iter().map(|p| (p.pid, p)));
        }
    }

    /// Returns the descendants found last, without the command.
    pub(super) fn members(&self) -> impl Iterator<Item = Pid> {
        self.members.keys().filter_map(|&pid| Pid::from_raw(pid))
    }

    /// Returns whether a descendant found last is in `group`; `true` if none was found, because the system may not
    /// tell.
    pub(super) fn may_have_member_in(&self, group: Pid) -> bool {
        self.members.is_empty() || self.members.values().any(|p| p.group == raw(group))
    }

    /// Returns the descendants found last that are outside of `group`.
    pub(super) fn members_outside(&self, group: Pid) -> impl Iterator<Item = Pid> {
        let outside = self.members.values().filter(move |p| p.group != raw(group));
        outside.filter_map(|p| Pid::from_raw(p.pid))
    }

    /// Returns whether it is known without a scan that the tree is empty: all descendants are children of this process
    /// or theirs, and it has none.
    pub(super) fn is_known_empty(&self) -> bool {
        self.adopter.is_some() && !has_children()
    }
}

impl Process {
    /// Returns whether both are the same process, whose parent and group may have changed.
    fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.start == other.start
    }
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Returns all live processes; empty without `/proc` as on Linux.
fn live_processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Parses a line of `/proc/PID/stat`; `None` for a zombie.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The name is in parentheses and may contain anything, including spaces and parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // proc(5): state is field 3, parent 4, group 5, start time 22.
    let start = fields.nth(22 - 6)?.parse().ok()?;
    if matches!(state, "Z" | "X") { None } else { Some(Process { pid, parent, group, start }) }
}

/// Maximum number of processes that one call reaps, so that a storm of them cannot hold up time limits and signals.
const MAX_REAPED: usize = 1024;

/// Makes this process the parent of each descendant whose own parent dies, as PID 1 is by nature; returns whether it
/// is. Otherwise, such a process becomes a child of PID 1, and nothing tells which command has started it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn adopt_orphans() -> bool {
    // The kernel only asks whether the argument is zero.
    rustix::process::set_child_subreaper(Some(getpid())).is_ok()
}

/// Returns `false`: on this system, only PID 1 can adopt processes.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn adopt_orphans() -> bool {
    getpid().is_init()
}

/// Reaps child processes that have ended, and passes each change of state to `changed`, also that of a process that has
/// stopped. Fails with `CHILD` if this process has no children.
pub(super) fn reap(mut changed: impl FnMut(Pid, WaitStatus)) -> Result<(), Errno> {
    for _ in 0..MAX_REAPED {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) => changed(pid, status),
            Ok(None) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    // There may be more, of which no further signal tells: wake the next wait.
    kill_process(getpid(), Signal::CHILD)
}

/// Returns whether this process has a child, ended or not.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::All, peek).err() != Some(Errno::CHILD)
}

/// Returns `true`: not every Unix can tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn has_children() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, group: 1, start: u64::from(pid.unsigned_abs()) }
    }

    fn members(tree: &ProcessTree) -> Vec<i32> {
        let mut pids: Vec<i32> = tree.members().map(|pid| pid.as_raw_nonzero().get()).collect();
        pids.sort_unstable();
        pids
    }

    fn tree(adopter: Option<i32>, others: &[Process]) -> ProcessTree {
        ProcessTree { adopter, others: others.to_vec(), members: HashMap::new() }
    }

    #[test]
    fn descendants_stay_in_the_tree_when_their_parent_dies() {
        let mut tree = tree(None, &[]);
        tree.update(Some(10), &[process(12, 11), process(11, 10), process(10, 1), process(20, 1)]);
        assert_eq!(members(&tree), [11, 12]);
        tree.update(None, &[process(12, 1), process(13, 12), process(20, 1)]);
        assert_eq!(members(&tree), [12, 13]);
    }

    #[test]
    fn a_reused_pid_is_removed_from_the_tree() {
        let mut tree = tree(None, &[]);
        tree.update(Some(10), &[process(11, 10)]);
        tree.update(None, &[Process { start: 99, ..process(11, 1) }]);
        assert_eq!(members(&tree), [0_i32; 0]);
    }

    #[test]
    fn adopted_orphans_are_in_the_tree_and_older_children_with_theirs_are_not() {
        let mut tree = tree(Some(5), &[process(6, 5)]);
        tree.update(Some(10), &[process(10, 5), process(6, 5), process(7, 6), process(21, 5), process(22, 21)]);
        assert_eq!(members(&tree), [21, 22]);
        // The PID of an older child was reused by a descendant.
        tree.update(None, &[Process { start: 99, ..process(6, 22) }, process(22, 5)]);
        assert_eq!(members(&tree), [6, 22]);
    }

    #[test]
    fn a_member_that_leaves_the_group_is_found_outside_of_it() {
        let mut tree = tree(Some(5), &[]);
        let group = Pid::from_raw(10).unwrap();
        tree.update(Some(10), &[Process { group: 10, ..process(11, 10) }]);
        assert_eq!((tree.members_outside(group).count(), tree.may_have_member_in(group)), (0, true));
        tree.update(Some(10), &[Process { group: 11, ..process(11, 10) }]);
        assert_eq!((tree.members_outside(group).count(), tree.may_have_member_in(group)), (1, false));
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_parsed() {
        let stat = "7 (a) b (c) S 3 5 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse(7, stat), Some(Process { pid: 7, parent: 3, group: 5, start: 4242 }));
        assert_eq!(parse(7, &stat.replace(") S", ") Z")), None);
    }
}
