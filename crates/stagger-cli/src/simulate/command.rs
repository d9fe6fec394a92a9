use std::process::ExitCode;

use stagger_core::Seed;

use super::args::SimulateArgs;
use super::contender::contenders;
use super::runs::simulate;
use super::settings::Request;
use super::world::World;
use crate::error::CliError;
use crate::plot::RenderOptions;
use crate::storm::{Interrupt, Outputs, Runs, assertions, conclude};
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
    let runs = Runs { planned: simulated.planned, finished: simulated.finished };
    conclude(&simulated.storm, runs, &assertions, outputs, RenderOptions::for_screen(&term.stdout, term))
}

/// The seeds of a request; without chance all of them would give the same.
fn seeds(request: &Request, world: &World) -> Vec<Seed> {
    let count = if world.is_by_chance() { request.seeds } else { 1 };
    (0..u64::from(count)).map(|more| Seed::new(request.seed.wrapping_add(more))).collect()
}
