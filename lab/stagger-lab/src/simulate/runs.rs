//! Runs of a plan on all cores, with a progress line and an end on Ctrl-C.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use stagger_core::Seed;
use stagger_report::output::RunCount;
use stagger_report::progress::{Interrupt, ProgressLine};
use stagger_sim::storm::{RunFigures, StormReport};
use stagger_sim::{Progress, Sweep};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;

use super::strategy::Plan;

/// Time between two checks for an interrupt, and between two updates of the progress line.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs every strategy with every seed; the report contains the runs that finished before an interrupt.
pub(super) fn simulate(
    plan: &Plan,
    seeds: &[Seed],
    interrupt: &Interrupt,
    term: &Term,
) -> Result<(StormReport, RunCount), CliError> {
    let progress = Progress::new();
    let planned = plan.strategies.len() * seeds.len();
    let runs = if planned == 1 { "run" } else { "runs" };
    let what = format!("simulating {planned} {runs}");
    with_progress(&progress, &what, interrupt, term, || simulate_with_progress(plan, seeds, &progress))
}

/// Runs every strategy with every seed; the report contains the runs that finished before the progress was cancelled.
pub(super) fn simulate_with_progress(
    plan: &Plan,
    seeds: &[Seed],
    progress: &Progress,
) -> Result<(StormReport, RunCount), CliError> {
    let Plan { spec, scenarios, strategies } = plan;
    let figures = Sweep::new().run(strategies, seeds, progress, |strategy, seed, progress| {
        scenarios[strategy.scenario].run(strategy, seed, progress).transpose()
    });
    let mut storm = StormReport::new(spec.clone());
    let mut finished = 0;
    for (strategy, runs) in strategies.iter().zip(figures) {
        let runs = seeds.iter().zip(runs).filter_map(|(seed, run)| Some((*seed, run?)));
        let runs: Result<Vec<(Seed, RunFigures)>, _> =
            runs.map(|(seed, run)| run.map(|figures| (seed, figures))).collect();
        let mut runs = runs.map_err(|error| {
            CliError::usage(format_args!("{}: {error} (stagger simulate reconnect)", strategy.name))
        })?;
        if runs.is_empty() {
            continue;
        }
        // Charts show the first run only, so drop the samples of the others.
        for (_, figures) in runs.iter_mut().skip(1) {
            if let RunFigures::Reconnect(figures) = figures {
                figures.sample_s.clear();
            }
        }
        finished += runs.len();
        storm = storm.with_strategy(&*strategy.name, &strategy.policy, runs);
        storm = storm.with_swept(scenarios[strategy.scenario].spec(), strategy.swept.clone());
        if let Some(guards) = &strategy.guards {
            storm = storm.with_guards(&*guards.text);
        }
    }
    Ok((storm, RunCount { planned: strategies.len() * seeds.len(), finished }))
}

/// Does `work` on this thread, while another draws the progress line and cancels the progress after an interrupt.
pub(super) fn with_progress<T>(
    progress: &Progress,
    what: &str,
    interrupt: &Interrupt,
    term: &Term,
    work: impl FnOnce() -> T,
) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reporter = scope.spawn(|| {
            let mut line = ProgressLine::new(term);
            while !is_done.load(Ordering::Relaxed) {
                if interrupt.is_requested() {
                    progress.cancel_token().cancel();
                }
                line.update(|| format!("{what}: {:.0}%", progress.fraction() * 100.0));
                thread::park_timeout(POLL_INTERVAL);
            }
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        reporter.thread().unpark();
        result
    })
}
