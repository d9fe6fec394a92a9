use std::collections::HashMap;
use std::fs;

use rustix::process::Pid;

/// The descendants of a process, found by looking: for a command that shares our process group, where no one call
/// reaches them all.
///
/// A descendant stays known when its parent dies. Linux tells who is whose child; elsewhere nobody is found and only
/// the command itself can be signalled, as with `timeout --foreground`.
#[derive(Debug)]
pub(super) struct ProcessTree {
    members: HashMap<i32, StartTime>,
}

/// When a process started, in ticks since the machine did; with its number it names a process for good.
type StartTime = u64;

/// What `/proc/PID/stat` tells of a live process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    start: StartTime,
}

/// Whether a process group that the system still knows has nobody in it who lives: the dead stay in it until their
/// parent collects them, and the first process of a container often never does. Where that cannot be told: no.
pub(super) fn is_group_dead(group: Pid) -> bool {
    let processes = live_processes();
    !processes.is_empty() && !processes.iter().any(|p| p.group == group.as_raw_nonzero().get())
}

impl ProcessTree {
    pub(super) fn new() -> Self {
        Self { members: HashMap::new() }
    }

    /// Looks again, starting from `root`, as long as that lives, and everybody known.
    pub(super) fn refresh(&mut self, root: Option<Pid>) {
        self.update(root.map(|pid| pid.as_raw_nonzero().get()), &live_processes());
    }

    fn update(&mut self, root: Option<i32>, processes: &[Process]) {
        self.members.retain(|&pid, &mut start| processes.iter().any(|p| p.pid == pid && p.start == start));
        // Everyone is visited once more than the tree is deep.
        loop {
            let found = processes.iter().filter(|p| Some(p.parent) == root || self.members.contains_key(&p.parent));
            let new: Vec<&Process> = found.filter(|p| !self.members.contains_key(&p.pid)).collect();
            if new.is_empty() {
                return;
            }
            self.members.extend(new.into_iter().map(|p| (p.pid, p.start)));
        }
    }

    /// Everybody known, the root excepted.
    pub(super) fn members(&self) -> impl Iterator<Item = Pid> {
        self.members.keys().filter_map(|&pid| Pid::from_raw(pid))
    }
}

/// Everybody who lives; nobody where there is no `/proc` as Linux has it.
fn live_processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// `None` for what is dead and only waits to be collected.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The name stands in parentheses and may hold anything, also spaces and parentheses.
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
    fn descendants_stay_known_when_their_parent_dies() {
        let mut tree = ProcessTree::new();
        tree.update(Some(10), &[process(12, 11), process(11, 10), process(10, 1), process(20, 1)]);
        assert_eq!(members(&tree), [11, 12]);
        tree.update(None, &[process(12, 1), process(13, 12), process(20, 1)]);
        assert_eq!(members(&tree), [12, 13]);
    }

    #[test]
    fn a_number_that_was_given_to_another_process_is_forgotten() {
        let mut tree = ProcessTree::new();
        tree.update(Some(10), &[process(11, 10)]);
        tree.update(None, &[Process { start: 99, ..process(11, 1) }]);
        assert_eq!(members(&tree), [0_i32; 0]);
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_is_no_obstacle() {
        let stat = "7 (a) b (c) S 3 5 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse(7, stat), Some(Process { pid: 7, parent: 3, group: 5, start: 4242 }));
        assert_eq!(parse(7, &stat.replace(") S", ") Z")), None);
    }
}
