//! The whole grid, of which tables print three cells: rates, queues, processes and both kinds of outage.

use core::time::Duration;

use stagger_core::Seed;
use stagger_sim::outage::{OutageKind, OutageScenario};

use super::plain::{self, Cell};
use super::strategies::{NAMES, Strategy};
use crate::sim::plain::moments;

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

/// The cells with this queue, with an outage of this kind.
fn cells(queue: usize, stalls: bool) -> impl Iterator<Item = Cell> {
    let cell = move |rate| FLEETS.map(|processes| Cell { rate, queue, processes, stalls });
    RATES.into_iter().flat_map(cell)
}

/// It is one of the three that are held against what is printed of it.
const fn has_a_table(cell: &Cell) -> bool {
    matches!((cell.rate, cell.processes, cell.stalls), (700, _, true) | (900, 10, false))
}

/// The verdict of a plain model of the same for every strategy, and figures like its: one run of each, so no more than alike.
fn compare_with_plain(cells: impl Iterator<Item = Cell>) {
    let mut failures = String::new();
    for cell in cells.filter(|cell| !has_a_table(cell)) {
        let scenario = scenario(cell);
        // Without a limiter processes are nothing but places.
        for name in NAMES.into_iter().filter(|name| cell.processes == FLEETS[0] || name.contains('_')) {
            let ours = Strategy::named(name).run(&scenario, Seed::new(1));
            let theirs = plain::run(cell, name, 1);
            let recovery = ours.recovery().map(|time| time.as_secs_f64());
            if recovery.is_none() != theirs.recovery.is_none() {
                failures += &format!("{name} recovers after {recovery:?}, not {:?} ({cell:?})\n", theirs.recovery);
            }
            let (got, want) = (recovery.unwrap_or_default(), theirs.recovery.unwrap_or_default());
            for (what, got, want, slack) in [
                ("recovery", got, want, 8.0_f64.min(0.2 * want + 4.0)),
                ("amplification", ours.amplification(), theirs.amplification, 0.04 * theirs.amplification),
                ("success", ours.success_ratio(), theirs.success, 0.08),
                ("goodput", ours.final_goodput(), theirs.goodput, 0.06),
            ] {
                // What throttles by chance has a good second early or late.
                let slack = if name == "full9_sre12s" && what == "recovery" { 12.0 } else { slack };
                if (got - want).abs() > slack {
                    failures += &format!("{name} {what} {got:.3} is not {want:.3} ({cell:?})\n");
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn stalls_end_as_in_a_plain_model() {
    compare_with_plain(cells(3_000, true));
}

#[test]
fn rejections_end_as_in_a_plain_model() {
    compare_with_plain(cells(3_000, false));
}

/// Half a second of jobs, and a second until clients give up.
#[test]
fn what_does_not_go_stale_recovers_at_once() {
    let chance = "full9_sre12s";
    for cell in cells(500, true).chain(cells(500, false)) {
        let scenario = scenario(cell);
        for name in NAMES.into_iter().filter(|&name| name != chance) {
            let recovery = Strategy::named(name).run(&scenario, Seed::new(1)).recovery();
            assert!(recovery <= Some(Duration::from_secs(2)), "{name}: {recovery:?} ({cell:?})");
        }
        // It is the clients that hold back here, for as long as they remember and are unlucky.
        let runs = (1..=5)
            .map(|seed| Strategy::named(chance).run(&scenario, Seed::new(seed)).recovery().unwrap().as_secs_f64());
        let (mean, deviation) = moments(runs);
        assert!(mean <= 13.6 + 4.0 * deviation / 5_f64.sqrt(), "{chance}: {mean} ({cell:?})");
    }
}
