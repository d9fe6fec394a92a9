//! Compares the reference figures of an independent implementation of the same model with ours.

use core::time::Duration;

use stagger_core::Seed;
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder};

use super::strategies::Strategy;
use crate::sim::reference::moments;

/// Means of five runs; a recovery of `None` is "never". The last two are for the last ten seconds.
struct Row {
    name: &'static str,
    amplification: f64,
    success: f64,
    peak: f64,
    recovery: Option<f64>,
    goodput: f64,
    attempts: f64,
}

const fn row(
    name: &'static str,
    [amplification, success, peak]: [f64; 3],
    recovery: Option<f64>,
    [goodput, attempts]: [f64; 2],
) -> Row {
    Row { name, amplification, success, peak, recovery, goodput, attempts }
}

/// 700 requests per second, ten processes, and a stall.
#[rustfmt::skip]
const FEW: &[Row] = &[
    row("none", [1.0, 0.959, 762.0], Some(2.4), [1.0, 1.0]),
    row("imm3", [3.979, 0.0, 5279.0], None, [0.0, 4.0]),
    row("fixed3", [3.973, 0.0, 4650.0], None, [0.0, 4.0]),
    row("full3", [3.973, 0.0, 4749.0], None, [0.0, 3.99]),
    row("full9", [9.741, 0.0, 7742.0], None, [0.0, 10.03]),
    row("full9_aws500", [1.014, 0.92, 1350.0], Some(5.8), [1.0, 1.0]),
    row("full9_ratio10", [1.024, 0.892, 1701.0], Some(7.8), [1.0, 1.0]),
    row("full9_grpc", [1.001, 0.958, 759.0], Some(2.6), [1.0, 1.0]),
    row("full3_aws500", [1.014, 0.92, 1350.0], Some(5.8), [1.0, 1.0]),
    row("full3_ratio10", [1.024, 0.892, 1701.0], Some(7.8), [1.0, 1.0]),
    row("full3_grpc", [1.001, 0.958, 759.0], Some(2.6), [1.0, 1.0]),
    row("full9_ratio10s", [1.014, 0.92, 1350.0], Some(5.8), [1.0, 1.0]),
    row("full3_ratio10s", [1.014, 0.92, 1350.0], Some(5.8), [1.0, 1.0]),
    row("full9_sre", [1.05, 0.465, 6247.0], None, [0.83, 0.83]),
    row("full9_ratio10b", [1.022, 0.903, 1350.0], Some(7.0), [1.0, 1.0]),
    row("full3_ratio10b", [1.022, 0.902, 1350.0], Some(7.2), [1.0, 1.0]),
    row("full9_sre12s", [0.872, 0.607, 4604.0], Some(38.0), [1.0, 1.0]),
];

/// The same with a thousand processes.
#[rustfmt::skip]
const FLEET: &[Row] = &[
    row("none", [1.0, 0.957, 770.0], Some(2.4), [1.0, 1.0]),
    row("imm3", [3.979, 0.0, 5422.0], None, [0.0, 3.99]),
    row("fixed3", [3.973, 0.0, 4820.0], None, [0.0, 3.99]),
    row("full3", [3.973, 0.0, 4751.0], None, [0.0, 3.99]),
    row("full9", [9.744, 0.0, 7701.0], None, [0.0, 9.98]),
    row("full9_aws500", [2.427, 0.51, 7700.0], Some(38.2), [1.0, 1.0]),
    row("full9_ratio10", [9.489, 0.0, 7741.0], None, [0.0, 9.74]),
    row("full9_grpc", [1.057, 0.84, 1996.0], Some(12.2), [1.0, 1.0]),
    row("full3_aws500", [2.427, 0.124, 4751.0], Some(70.4), [1.0, 1.0]),
    row("full3_ratio10", [3.973, 0.0, 4751.0], None, [0.0, 3.99]),
    row("full3_grpc", [1.055, 0.842, 2007.0], Some(12.0), [1.0, 1.0]),
    row("full9_ratio10s", [2.427, 0.51, 7700.0], Some(38.2), [1.0, 1.0]),
    row("full3_ratio10s", [2.427, 0.124, 4751.0], Some(70.4), [1.0, 1.0]),
    row("full9_sre", [1.033, 0.431, 5356.0], None, [0.77, 0.77]),
    row("full9_ratio10b", [2.461, 0.47, 7714.0], Some(41.6), [1.0, 1.0]),
    row("full3_ratio10b", [2.491, 0.07, 4751.0], Some(73.8), [1.01, 1.01]),
    row("full9_sre12s", [0.907, 0.653, 3452.0], Some(47.4), [1.0, 1.0]),
];

