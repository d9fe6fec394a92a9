//! What a case keeps in memory.
//!
//! The program sets up one of its cases in a process of its own and looks at how many pages this made resident. So the
//! figure is what the system has to give, with whatever the allocator and the growth of vectors add, and the timed runs
//! need no allocator that counts.

use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The bytes that the case `id` keeps; `None` where the system does not tell.
///
/// # Errors
/// If it cannot be set up in a process of its own.
pub(crate) fn bytes_of(id: &str) -> io::Result<Option<u64>> {
    let output = Command::new(env::current_exe()?).args(["--weigh", id]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{id} failed: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Prints how much memory the process has taken with `set_up`, or nothing where the system does not tell.
///
/// # Errors
/// Those of `set_up`.
pub(crate) fn weigh(set_up: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let before = resident();
    set_up()?;
    if let Some((before, after)) = before.zip(resident()) {
        println!("{}", after.saturating_sub(before));
    }
    Ok(())
}

/// Bytes of the pages of this process that are in memory.
fn resident() -> Option<u64> {
    parse(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_told_in_bytes() {
        let status = "Name:\tstagger-bench\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(parse(status), Some(1234 * 1024));
        assert_eq!(parse("Name:\tstagger-bench\n"), None);
    }
}
