//! From cases to rows: first all times, in turns, then the counts.

use std::io;

use crate::callgrind;
use crate::case::{Case, Run};
use crate::findings::Row;
use crate::timing::{self, Effort};

/// Times and counts `cases`; tells on standard error what it is doing.
///
/// # Errors
/// If a case cannot be run under callgrind.
pub(crate) fn rows(cases: &[Case], effort: Effort, counting: bool) -> io::Result<Vec<Row>> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<Row> = cases.iter().map(Row::blank).collect();
    eprintln!("timing, in turns …");
    // Once a runtime has paused its clock, tokio reads every clock of the process behind a mutex: the cases that pause
    // theirs come when the others are done.
    for pauses in [false, true] {
        let (timed, runs): (Vec<_>, Vec<_>) = (cases.iter().enumerate())
            .filter(|(_, case)| case.table.pauses_clock() == pauses)
            .filter_map(|(index, case)| match case.run {
                Run::Work(run) | Run::Wait(run) => Some((index, run)),
                Run::Absent(_) => None,
            })
            .unzip();
        for (index, timing) in timed.into_iter().zip(timing::measure(&runs, effort)) {
            rows[index].timing = Some(timing);
        }
    }
    if counting {
        count(cases, &mut rows)?;
    }
    for (row, case) in rows.iter_mut().zip(cases) {
        if let Run::Absent(why) = case.run {
            row.note = why;
        }
    }
    Ok(rows)
}

fn count(cases: &[Case], rows: &mut [Row]) -> io::Result<()> {
    if !callgrind::available() {
        eprintln!("valgrind cannot be run here: no instructions, no allocations");
        return Ok(());
    }
    eprintln!("counting instructions under callgrind …");
    for (case, row) in cases.iter().zip(rows) {
        if matches!(case.run, Run::Work(_)) {
            row.counts = Some(callgrind::count(&case.id())?);
        }
    }
    Ok(())
}

/// Runs one case and nothing else.
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
        Some(Run::Absent(_)) | None => Err(io::Error::other(format!("no case {id}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::all_cases;
    use crate::case::{Run, Section};
    use crate::operation::THREE_FAILURES;

    #[test]
    fn no_two_cases_have_the_same_name() {
        let cases = all_cases();
        let ids: HashSet<_> = cases.iter().map(|case| case.id()).collect();
        assert_eq!(ids.len(), cases.len());
    }

    #[test]
    fn every_case_runs_and_makes_all_its_attempts() {
        for case in all_cases() {
            let (Run::Work(run) | Run::Wait(run)) = case.run else { continue };
            let iterations = if case.table.section() == Section::D { 1 } else { 8 };
            run(iterations);
            assert!(THREE_FAILURES.starts_again(), "{} stopped before its operation succeeded", case.id());
        }
    }
}
