use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use stagger_core::Seed;
use stagger_sim::storm::{RunFigures, StormReport};
use stagger_sim::{Progress, Sweep};

use super::contender::Contender;
use super::world::World;
use crate::error::CliError;
use crate::storm::{Interrupt, Progress as ProgressLine};
use crate::term::Term;

/// What came of all runs, or of those that were finished.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) storm: StormReport,
    pub(super) planned: usize,
    pub(super) finished: usize,
}

/// How often is looked whether there is something to draw, or somebody wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Runs every contender with every seed.
///
/// # Errors
/// A policy has no mean field.
pub(super) fn simulate(
    world: &World,
    contenders: &[Contender],
    seeds: &[Seed],
    interrupt: &Interrupt,
    term: &Term,
) -> Result<Simulated, CliError> {
    let progress = Progress::new();
    let planned = contenders.len() * seeds.len();
    let is_over = AtomicBool::new(false);
    let figures = thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut line = ProgressLine::new(term);
            while !is_over.load(Ordering::Relaxed) {
                if interrupt.came() {
                    progress.cancel_token().cancel();
                }
                line.tell(|| {
                    let runs = if planned == 1 { "run" } else { "runs" };
                    format!("simulating {planned} {runs}: {:.0}%", progress.fraction() * 100.0)
                });
                thread::park_timeout(LOOK);
            }
        });
        let figures = Sweep::new().run(contenders, seeds, &progress, |contender, seed, progress| {
            world.run(contender, seed, progress).transpose()
        });
        is_over.store(true, Ordering::Relaxed);
        looker.thread().unpark();
        figures
    });
    let mut storm = StormReport::new(world.scene());
    let mut finished = 0;
    for (contender, runs) in contenders.iter().zip(figures) {
        let runs = seeds.iter().zip(runs).filter_map(|(seed, run)| Some((*seed, run?)));
        let runs: Result<Vec<(Seed, RunFigures)>, _> =
            runs.map(|(seed, run)| run.map(|figures| (seed, figures))).collect();
        let mut runs =
            runs.map_err(|unfit| CliError::usage(format_args!("{}: {unfit} (reconnect)", contender.name)))?;
        if runs.is_empty() {
            continue;
        }
        // A picture shows one run, and what nobody looks at is not kept.
        for (_, figures) in runs.iter_mut().skip(1) {
            if let RunFigures::Reconnect(figures) = figures {
                figures.sample_s.clear();
            }
        }
        finished += runs.len();
        storm = storm.with_strategy(&*contender.name, &contender.policy, runs);
        if let Some(guards) = &contender.guards {
            storm = storm.with_guards(guards.text());
        }
    }
    Ok(Simulated { storm, planned, finished })
}
