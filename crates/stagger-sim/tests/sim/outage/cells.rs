//! Compares verdicts with cells of an independent implementation of the model: 64 seeds each, one server with a queue of
//! 600, 200 jobs per second, and a stall of two seconds at 20 s, where nothing else is said.

use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, Verdict};

use crate::sim::reference::moments;

/// Number of seeds of the reference.
const THEIR_RUNS: f64 = 64.0;
const RUNS: u64 = 12;

struct Cell {
    scenario: OutageScenarioBuilder,
    policy: Policy,
    has_budget: bool,
    /// Shares of the runs that never fell, recovered, and are down.
    verdicts: [f64; 3],
    /// Mean and its standard error, in seconds, if there are enough runs to compare.
    recovery: Option<(f64, f64)>,
    /// Mean share of requests that were served, and its standard error.
    success: (f64, f64),
}

fn server(rate: f64) -> OutageScenarioBuilder {
    OutageScenario::builder(rate).capacity(200.0).queue(600).horizon(Duration::from_secs(220))
}

const fn stall(millis: u64) -> (OutageKind, Duration, Duration) {
    (OutageKind::Stall, Duration::from_secs(20), Duration::from_millis(millis))
}

fn stalled(millis: u64) -> OutageScenarioBuilder {
    let (kind, start, length) = stall(millis);
    server(100.0).outage(kind, start, length)
}

fn at_once(attempts: u32) -> Policy {
    Policy::zero().max_attempts(attempts).build().unwrap()
}

/// Returns a cell whose counts are of never fell, recovered, and down.
fn cell(
    scenario: OutageScenarioBuilder,
    policy: Policy,
    counts: [f64; 3],
    recovery: Option<(f64, f64)>,
    success: (f64, f64),
) -> Cell {
    Cell { scenario, policy, has_budget: false, verdicts: counts.map(|count| count / THEIR_RUNS), recovery, success }
}

fn run(cell: &Cell) -> Vec<OutageFigures> {
    let scenario = cell.scenario.build().unwrap();
    let guards = |_| {
        let process = ProcessGuards::none();
        let tokens = || {
            let tokens = Tokens::builder().capacity(10).cost(1);
            tokens.fractional_reward(Ratio::percent(10)).build().unwrap()
        };
        if cell.has_budget { process.budget(tokens()) } else { process }
    };
    (100..100 + RUNS).map(|seed| scenario.run(&cell.policy, guards, Seed::new(seed))).collect()
}

/// Returns the share of the requests between the outage and the horizon that were served.
fn success(run: &OutageFigures) -> f64 {
    let sum = |counts: &[u32]| counts.iter().skip(200).map(|&count| f64::from(count)).sum::<f64>();
    sum(run.served.counts()) / sum(run.requests.counts())
}

fn compare(name: &str, cell: &Cell) {
    let runs = run(cell);
    let share = |of: fn(Verdict) -> bool| runs.iter().filter(|run| of(run.verdict())).count() as f64 / RUNS as f64;
    let got = [
        share(|verdict| verdict == Verdict::NeverFell),
        share(|verdict| matches!(verdict, Verdict::Recovered { .. })),
        share(|verdict| matches!(verdict, Verdict::StillDown { .. })),
    ];
    for (got, want) in got.into_iter().zip(cell.verdicts) {
        // Four standard errors of the difference, and one seed of either.
        let both = (got * RUNS as f64 + want * THEIR_RUNS) / (RUNS as f64 + THEIR_RUNS);
        let error = (both * (1.0 - both) * (1.0 / RUNS as f64 + 1.0 / THEIR_RUNS)).sqrt();
        assert!((got - want).abs() <= 4.0 * error + 1.0 / RUNS as f64, "{name}: share {got:.3}, expected {want:.3}");
    }
    if let Some((want, their_error)) = cell.recovery {
        let recovered = runs.iter().filter_map(OutageFigures::recovery).map(|time| time.as_secs_f64());
        let (mean, deviation) = moments(recovered);
        let chance = 4.0 * (their_error.powi(2) + deviation.powi(2) / RUNS as f64).sqrt();
        // Half a window.
        assert!((mean - want).abs() <= 0.5 + chance, "{name}: recovered after {mean:.2}, expected {want:.2}");
    }
    let (mean, deviation) = moments(runs.iter().map(success));
    let (want, their_error) = cell.success;
    let chance = 4.0 * (their_error.powi(2) + deviation.powi(2) / RUNS as f64).sqrt();
    assert!((mean - want).abs() <= 0.0005 + chance, "{name}: {mean:.4} succeeded, expected {want:.4}");
}

