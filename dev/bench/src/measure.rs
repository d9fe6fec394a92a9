//! Measures cases: first the times, in turns, then the counts and the memory.

use std::io;

use crate::case::{Case, Run, Table};
use crate::findings::Row;
use crate::pending::BULK;
use crate::timing::{self, Effort, Timing, Turns};
use crate::{callgrind, memory};

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
    // Once a runtime has paused its clock, tokio reads every clock of the process behind a mutex. Cases that pause their
    // clock therefore come after all others.
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
            row.bytes_each = memory::bytes_of(&case.id())?.map(|bytes| bytes as f64 / entries as f64);
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

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
}
