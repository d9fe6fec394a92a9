use std::collections::HashMap;
use std::fs;

use rustix::process::Pid;

/// The descendants of a process, found by scanning `/proc`: for a command that shares our process group, where no single
/// call signals them all.
///
/// A descendant stays in the tree when its parent dies. Without `/proc` as on Linux the tree is empty, and only the
/// command itself can be signaled, as with `timeout --foreground`.
#[derive(Debug, Default)]
pub(super) struct ProcessTree {
    members: HashMap<i32, StartTime>,
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
    !processes.is_empty() && !processes.iter().any(|p| p.group == group.as_raw_nonzero().get())
}

impl ProcessTree {
    /// Rescans the processes for descendants of `root`, if it is alive, and of the known members.
    pub(super) fn refresh(&mut self, root: Option<Pid>) {
        self.update(root.map(|pid| pid.as_raw_nonzero().get()), &live_processes());
    }

    fn update(&mut self, root: Option<i32>, processes: &[Process]) {
        self.members.retain(|&pid, &mut start| processes.iter().any(|p| p.pid == pid && p.start == start));
        // One pass for each level of the tree, and one that finds nothing.
        loop {
            let found = processes.iter().filter(|p| Some(p.parent) == root || self.members.contains_key(&p.parent));
            let new: Vec<&Process> = found.filter(|p| !self.members.contains_key(&p.pid)).collect();
            if new.is_empty() {
                return;
            }
            self.members.extend(new.into_iter().map(|p| (p.pid, p.start)));
        }
    }

    /// Returns the known descendants, without the root.
    pub(super) fn members(&self) -> impl Iterator<Item = Pid> {
        self.members.keys().filter_map(|&pid| Pid::from_raw(pid))
    }
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
    (!matches!(state, "Z" | "X")).then_some(Process { pid, parent, group, start })
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

    #[test]
    fn descendants_stay_in_the_tree_when_their_parent_dies() {
        let mut tree = ProcessTree::default();
        tree.update(Some(10), &[process(12, 11), process(11, 10), process(10, 1), process(20, 1)]);
        assert_eq!(members(&tree), [11, 12]);
        tree.update(None, &[process(12, 1), process(13, 12), process(20, 1)]);
        assert_eq!(members(&tree), [12, 13]);
    }

    #[test]
    fn a_reused_pid_is_removed_from_the_tree() {
        let mut tree = ProcessTree::default();
        tree.update(Some(10), &[process(11, 10)]);
        tree.update(None, &[Process { start: 99, ..process(11, 1) }]);
        assert_eq!(members(&tree), [0_i32; 0]);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_parsed() {
        let stat = "7 (a) b (c) S 3 5 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse(7, stat), Some(Process { pid: 7, parent: 3, group: 5, start: 4242 }));
        assert_eq!(parse(7, &stat.replace(") S", ") Z")), None);
    }
}
