//! Instructions and allocations per operation, counted by callgrind.
//!
//! The program runs a case in a separate process under valgrind, once with `N` and once with `2N` iterations: the
//! difference divided by `N` is one operation, and the cost of start-up cancels out. The same profile has the number of
//! calls to the allocator, so the timed runs need no counting allocator.
//!
//! Two caveats: a clock read is a system call here (valgrind hides the vDSO) and counts as little more than one
//! instruction, and work in the kernel is not counted.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Iterations of the shorter run: enough that one-off costs (a first allocation, the initialization of a thread-local)
/// become negligible even where they do not cancel out.
const ITERATIONS: u64 = 4096;

/// The functions of the C allocator that allocate memory.
const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"];

/// Counts per operation.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Counts {
    /// Instructions executed in user space.
    pub(crate) instructions: f64,
    /// Calls that allocated memory.
    pub(crate) allocations: f64,
}

/// Returns whether valgrind can be run.
pub(crate) fn available() -> bool {
    Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Counts the instructions and allocations of one operation of the case `id`. `iterations` overrides the default number
/// of iterations.
pub(crate) fn count(id: &str, iterations: Option<u64>) -> io::Result<Counts> {
    let iterations = iterations.unwrap_or(ITERATIONS);
    let directory = tempfile::tempdir()?;
    let once = profile(id, iterations, directory.path())?;
    let twice = profile(id, 2 * iterations, directory.path())?;
    let per_operation = |once: u64, twice: u64| (twice as f64 - once as f64) / iterations as f64;
    Ok(Counts {
        instructions: per_operation(once.instructions, twice.instructions),
        allocations: per_operation(once.allocations, twice.allocations),
    })
}

/// Totals of one process.
#[derive(Debug, PartialEq, Eq)]
struct Totals {
    instructions: u64,
    allocations: u64,
}

fn profile(id: &str, iterations: u64, directory: &Path) -> io::Result<Totals> {
    let out = directory.join(iterations.to_string());
    let mut option = OsStr::new("--callgrind-out-file=").to_owned();
    option.push(&out);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no"])
        .arg(option)
        .arg(env::current_exe()?)
        .args(["--run", id, "--iterations", &iterations.to_string()])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{id} failed under callgrind: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    parse(&fs::read_to_string(out)?).ok_or_else(|| io::Error::other("the profile of callgrind has no totals"))
}

/// Reads the totals of a profile: the line `totals:`, and each `calls=` below a `cfn=` that names an allocator.
fn parse(profile: &str) -> Option<Totals> {
    let mut totals = Totals {
        instructions: profile.lines().find_map(|line| {
            let line = line.strip_prefix("totals:")?;
            line.split_whitespace().next()?.parse().ok()
        })?,
        allocations: 0,
    };
    let mut callee = "";
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            callee = name;
        } else if let Some(calls) = line.strip_prefix("calls=")
            && ALLOCATORS.contains(&callee)
        {
            totals.allocations += calls.split_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
# callgrind format
events: Ir
fn=main
0 12
cfi=malloc.c
cfn=malloc
calls=3 0
0 300
cfn=free
calls=3 0
0 90
fn=other
cfn=realloc
calls=2 0
0 80

totals: 482
";

    #[test]
    fn totals_and_allocator_calls_are_read_from_a_profile() {
        let want = Totals { instructions: 482, allocations: 5 };
        assert_eq!(parse(PROFILE), Some(want));
    }

    #[test]
    fn a_profile_without_totals_is_rejected() {
        assert_eq!(parse("events: Ir\nfn=main\n0 12\n"), None);
    }
}