/// 900 requests per second, ten processes, and rejections.
#[rustfmt::skip]
const REJECTED: &[Row] = &[
    row("none", [1.0, 0.975, 974.0], Some(0.0), [1.0, 1.0]),
    row("imm3", [1.059, 0.976, 3598.0], Some(0.0), [1.0, 1.0]),
    row("fixed3", [1.056, 0.98, 3553.0], Some(0.0), [1.0, 1.0]),
    row("full3", [1.057, 0.98, 3539.0], Some(0.0), [1.0, 1.0]),
    row("full9", [9.657, 0.02, 9569.0], None, [0.0, 10.1]),
    row("full9_aws500", [1.011, 0.975, 1879.0], Some(0.0), [1.0, 1.0]),
    row("full9_ratio10", [1.021, 0.975, 2664.0], Some(0.0), [1.0, 1.0]),
    row("full9_grpc", [1.0, 0.975, 977.0], Some(0.0), [1.0, 1.0]),
    row("full3_aws500", [1.011, 0.975, 1903.0], Some(0.0), [1.0, 1.0]),
    row("full3_ratio10", [1.021, 0.975, 2748.0], Some(0.0), [1.0, 1.0]),
    row("full3_grpc", [1.0, 0.975, 977.0], Some(0.0), [1.0, 1.0]),
    row("full9_ratio10s", [1.011, 0.975, 1879.0], Some(0.0), [1.0, 1.0]),
    row("full3_ratio10s", [1.011, 0.975, 1903.0], Some(0.0), [1.0, 1.0]),
    row("full9_sre", [1.031, 0.381, 8052.0], None, [0.7, 0.7]),
    row("full9_ratio10b", [1.013, 0.975, 1937.0], Some(0.0), [1.0, 1.0]),
    row("full3_ratio10b", [1.013, 0.975, 1975.0], Some(0.0), [1.0, 1.0]),
    row("full9_sre12s", [0.952, 0.691, 4915.0], Some(31.0), [1.0, 1.0]),
];

/// Returns the scenario of the tables: an outage of two seconds, starting at 20 s.
fn scenario(rate: f64, processes: u32, outage: OutageKind) -> OutageScenarioBuilder {
    OutageScenario::builder(rate).processes(processes).outage(outage, Duration::from_secs(20), Duration::from_secs(2))
}

const RUNS: u32 = 5;

/// Returns the recovery of the tables: the start of the first five consecutive seconds after the outage in each of
/// which the number of successes is at least 90 % of the mean number of requests. The published figures have this
/// definition; a [verdict](OutageFigures::verdict) judges by the requests that arrived, which are answered up to a
/// timeout later.
pub(super) fn recovery_by_seconds(run: &OutageFigures) -> Option<f64> {
    let second = |bins: &[u32]| bins.iter().map(|&count| f64::from(count)).sum::<f64>();
    let mut seconds: Vec<f64> = run.successes.counts().chunks(10).map(second).collect();
    seconds.resize(run.horizon.as_secs() as usize, 0.0);
    let end = run.outage_end.as_secs() as usize;
    let is_healthy = |seconds: &[f64]| seconds.iter().all(|&count| count >= 0.9 * run.rate);
    seconds[end..].windows(5).position(is_healthy).map(|nth| nth as f64)
}

/// Compares recovery and figures of each strategy, within 1 % or half a second, plus four standard errors of the
/// difference of the means. The reference has no standard deviations, so those of our runs are used.
fn compare(scenario: OutageScenarioBuilder, rows: &[Row]) {
    let scenario = scenario.build().unwrap();
    let mut failures = String::new();
    for row in rows {
        let strategy = Strategy::named(row.name);
        let runs: Vec<_> = (0..RUNS).map(|seed| strategy.run(&scenario, Seed::new(u64::from(seed)))).collect();
        for run in runs.iter().map(recovery_by_seconds).filter(|run| run.is_none() != row.recovery.is_none()) {
            failures += &format!("{:<14} recovers after {run:?}, expected {:?}\n", row.name, row.recovery);
        }
        for run in runs.iter().filter(|run| run.state_at_horizon().is_down() != row.recovery.is_none()) {
            failures += &format!("{:<14} {}, expected recovery {:?}\n", row.name, run.state_at_horizon(), row.recovery);
        }
        if let Some(want) = row.recovery {
            let verdicts = runs.iter().map(|run| run.recovery().unwrap_or(Duration::MAX).as_secs_f64());
            let (got, deviation) = moments(verdicts);
            // A window, and the second for which a client waits.
            if (got - want).abs() > 2.0 + 4.0 * deviation * (2.0 / f64::from(RUNS)).sqrt() {
                failures += &format!("{:<14} recovers after {got:.1} by its verdict, expected {want}\n", row.name);
            }
        }
        let recovery = |run: &OutageFigures| recovery_by_seconds(run).unwrap_or_default();
        for (what, (got, deviation), want, tolerance) in [
            ("amplification", moments(runs.iter().map(OutageFigures::amplification)), row.amplification, 0.01),
            ("success", moments(runs.iter().map(OutageFigures::success_ratio)), row.success, 0.01),
            ("peak", moments(runs.iter().map(|run| run.peak_second() as f64)), row.peak, 0.01),
            ("recovery", moments(runs.iter().map(recovery)), row.recovery.unwrap_or_default(), 0.01),
            ("goodput", moments(runs.iter().map(OutageFigures::final_goodput)), row.goodput, 0.01),
            ("attempts", moments(runs.iter().map(OutageFigures::final_load)), row.attempts, 0.01),
        ] {
            let least = if what == "recovery" { 0.5 } else { 0.001 };
            let chance = 4.0 * deviation * (2.0 / f64::from(RUNS)).sqrt();
            if (got - want).abs() > tolerance * want + least + chance {
                failures += &format!("{:<14} {what:<14} {got:>9.3}, expected {want:>9.3} ({deviation:.3})\n", row.name);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn every_strategy_matches_the_table_of_a_stall() {
    compare(scenario(700.0, 10, OutageKind::Stall), FEW);
}

#[test]
fn every_strategy_matches_the_table_of_a_stall_with_a_large_fleet() {
    compare(scenario(700.0, 1_000, OutageKind::Stall), FLEET);
}

#[test]
fn every_strategy_matches_the_table_of_rejections() {
    compare(scenario(900.0, 10, OutageKind::Reject), REJECTED);
}
