use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use stagger_core::Seed;

use super::args::{ScenarioKind, SimulateArgs};
use super::incident::{self, Reference};
use super::runs::simulate;
use super::settings::Request;
use super::strategy::Plan;
use super::system;
use crate::check::policies_of;
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::plot::RenderOptions;
use crate::storm::{Interrupt, Outputs, finish, parse_assertions};

/// Maximum number of runs. The figures of all runs are kept in memory.
pub(super) const MAX_RUNS: usize = 10_000;

/// Runs `stagger simulate`.
pub(crate) fn run(args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    if let Some(reference) = args.incident() {
        if let Some(file) = args.system.as_ref().filter(|_| args.kind().is_none()) {
            let file = file.display();
            return Err(CliError::usage(format_args!(
                "`{file}` follows {reference}, which has a file of its own; remove it"
            )));
        }
        return incident::run(Reference::parse(reference)?, args, term);
    }
    if args.print {
        return Err(CliError::usage(
            "--print is for incidents; use: stagger simulate @incident/NAME --print, with a name from: stagger simulate @incident",
        ));
    }
    if args.kind() == Some(ScenarioKind::System) {
        return system::run(args, term);
    }
    let args = match &args.system {
        None => args,
        Some(file) if file.extension().is_some_and(|ending| ending == "toml") => {
            let file = file.display();
            return Err(CliError::usage(format_args!(
                "`{file}` is the file of a system; use: stagger simulate system {file}"
            )));
        }
        Some(file) => &with_policies_of(file, args)?,
    };
    if args.find.is_some() || args.frontier.is_some() {
        return Err(CliError::usage(
            "--find and --frontier are for systems; use: stagger simulate system FILE --find rate",
        ));
    }
    run_request(&Request::new(args)?, args, term)
}

/// Returns the arguments with the policies of a configuration to compare. Of equal ones, the first is simulated.
fn with_policies_of(file: &Path, args: &SimulateArgs) -> Result<SimulateArgs, CliError> {
    let mut found = policies_of(file, args.entry.as_deref())?;
    let mut seen = HashSet::new();
    found.retain(|found| seen.insert(found.policy.clone()));
    let named = found.iter().map(|found| format!("{}: {}", found.path.replace([',', ':'], " "), found.policy));
    let compare = args.compare.iter().cloned().chain(named).collect();
    Ok(SimulateArgs { system: None, entry: None, compare, ..args.clone() })
}

/// Runs a scenario, and writes the outputs.
pub(super) fn run_request(request: &Request, args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    let plan = Plan::new(request, &args.policy)?;
    let assertions = parse_assertions(&request.assert, &plan.spec)?;
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let (storm, runs) = simulate(&plan, &seeds(request), &interrupt, term)?;
    finish(&storm, runs, &interrupt, &assertions, outputs, RenderOptions::for_screen(&term.stdout, term))
}

/// Returns the seeds of a request.
fn seeds(request: &Request) -> Vec<Seed> {
    (0..u64::from(request.seed_count())).map(|offset| Seed::new(request.seed.wrapping_add(offset))).collect()
}
