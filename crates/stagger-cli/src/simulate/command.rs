use std::process::ExitCode;

use stagger_core::Seed;

use super::args::SimulateArgs;
use super::runs::simulate;
use super::scenario::AnyScenario;
use super::settings::Request;
use super::strategy::strategies;
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::plot::RenderOptions;
use crate::storm::{Interrupt, Outputs, finish, parse_assertions};

/// Maximum number of runs. The figures of all runs are kept in memory.
const MAX_RUNS: usize = 10_000;

/// Runs `stagger simulate`.
pub(crate) fn run(args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut request = Request::new(args)?;
    let scenario = AnyScenario::new(request.kind, core::mem::take(&mut request.settings))?;
    let strategies = strategies(&request, &args.policy, scenario.guards())?;
    let assertions = parse_assertions(&request.assert, &scenario.spec())?;
    let seeds = seeds(&request, &scenario);
    if strategies.len() * seeds.len() > MAX_RUNS {
        return Err(CliError::usage(format_args!(
            "{} policies with {} seeds each exceed {MAX_RUNS} runs; lower --seeds or compare fewer policies",
            strategies.len(),
            seeds.len(),
        )));
    }
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let (storm, runs) = simulate(&scenario, &strategies, &seeds, &interrupt, term)?;
    finish(&storm, runs, &assertions, outputs, RenderOptions::for_screen(&term.stdout, term))
}

/// Returns the seeds of a request: one if the scenario is deterministic.
fn seeds(request: &Request, scenario: &AnyScenario) -> Vec<Seed> {
    let count = if scenario.is_random() { request.seeds } else { 1 };
    (0..u64::from(count)).map(|offset| Seed::new(request.seed.wrapping_add(offset))).collect()
}
