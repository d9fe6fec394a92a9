use std::process::ExitCode;

use stagger_core::Seed;

use super::args::SimulateArgs;
use super::contender::contenders;
use super::runs::{Simulated, simulate};
use super::settings::Request;
use super::world::World;
use crate::error::CliError;
use crate::output::say;
use crate::plot::Look;
use crate::storm::{INTERRUPTED, Interrupt, Outputs, Records, assertions, write};
use crate::term::Term;

/// Runs at most: with the figures of more a machine's memory would be full.
const MOST_RUNS: usize = 10_000;

/// `stagger simulate`.
pub(crate) fn run(args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut request = Request::new(args)?;
    let world = World::new(request.kind, core::mem::take(&mut request.settings))?;
    let contenders = contenders(&request, &args.policy, world.guards())?;
    let assertions = assertions(&request.assert, &world.scene())?;
    let seeds = seeds(&request, &world);
    if contenders.len() * seeds.len() > MOST_RUNS {
        return Err(CliError::usage(format_args!(
            "{} policies with {} seeds are more than {MOST_RUNS} runs; lower --seeds, or compare fewer",
            contenders.len(),
            seeds.len(),
        )));
    }
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::listen()?;
    let simulated = simulate(&world, &contenders, &seeds, &interrupt, term)?;
    let Simulated { storm, planned, finished } = &simulated;
    if *finished == 0 {
        say("interrupted before any run was finished; nothing is written");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let records = Records::of(storm)?;
    write(storm, &records, outputs, Look::of(&term.stdout, term))?;
    let failures: Vec<_> = assertions.iter().flat_map(|assertion| assertion.failures(&records)).collect();
    failures.iter().for_each(|failure| say(&format!("failed: {failure}")));
    if finished < planned {
        say(&format!("interrupted: {finished} of {planned} runs are finished, and the figures are of those"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The seeds of a request; without chance all of them would give the same.
fn seeds(request: &Request, world: &World) -> Vec<Seed> {
    let count = if world.is_by_chance() { request.seeds } else { 1 };
    (0..u64::from(count)).map(|more| Seed::new(request.seed.wrapping_add(more))).collect()
}
