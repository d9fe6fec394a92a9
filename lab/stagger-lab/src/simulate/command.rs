//! The command: chooses the scenario, runs it, and writes the report.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::process::ExitCode;

use stagger_core::Seed;
use stagger_core::text::Compact;
use stagger_report::condition::parse_conditions;
use stagger_report::output::{Outputs, finish};
use stagger_report::progress::Interrupt;
use stagger_report::storm;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::say;
use stagger_terminal::plot::RenderOptions;

use super::args::{CommonArgs, Scenario, ScenarioKind, SimulateArgs};
use super::runs::simulate;
use super::settings::Request;
use super::strategy::Plan;
use super::system;
use crate::check::{ConfigPolicy, policies_of};

/// Runs `stagger simulate`.
pub fn run(args: &SimulateArgs, term: &Term) -> Result<ExitCode, CliError> {
    match &args.scenario {
        Scenario::Reconnect(args) => compare(ScenarioKind::Reconnect, &args.settings.0, &args.storm, term),
        Scenario::Fluid(args) => compare(ScenarioKind::Fluid, &args.settings.0, &args.storm, term),
        Scenario::Outage(args) => compare(ScenarioKind::Outage, &args.settings.0, &args.storm, term),
        Scenario::Occ(args) => compare(ScenarioKind::Occ, &args.settings.0, &args.storm, term),
        Scenario::System(args) => system::run(args, term),
    }
}

/// Compares policies in a scenario.
fn compare(
    kind: ScenarioKind,
    settings: &[(&'static str, String)],
    args: &CommonArgs,
    term: &Term,
) -> Result<ExitCode, CliError> {
    let configured = match &args.configuration {
        None => None,
        Some(file) if file.extension().is_some_and(|ending| ending == "toml") => {
            let file = path_shown(file);
            return Err(CliError::usage(format_args!(
                "`{file}` is the file of a system; use: stagger simulate system {file}"
            )));
        }
        // After a flag whose value needs a sign.
        Some(file) if !file.exists() && args.outputs.uses_stdout() => {
            let file = path_shown(file);
            return Err(CliError::usage(format_args!(
                "`{file}` is not there to be read; to write to a file, use `=`: --json={file}"
            )));
        }
        Some(file) => Some(Configured::new(file, args)?),
    };
    let args = match &configured {
        Some(configured) => &configured.args,
        None => args,
    };
    let mut request = Request::new(kind, settings, args)?;
    if let Some(configured) = &configured {
        configured.complete(&mut request);
    }
    run_request(&request, args, term)
}

/// What a configuration of another system adds to the command line.
struct Configured {
    /// With its policies, to compare.
    args: CommonArgs,
    file: String,
    found: Vec<ConfigPolicy>,
}

impl Configured {
    /// Reads a configuration. Of equal policies, the first is simulated.
    fn new(file: &Path, args: &CommonArgs) -> Result<Self, CliError> {
        let mut found = policies_of(file, args.entry.as_deref())?;
        let mut seen = HashSet::new();
        found.retain(|found| seen.insert((found.policy.clone(), found.attempt, found.overall, found.guards.clone())));
        let named = found.iter().map(|found| {
            // A retry that would start after the time limit of the call is not made.
            match found.overall {
                Some(limit) => format!("{}: {} max-elapsed={}", name(found), found.policy, Compact(limit)),
                None => format!("{}: {}", name(found), found.policy),
            }
        });
        let compare = args.compare.iter().cloned().chain(named).collect();
        let args = CommonArgs { configuration: None, entry: None, compare, ..args.clone() };
        Ok(Self { args, file: path_shown(file), found })
    }

    /// Adds budgets and the time limit of attempts, unless the user has given others.
    fn complete(&self, request: &mut Request) {
        if request.kind != ScenarioKind::Outage {
            return;
        }
        if !request.settings.has("guards") {
            let guards = self.found.iter().filter_map(|found| Some((name(found), found.guards.clone()?)));
            request.own_guards = guards.collect();
        }
        if request.settings.has("timeout") {
            return;
        }
        let limits: BTreeSet<_> = self.found.iter().map(|found| found.attempt).collect();
        match limits.into_iter().collect::<Vec<_>>()[..] {
            [Some(limit)] => request.settings.set("timeout", &Compact(limit).to_string(), &self.file),
            [None] => {}
            _ => say(&format!(
                "note: the attempts of {} have several time limits; one is simulated for all: use --entry, or \
                 --timeout",
                self.file
            )),
        }
    }
}

/// Returns the name of a policy in the results.
fn name(found: &ConfigPolicy) -> String {
    found.path.replace([',', ':'], " ").trim().to_owned()
}

/// Runs a scenario, and writes the outputs.
fn run_request(request: &Request, args: &CommonArgs, term: &Term) -> Result<ExitCode, CliError> {
    let plan = Plan::new(request, &args.policy)?;
    let conditions = parse_conditions(&request.assert, &storm::metrics_of(&plan.spec, false))?;
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let (document, runs) = simulate(&plan, &seeds(request), &interrupt, term)?;
    let options = RenderOptions::for_screen(&term.stdout, term);
    finish(|| storm::report(&document), runs, &interrupt, &conditions, outputs, options)
}

/// Returns the seeds of a request.
fn seeds(request: &Request) -> Vec<Seed> {
    (0..u64::from(request.seed_count())).map(|offset| Seed::new(request.seed.wrapping_add(offset))).collect()
}
