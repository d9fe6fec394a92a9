//! Compares verdicts with cells of an independent implementation of the model: one server with a queue of 600, 200 jobs
//! per second, and a stall of two seconds at 20 s, where nothing else is said. These are all published cells that a
//! server with one worker, a fixed service time and Poisson arrivals can express.

use core::time::Duration;

use stagger_core::budget::Tokens;
use stagger_core::{Jitter, Policy, Ratio, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, Verdict};

use crate::sim::reference::moments;

const RUNS: u64 = 12;

struct Cell {
    scenario: OutageScenarioBuilder,
    policy: Policy,
    has_budget: bool,
    /// Number of runs of the reference that never fell, recovered, and are down.
    verdicts: [f64; 3],
    /// Mean and its standard error, in seconds, if there are enough runs to compare.
    recovery: Option<(f64, f64)>,
    /// Mean share of requests that were served, and its standard error.
    success: (f64, f64),
    /// The same of the requests of the last ten windows.
    at_end: (f64, f64),
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

/// Returns a cell whose counts are of never fell, recovered, and down. All or none of the last requests are served.
fn cell(
    scenario: OutageScenarioBuilder,
    policy: Policy,
    counts: [f64; 3],
    recovery: Option<(f64, f64)>,
    success: (f64, f64),
) -> Cell {
    let at_end = if counts[2] > 0.0 { (0.0, 0.0) } else { (1.0, 0.0) };
    Cell { scenario, policy, has_budget: false, verdicts: counts, recovery, success, at_end }
}

impl Cell {
    fn at_end(self, mean: f64, error: f64) -> Self {
        Self { at_end: (mean, error), ..self }
    }
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
    // Outages start at a whole bin of 100 ms.
    let start = (run.outage_start.as_millis() / 100) as usize;
    let sum = |counts: &[u32]| counts.iter().skip(start).map(|&count| f64::from(count)).sum::<f64>();
    sum(run.served.counts()) / sum(run.requests.counts())
}

fn compare(name: &str, cell: &Cell) {
    let runs = run(cell);
    let share =
        |of: fn(Verdict) -> bool| runs.iter().filter(|run| of(run.state_at_horizon())).count() as f64 / RUNS as f64;
    let got = [
        share(|verdict| verdict == Verdict::NeverFell),
        share(|verdict| matches!(verdict, Verdict::Recovered { .. })),
        share(|verdict| matches!(verdict, Verdict::StillDown { .. })),
    ];
    let their_runs = cell.verdicts.iter().sum::<f64>();
    for (got, want) in got.into_iter().zip(cell.verdicts.map(|count| count / their_runs)) {
        // Four standard errors of the difference, and one seed of either.
        let both = (got * RUNS as f64 + want * their_runs) / (RUNS as f64 + their_runs);
        let error = (both * (1.0 - both) * (1.0 / RUNS as f64 + 1.0 / their_runs)).sqrt();
        assert!((got - want).abs() <= 4.0 * error + 1.0 / RUNS as f64, "{name}: share {got:.3}, expected {want:.3}");
    }
    if let Some((want, their_error)) = cell.recovery {
        let recovered = runs.iter().filter_map(OutageFigures::recovery).map(|time| time.as_secs_f64());
        let (mean, deviation) = moments(recovered);
        let chance = 4.0 * (their_error.powi(2) + deviation.powi(2) / RUNS as f64).sqrt();
        let half_window = 0.5 * runs[0].window().as_secs_f64();
        assert!((mean - want).abs() <= half_window + chance, "{name}: recovered after {mean:.2}, expected {want:.2}");
    }
    let at_end = runs.iter().map(OutageFigures::final_success_ratio);
    for (what, (mean, deviation), (want, their_error)) in
        [("", moments(runs.iter().map(success)), cell.success), (" at the end", moments(at_end), cell.at_end)]
    {
        let chance = 4.0 * (their_error.powi(2) + deviation.powi(2) / RUNS as f64).sqrt();
        assert!((mean - want).abs() <= 0.0005 + chance, "{name}: {mean:.4} succeeded{what}, expected {want:.4}");
    }
}

#[test]
fn verdicts_match_reference_cells_far_from_an_edge() {
    let second = Duration::from_secs(1);
    let full = Policy::exponential(second, second * 20).max_attempts(3).build().unwrap();
    for (name, cell) in [
        ("cell 1", cell(server(40.0), at_once(3), [64.0, 0.0, 0.0], None, (1.0, 0.0))),
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
        ("cell 5", cell(server(80.0), at_once(3), [0.0, 2.0, 62.0], None, (0.0311, 0.022)).at_end(0.031, 0.022)),
        ("cell 11", cell(stalled(1_500), at_once(3), [27.0, 2.0, 35.0], None, (0.4535, 0.063)).at_end(0.453, 0.063)),
        ("cell 23", cell(stalled(2_000), fixed, [24.0, 6.0, 34.0], None, (0.4699, 0.063)).at_end(0.469, 0.063)),
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

/// Compares cells whose stall of 1 ms has no effect, so that random variation decides.
#[test]
fn verdicts_match_reference_cells_under_noise() {
    let (second, blink) = (Duration::from_secs(1), Duration::from_millis(1));
    let light = OutageScenario::builder(50.0).capacity(160.0).timeout(second / 5).one_way(Duration::ZERO);
    let light = light.outage(OutageKind::Stall, second * 10, blink).horizon(second * 42);
    let heavy = |rate| {
        let scenario = OutageScenario::builder(rate).capacity(10.0).queue(100).timeout(second * 3);
        scenario.one_way(Duration::ZERO).outage(OutageKind::Stall, second, blink).horizon(second * 3_600)
    };
    let full = cell(heavy(9.5), at_once(5), [0.0, 0.0, 64.0], None, (0.1449, 0.014));
    for (name, cell) in [
        ("cell 91", cell(light, at_once(4), [256.0, 0.0, 0.0], None, (1.0, 0.0))),
        ("cell 93", cell(heavy(8.5), at_once(5), [57.0, 0.0, 7.0], None, (0.9370, 0.026)).at_end(0.891, 0.039)),
        ("cell 95", full),
    ] {
        compare(name, &cell);
    }
}

/// Checks that the system of cell 95 falls for the first time when it does in the reference.
#[test]
fn a_system_near_its_capacity_falls_when_the_reference_does() {
    let second = Duration::from_secs(1);
    let scenario = OutageScenario::builder(9.5).capacity(10.0).queue(100).timeout(second * 3).one_way(Duration::ZERO);
    let scenario = scenario.outage(OutageKind::Stall, second, second / 1_000).horizon(second * 3_600).build().unwrap();
    let fell_at = |seed| scenario.run(&at_once(5), |_| ProcessGuards::none(), Seed::new(seed)).fell_at().unwrap();
    let runs = 48;
    let (mean, deviation) = moments((0..runs).map(|seed| (fell_at(seed) - second).as_secs_f64()));
    let chance = 4.0 * (51.0_f64.powi(2) + deviation.powi(2) / runs as f64).sqrt();
    assert!((mean - 517.0).abs() <= 5.3 + chance, "{mean:.0} s, expected 517 s");
}

/// Compares the cells of N. Bronson et al., HotOS 2021, next to the threshold: 300 jobs per second, one retry, and a
/// stall of ten seconds.
#[test]
fn verdicts_match_reference_cells_of_the_published_threshold() {
    let seconds = Duration::from_secs;
    let server = |rate| {
        let scenario = OutageScenario::builder(rate).capacity(300.0).horizon(seconds(1_800));
        scenario.outage(OutageKind::Stall, seconds(20), seconds(10))
    };
    for (name, cell) in [
        ("cell 101", cell(server(145.0), at_once(2), [0.0, 16.0, 0.0], Some((231.5, 15.0)), (0.8663, 0.0087))),
        ("cell 103", cell(server(150.0), at_once(2), [0.0, 0.0, 16.0], None, (0.0, 0.0))),
    ] {
        compare(name, &cell);
    }
}

/// Returns whether at least two of three runs at this rate are down half an hour after the outage.
fn is_vulnerable(rate: f64) -> bool {
    let seconds = Duration::from_secs;
    let scenario = OutageScenario::builder(rate).capacity(300.0).horizon(seconds(1_800));
    let scenario = scenario.outage(OutageKind::Stall, seconds(20), seconds(10)).build().unwrap();
    let policy = Policy::zero().max_attempts(2).build().unwrap();
    let is_down = |seed| scenario.run(&policy, |_| ProcessGuards::none(), Seed::new(seed)).state_at_horizon().is_down();
    match (is_down(1), is_down(2)) {
        (first, second) if first == second => first,
        _ => is_down(3),
    }
}

/// Returns the rate between these two, the first of which is not vulnerable, above which the system is, to a request
/// per second.
fn threshold(mut stable: f64, mut vulnerable: f64) -> f64 {
    while vulnerable - stable > 1.0 {
        let middle = (stable + vulnerable) / 2.0;
        if is_vulnerable(middle) { vulnerable = middle } else { stable = middle }
    }
    (stable + vulnerable) / 2.0
}

/// Checks the threshold of N. Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021: a database of
/// 300 queries per second whose clients retry once. Up to 150 requests per second it recovers from an outage of ten
/// seconds; above, it is vulnerable, although it works at 280.
#[test]
fn the_threshold_of_bronson_et_al_is_found_by_bisection() {
    assert!(is_vulnerable(280.0), "the published load");
    let threshold = threshold(142.0, 158.0);
    assert!((149.0..=151.0).contains(&threshold), "{threshold} requests per second");
}
