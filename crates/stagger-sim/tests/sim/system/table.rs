//! Rows of published cells, and how figures are compared with them.

use stagger_core::Seed;
use stagger_sim::outage::Verdict;
use stagger_sim::system::{System, SystemFigures};
use stagger_sim::{Progress, Sweep};

use crate::sim::reference::moments;

/// A published cell: number of runs in each state at the horizon, the mean time to recover, attempts per request, the
/// share of requests that were served, and that of the last ten windows. Standard errors are in brackets.
pub(super) type Row = (u32, &'static str, &'static str, &'static str, &'static str, &'static str);

/// A mean and its standard error.
type Mean = (f64, f64);

fn mean(text: &str) -> Option<Mean> {
    let mut words = text.split_whitespace();
    let mean = words.next()?.parse().ok()?;
    let error = words.next().map_or("0", |error| error.trim_matches(['(', ')']));
    Some((mean, error.parse().unwrap()))
}

/// Returns the number of runs of a kind in `28 never fell, 36 recovered`.
fn count(verdicts: &str, kind: &str) -> f64 {
    let listed = verdicts.split(';').next().unwrap();
    let found = listed.split(',').find_map(|part| part.trim().strip_suffix(kind)?.trim().parse().ok());
    found.unwrap_or(0.0)
}

pub(super) fn runs(system: &System, seeds: u64) -> Vec<SystemFigures> {
    let seeds: Vec<_> = (100..100 + seeds).map(Seed::new).collect();
    let runs = Sweep::new()
        .run(&[()], &seeds, &Progress::new(), |(), seed, progress| system.run_with_progress(seed, progress));
    runs.into_iter().flatten().flatten().collect()
}

/// Checks the mean of runs against a published one: within four standard errors of their difference, `slack`, and the
/// rounding of the printed figure.
fn check_mean(
    what: &str,
    values: impl IntoIterator<Item = f64>,
    (want, error): Mean,
    slack: f64,
    problems: &mut Vec<String>,
) {
    let values: Vec<_> = values.into_iter().collect();
    let (got, deviation) = moments(values.iter().copied());
    let own = deviation / (values.len() as f64).sqrt();
    let chance = 4.0 * error.hypot(own);
    if (got - want).abs() > chance + slack {
        problems.push(format!("{what} {got:.4} ({own:.1e}), expected {want} ({error})"));
    }
}

/// Compares runs of a system with a published cell, and returns what differs.
fn differences(runs: &[SystemFigures], row: Row) -> Vec<String> {
    let (cell, verdicts, recovery, attempts, success, at_end) = row;
    let mut problems = Vec::new();
    let kinds: [(&str, fn(Verdict) -> bool); 4] = [
        ("never fell", |verdict| verdict == Verdict::NeverFell),
        ("recovered", |verdict| matches!(verdict, Verdict::Recovered { .. })),
        ("relapsed", |verdict| matches!(verdict, Verdict::Relapsed { .. })),
        ("down", |verdict| matches!(verdict, Verdict::StillDown { .. })),
    ];
    let theirs: f64 = kinds.iter().map(|(kind, _)| count(verdicts, kind)).sum();
    let ours = runs.len() as f64;
    for (kind, is) in kinds {
        let got = runs.iter().filter(|run| is(run.state_at_horizon())).count() as f64;
        check_share(kind, [got, ours], [count(verdicts, kind), theirs], &mut problems);
    }
    if let Some(want) = mean(recovery) {
        let recovered: Vec<_> =
            runs.iter().filter(|run| matches!(run.state_at_horizon(), Verdict::Recovered { .. })).collect();
        if recovered.len() > 2 {
            let times = recovered.iter().filter_map(|run| run.recovery()).map(|time| time.as_secs_f64());
            check_mean("recovered after", times, want, 0.5 * runs[0].window().as_secs_f64() + 0.06, &mut problems);
        }
    }
    check_attempts(attempts, mean(success).unwrap().1, runs, SystemFigures::attempts_per_request, &mut problems);
    check_mean("success", runs.iter().map(SystemFigures::success_ratio), mean(success).unwrap(), 0.0001, &mut problems);
    let finals = runs.iter().map(SystemFigures::final_success_ratio);
    if let Some(want) = mean(at_end) {
        check_mean("at the end", finals, want, 0.0006, &mut problems);
    }
    check_first_bad_window(runs, verdicts, &mut problems);
    for run in runs {
        // A verdict and what is served in the end say the same, at any seed, unless the system fell or rose just
        // before.
        let served = run.final_success_ratio();
        let state = run.state_at_horizon();
        if state.is_up() && served < 0.5 || state.is_down() && served > 0.99 {
            problems.push(format!("{state:?}, but {served} are served at the end"));
        }
    }
    problems.into_iter().map(|problem| format!("cell {cell}: {problem}")).collect()
}

/// Compares attempts per request and edge: `1.07 / 1.13 / 1.19`.
fn check_attempts(
    texts: &str,
    least_error: f64,
    runs: &[SystemFigures],
    attempts: impl Fn(&SystemFigures, usize) -> f64,
    problems: &mut Vec<String>,
) {
    for (edge, text) in texts.split('/').map(str::trim).enumerate() {
        let digits = text.split(' ').next().unwrap().split('.').nth(1).map_or(3, str::len);
        let (want, error) = mean(text).unwrap();
        // Without a standard error, it is taken to be ours, or that of their share of served requests: a storm that
        // lasts longer changes both.
        let values: Vec<_> = runs.iter().map(|run| attempts(run, edge)).collect();
        let own = moments(values.iter().copied()).1 / (values.len() as f64).sqrt();
        let error = if text.contains('(') { error } else { own.max(least_error) };
        check_mean("attempts", values, (want, error), 0.51 * 0.1_f64.powi(digits as i32), problems);
    }
}

/// Compares runs of a chain with a published cell, which also has attempts and successes of the requests during the
/// fault.
pub(super) fn chain_differences(runs: &[SystemFigures], row: Row, (attempts, success): (&str, &str)) -> Vec<String> {
    let mut problems = Vec::new();
    check_attempts(
        attempts,
        mean(success).unwrap().1,
        runs,
        SystemFigures::attempts_per_request_during_fault,
        &mut problems,
    );
    let ratios = runs.iter().map(SystemFigures::success_ratio_during_fault);
    check_mean("success", ratios, mean(success).unwrap(), 0.001, &mut problems);
    let problems = problems.into_iter().map(|problem| format!("cell {}: during the fault: {problem}", row.0));
    problems.chain(differences(runs, row)).collect()
}

fn check_share(what: &str, [got, ours]: [f64; 2], [want, theirs]: [f64; 2], problems: &mut Vec<String>) {
    // Four standard errors of the difference, and one seed of either.
    let both = (got + want) / (ours + theirs);
    let error = (both * (1.0 - both) * (1.0 / ours + 1.0 / theirs)).sqrt();
    if (got / ours - want / theirs).abs() > 4.0 * error + 1.0 / ours {
        problems.push(format!("{what}: {got} of {ours}, expected {want} of {theirs}"));
    }
}

/// Compares when the system fell first, in `64 down; first bad window 517 s (51) after …`.
fn check_first_bad_window(runs: &[SystemFigures], verdicts: &str, problems: &mut Vec<String>) {
    if let Some(text) = verdicts.split("first bad window ").nth(1) {
        let want = mean(&text.replace(" s (", " (")).unwrap();
        let fell = runs.iter().filter_map(|run| Some((run.fell_at()? - run.fault_start).as_secs_f64()));
        let fell: Vec<_> = fell.collect();
        if fell.len() > 2 {
            check_mean("first bad window", fell, want, runs[0].window().as_secs_f64(), problems);
        }
    }
    if let Some(text) =
        verdicts.split(';').nth(1).and_then(|text| text.trim().strip_suffix(" were down before the trigger"))
    {
        let got = runs.iter().filter(|run| run.was_down_before_fault()).count() as f64;
        let theirs = verdicts.split(' ').next().unwrap().parse().unwrap();
        check_share("down before", [got, runs.len() as f64], [text.parse().unwrap(), theirs], problems);
    }
}

/// Compares cells with the systems that they describe, and fails with all that differs.
pub(super) fn check(rows: &[Row], seeds: u64, system: impl Fn(u32) -> System) {
    let problems: Vec<_> = rows.iter().flat_map(|&row| differences(&runs(&system(row.0), seeds), row)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
