//! The command: reads the file of a system, runs it with each seed, and checks assertions.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use stagger_core::Seed;
use stagger_report::condition::{Condition, parse_conditions};
use stagger_report::output::{Outputs, RunCount, finish};
use stagger_report::progress::Interrupt;
use stagger_sim::system::{System, SystemFigures, SystemFile};
use stagger_sim::{Progress, Sweep};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::plot::RenderOptions;

use super::document::Document;
use super::find::{frontier, search};
use super::report::{figures, report};
use crate::simulate::args::SystemArgs;
use crate::simulate::incident::Incident;
use crate::simulate::runs::with_progress;

/// The default seed of the first run.
const SEED: u64 = 1;

/// Runs `stagger simulate system`.
pub(crate) fn run(args: &SystemArgs, term: &Term) -> Result<ExitCode, CliError> {
    let (file, name) = match args.file.to_str().filter(|name| Incident::is_meant(name)) {
        Some(reference) => {
            let incident = Incident::find(reference)?;
            (SystemFile::parse(incident.text).map_err(CliError::usage)?, reference.to_owned())
        }
        None => (read(&args.file)?, path_shown(&args.file)),
    };
    let first = args.seed.unwrap_or(SEED);
    // With a search or a map, the seeds are those of each of their values.
    let own_seeds = if args.find.is_some() || args.frontier.is_some() { 1 } else { args.runs.seeds.unwrap_or(1) };
    let seeds: Vec<_> = (0..u64::from(own_seeds)).map(|offset| Seed::new(first.wrapping_add(offset))).collect();
    let conditions = conditions(&args.runs.assert, file.system())?;
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let runs = simulate(file.system(), &seeds, &interrupt, term);
    let mut document = Document::new(name, file.system(), runs.iter().map(|(seed, figures)| (*seed, figures)));
    let progress = Progress::new();
    let given = (first, args.runs.seeds);
    if let Some(text) = &args.find {
        document.search =
            with_progress(&progress, "searching", &interrupt, term, || search(&file, text, given, &progress))?;
    }
    if let Some(text) = &args.frontier {
        document.frontier =
            with_progress(&progress, "mapping", &interrupt, term, || frontier(&file, text, given, &progress))?;
    }
    let runs = RunCount { planned: seeds.len(), finished: document.runs.len() };
    let options = RenderOptions::for_screen(&term.stdout, term);
    finish(|| report(&document), runs, &interrupt, &conditions, outputs, options)
}

/// Reads the file of a system.
fn read(path: &Path) -> Result<SystemFile, CliError> {
    SystemFile::read(path).map_err(|error| match error.io() {
        Some(why) => {
            CliError::io(format_args!("cannot read {}", path_shown(path)), io::Error::new(why.kind(), why.to_string()))
        }
        None => CliError::usage(error),
    })
}

/// Runs the system with every seed until it is decided, on all cores. Returns the runs that finished before an
/// interrupt.
fn simulate(system: &System, seeds: &[Seed], interrupt: &Interrupt, term: &Term) -> Vec<(Seed, SystemFigures)> {
    let progress = Progress::new();
    let plural = if seeds.len() == 1 { "run" } else { "runs" };
    let run = |(): &(), seed, progress: &Progress| system.run_until_decided_with_progress(seed, progress);
    let runs = with_progress(&progress, &format!("simulating {} {plural}", seeds.len()), interrupt, term, || {
        Sweep::new().run(&[()], seeds, &progress, run)
    });
    let runs = seeds.iter().zip(runs.into_iter().flatten());
    runs.filter_map(|(seed, run)| Some((*seed, run?))).collect()
}

/// Parses the values of `--assert` for this system, the names of whose figures do not depend on the run.
fn conditions(lists: &[String], system: &System) -> Result<Vec<Condition>, CliError> {
    parse_conditions(lists, &figures(&Document::without_runs(system)).metrics)
}
