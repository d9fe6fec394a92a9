//! Tests of the whole grid, of which the tables show three cells: rates, queues, processes and both kinds of outage.

use core::time::Duration;

use stagger_core::Seed;
use stagger_sim::outage::{OutageKind, OutageScenario};

use super::reference_model::{self, Cell};
use super::strategies::{NAMES, Strategy};
use super::tables::recovery_by_seconds;
use crate::sim::reference::moments;

const RATES: [u32; 3] = [500, 700, 900];
const FLEETS: [usize; 2] = [10, 1_000];

fn scenario(cell: Cell) -> OutageScenario {
    let outage = if cell.stalls { OutageKind::Stall } else { OutageKind::Reject };
    OutageScenario::builder(cell.rate.into())
        .queue(cell.queue as u32)
        .processes(cell.processes as u32)
        .outage(outage, Duration::from_secs(20), Duration::from_secs(2))
        .build()
        .unwrap()
}

/// Returns the cells with this queue and this kind of outage.
fn cells(queue: usize, stalls: bool) -> impl Iterator<Item = Cell> {
    let cell = move |rate| FLEETS.map(|processes| Cell { rate, queue, processes, stalls });
    RATES.into_iter().flat_map(cell)
}

/// Returns whether the cell is one of the three that are compared with published tables.
const fn has_a_table(cell: &Cell) -> bool {
    matches!((cell.rate, cell.processes, cell.stalls), (700, _, true) | (900, 10, false))
}

/// Compares recovery and figures with a reference model, for every strategy. With one run each, figures match only
/// roughly.
fn compare_with_reference(cells: impl Iterator<Item = Cell>) {
    let mut failures = String::new();
    for cell in cells.filter(|cell| !has_a_table(cell)) {
        let scenario = scenario(cell);
        // Without a limiter, the number of processes has no effect.
        for name in NAMES.into_iter().filter(|name| cell.processes == FLEETS[0] || name.contains('_')) {
            let ours = Strategy::named(name).run(&scenario, Seed::new(1));
            let theirs = reference_model::run(cell, name, 1);
            let recovery = recovery_by_seconds(&ours);
            if recovery.is_none() != theirs.recovery.is_none() {
                failures += &format!("{name} recovers after {recovery:?}, expected {:?} ({cell:?})\n", theirs.recovery);
            }
            let (got, want) = (recovery.unwrap_or_default(), theirs.recovery.unwrap_or_default());
            for (what, got, want, slack) in [
                ("recovery", got, want, 8.0_f64.min(0.2 * want + 4.0)),
                ("amplification", ours.amplification(), theirs.amplification, 0.04 * theirs.amplification),
                ("success", ours.success_ratio(), theirs.success, 0.08),
                ("goodput", ours.final_goodput(), theirs.goodput, 0.06),
            ] {
                // Probabilistic throttling recovers at a random time.
                let slack = if name == "full9_sre12s" && what == "recovery" { 12.0 } else { slack };
                if (got - want).abs() > slack {
                    failures += &format!("{name} {what} {got:.3}, expected {want:.3} ({cell:?})\n");
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn stalls_match_a_reference_model() {
    compare_with_reference(cells(3_000, true));
}

#[test]
fn rejections_match_a_reference_model() {
    compare_with_reference(cells(3_000, false));
}

/// Checks a queue of half a second with a timeout of a second.
#[test]
fn a_queue_without_stale_jobs_recovers_at_once() {
    let throttled = "full9_sre12s";
    for cell in cells(500, true).chain(cells(500, false)) {
        let scenario = scenario(cell);
        for name in NAMES.into_iter().filter(|&name| name != throttled) {
            let run = Strategy::named(name).run(&scenario, Seed::new(1));
            let recovery = recovery_by_seconds(&run);
            assert!(recovery.is_some_and(|recovery| recovery <= 2.0), "{name}: {recovery:?} ({cell:?})");
            assert!(!run.is_metastable(), "{name}: {} ({cell:?})", run.verdict());
        }
        // Here the clients throttle themselves, for as long as their window and chance determine.
        let runs = (1..=5)
            .map(|seed| recovery_by_seconds(&Strategy::named(throttled).run(&scenario, Seed::new(seed))).unwrap());
        let (mean, deviation) = moments(runs);
        assert!(mean <= 13.6 + 4.0 * deviation / 5_f64.sqrt(), "{throttled}: {mean} ({cell:?})");
    }
}
