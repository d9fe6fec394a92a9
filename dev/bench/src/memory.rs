//! The memory that a case keeps.
//!
//! The program sets up a case in a separate process and reads how much the resident set has grown. The figure therefore
//! includes the overhead of the allocator and of growing vectors, and the timed runs need no counting allocator.

use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Returns the bytes that the case `id` keeps, or `None` if the system does not report them.
///
/// # Errors
/// If the case cannot be set up in a separate process.
pub(crate) fn bytes_of(id: &str) -> io::Result<Option<u64>> {
    let output = Command::new(env::current_exe()?).args(["--measure-memory", id]).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{id} failed: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// Prints how many bytes of memory `set_up` takes, or nothing if the system does not report them.
///
/// # Errors
/// Returns the error of `set_up`.
pub(crate) fn print_usage_of(set_up: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let before = resident();
    set_up()?;
    if let Some((before, after)) = before.zip(resident()) {
        println!("{}", after.saturating_sub(before));
    }
    Ok(())
}

/// Returns the size of the resident set in bytes.
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
    fn resident_memory_is_read_in_bytes() {
        let status = "Name:\tstagger-bench\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(parse(status), Some(1234 * 1024));
        assert_eq!(parse("Name:\tstagger-bench\n"), None);
    }
}
