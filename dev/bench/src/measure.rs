//! Measures cases: first the times, in turns, then the counts and the memory.

use std::process::{Command, Stdio};
use std::{env, fs, io};

use crate::callgrind;
use crate::case::{Case, Run, Table};
use crate::findings::Row;
use crate::pending::BULK;
use crate::timing::{self, Effort, Timing, Turns};

/// Measures `cases` and prints its progress on standard error.
///
/// # Errors
/// If a case cannot be run under callgrind.
pub(crate) fn rows(cases: &[Case], effort: Effort, counting: bool) -> io::Result<Vec<Row>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Row> = cases.iter().map(Row::unmeasured).collect();
    eprintln!("measuring times …");
    // Once a runtime has paused its clock, tokio reads every clock of the process behind a mutex. Cases that pause
    // their clock therefore come after all others.
    for (index, timing) in timings(cases, |table| !table.pauses_clock(), Turns::Short, effort) {
        rows[index].timing = timing;
    }
    for (index, timing) in timings(cases, Table::is_shared, Turns::TwoThreads, effort) {
        rows[index].two_threads = timing;
    }
    for (index, timing) in timings(cases, |table| table.pauses_clock() && !table.is_in_bulk(), Turns::Short, effort) {
        rows[index].timing = timing;
    }
    for (index, timing) in timings(cases, Table::is_in_bulk, Turns::Fixed(BULK), effort) {
        rows[index].timing = timing;
    }
    if counting {
        count(cases, &mut rows)?;
    }
    for (row, case) in rows.iter_mut().zip(cases) {
        if let Run::Absent(why) = case.run {
            row.note = why;
        } else if let Some(entries) = case.entries {
            row.bytes_each = bytes_of(&case.id())?.map(|bytes| bytes as f64 / entries as f64);
        }
    }
    Ok(rows)
}

/// Times the cases of the selected tables; returns the index of each with its time.
fn timings(
    cases: &[Case],
    of: impl Fn(Table) -> bool,
    turns: Turns,
    effort: Effort,
) -> impl Iterator<Item = (usize, Option<Timing>)> {
    let (timed, runs): (Vec<_>, Vec<_>) = (cases.iter().enumerate())
        .filter(|(_, case)| of(case.table))
        .filter_map(|(index, case)| match case.run {
            Run::Work(run) | Run::Wait(run) => Some((index, run)),
            Run::Absent(_) => None,
        })
        .unzip();
    timed.into_iter().zip(timing::measure(&runs, turns, effort))
}

fn count(cases: &[Case], rows: &mut [Row]) -> io::Result<()> {
    if !callgrind::available() {
        eprintln!("valgrind is not installed: skipping instruction and allocation counts");
        return Ok(());
    }
    eprintln!("counting instructions under callgrind …");
    for (case, row) in cases.iter().zip(rows) {
        if matches!(case.run, Run::Work(_)) {
            row.counts = Some(callgrind::count(&case.id(), case.table.is_in_bulk().then_some(BULK))?);
        }
    }
    Ok(())
}

/// Runs a single case.
///
/// # Errors
/// If there is no such case.
pub(crate) fn run_one(cases: &[Case], id: &str, iterations: u64) -> io::Result<()> {
    let case = cases.iter().find(|case| case.id() == id);
    match case.map(|case| case.run) {
        Some(Run::Work(run) | Run::Wait(run)) => {
            run(iterations);
            Ok(())
        }
        Some(Run::Absent(_)) | None => Err(io::Error::other(format!("unknown case {id}"))),
    }
}

// The memory that a case keeps. The program sets up a case in a separate process and reads how much the resident
// set has grown. The figure therefore includes the overhead of the allocator and of growing vectors, and the timed
// runs need no counting allocator.

/// Returns the bytes that the case `id` keeps, or `None` if the system does not report them.
///
/// # Errors
/// If the case cannot be set up in a separate process.
fn bytes_of(id: &str) -> io::Result<Option<u64>> {
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

// The bytes that a retry future adds to the future that it drives.

/// The bytes added to a small future and to one of a kibibyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Sizes {
    /// Bytes added to a future of two words.
    pub(crate) small: isize,
    /// Bytes added to a future that holds a kibibyte across an await.
    pub(crate) large: isize,
}

impl Sizes {
    /// Computes the added bytes from a small and a large inner future, each with the retry future around it.
    pub(crate) const fn added<SmallInner, Small, LargeInner, Large>(
        small: (&SmallInner, &Small),
        large: (&LargeInner, &Large),
    ) -> Self {
        Self { small: added(small.0, small.1), large: added(large.0, large.1) }
    }
}

/// Computes the added bytes, which are signed because the compiler may overlap the two futures.
const fn added<Inner, Outer>(_inner: &Inner, _outer: &Outer) -> isize {
    size_of::<Outer>() as isize - size_of::<Inner>() as isize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::all_cases;
    use crate::case::{Run, Section};
    use crate::operation::THREE_FAILURES;

    #[test]
    fn case_ids_are_unique() {
        let cases = all_cases();
        let ids: HashSet<_> = cases.iter().map(|case| case.id()).collect();
        assert_eq!(ids.len(), cases.len());
    }

    #[test]
    fn every_case_runs_and_makes_all_attempts() {
        for case in all_cases() {
            let (Run::Work(run) | Run::Wait(run)) = case.run else { continue };
            let iterations = if case.table.section() == Section::D { 1 } else { 8 };
            run(iterations);
            assert!(THREE_FAILURES.is_at_start(), "{} stopped before the operation succeeded", case.id());
        }
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        let status = "Name:\tstagger-bench\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(parse(status), Some(1234 * 1024));
        assert_eq!(parse("Name:\tstagger-bench\n"), None);
    }
}
