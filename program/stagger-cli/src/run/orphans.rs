//! Descendants of the command whose parents have died.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

/// Maximum number of processes that one call reaps, so that a storm of them cannot hold up time limits and signals.
const MAX_REAPED: usize = 1024;

/// Makes this process the parent of each descendant whose own parent dies, as PID 1 is by nature; returns whether it is.
/// Otherwise, such a process becomes a child of PID 1, and nothing tells which command has started it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn adopt() -> bool {
    // The kernel only asks whether the argument is zero.
    rustix::process::set_child_subreaper(Some(getpid())).is_ok()
}

/// Returns `false`: on this system, only PID 1 can adopt processes.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn adopt() -> bool {
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
pub(super) fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::All, peek).err() != Some(Errno::CHILD)
}

/// Returns `true`: not every Unix can tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn has_children() -> bool {
    true
}