#[test]
fn verdicts_match_reference_cells_far_from_an_edge() {
    let second = Duration::from_secs(1);
    let full = Policy::exponential(second, second * 20).max_attempts(3).build().unwrap();
    for (name, cell) in [
        ("cell 7", cell(server(150.0), at_once(3), [0.0, 0.0, 64.0], None, (0.0, 0.0))),
        ("cell 9", cell(stalled(1_200), at_once(3), [64.0, 0.0, 0.0], None, (1.0, 0.0))),
        ("cell 13", cell(stalled(1_800), at_once(3), [0.0, 0.0, 64.0], None, (0.0, 0.0))),
        ("cell 15", cell(stalled(2_000), at_once(1), [0.0, 64.0, 0.0], Some((0.2, 0.052)), (0.9899, 0.00017))),
        ("cell 17", cell(stalled(2_000), at_once(5), [0.0, 0.0, 64.0], None, (0.0, 0.0))),
        ("cell 19", cell(server(90.0), at_once(2), [0.0, 64.0, 0.0], Some((3.4, 0.23)), (0.9752, 0.0013))),
        ("cell 21", cell(stalled(2_000), full, [0.0, 0.0, 64.0], None, (0.0001, 7.1e-5))),
        ("cell 39", cell(stalled(2_000).queue(100), at_once(3), [0.0, 64.0, 0.0], Some((0.0, 0.0)), (0.9902, 8.8e-5))),
        ("cell 41", cell(stalled(2_000).queue(205), at_once(3), [0.0, 64.0, 0.0], Some((0.9, 0.03)), (0.9905, 9.2e-5))),
        ("cell 43", cell(stalled(2_000).queue(300), at_once(3), [0.0, 0.0, 64.0], None, (0.0, 0.0))),
    ] {
        compare(name, &cell);
    }
}

#[test]
fn verdicts_match_reference_cells_at_an_edge() {
    let fixed = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).max_attempts(3).build().unwrap();
    for (name, cell) in [
        ("cell 3", cell(server(66.0), at_once(3), [28.0, 36.0, 0.0], Some((8.6 * 36.0 / 64.0, 3.6)), (0.9721, 0.011))),
        ("cell 5", cell(server(80.0), at_once(3), [0.0, 2.0, 62.0], None, (0.0311, 0.022))),
        ("cell 11", cell(stalled(1_500), at_once(3), [27.0, 2.0, 35.0], None, (0.4535, 0.063))),
        ("cell 23", cell(stalled(2_000), fixed, [24.0, 6.0, 34.0], None, (0.4699, 0.063))),
    ] {
        compare(name, &cell);
    }
}

#[test]
fn verdicts_match_reference_cells_with_budgets_and_rejections() {
    let with_budget = |processes, rate, recovery, success| Cell {
        has_budget: true,
        ..cell(server(rate).processes(processes), at_once(3), [0.0, 64.0, 0.0], Some(recovery), success)
    };
    let (_, start, _) = stall(0);
    let rejected = server(100.0).outage(OutageKind::Reject, start, Duration::from_secs(10));
    for (name, cell) in [
        ("cell 25", with_budget(1, 100.0, (0.5, 0.063), (0.9894, 0.00017))),
        ("cell 27", with_budget(100, 100.0, (10.2, 0.051), (0.9411, 0.00037))),
        ("cell 29", with_budget(10, 180.0, (14.3, 0.27), (0.9206, 0.0014))),
        ("cell 73", cell(rejected, at_once(10), [0.0, 64.0, 0.0], Some((0.0, 0.0)), (0.9506, 0.0002))),
    ] {
        compare(name, &cell);
    }
}
