use std::process::ExitCode;
use std::sync::Arc;

use stagger_sim::storm::Scene;

use super::args::DrillArgs;
use super::limits;
use super::report::report;
use super::run::{Ground, Run};
use super::settings::Settings;
use super::target::Theirs;
use super::timers::Lateness;
use crate::error::CliError;
use crate::output::say;
use crate::plot::RenderOptions;
use crate::storm::{Interrupt, Outputs, Runs, assertions, conclude};
use crate::term::Term;

/// `stagger drill`.
pub(crate) fn run(args: &DrillArgs, term: &Term) -> Result<ExitCode, CliError> {
    let settings = Settings::new(args)?;
    // Which figures there are depends on nothing but the kind of the scenario.
    let any = stagger_sim::reconnect::Scenario::builder(1).build().map_err(CliError::usage)?;
    let assertions = assertions(&args.assert, &Scene::from(&any))?;
    let (clients, fewer) = limits::clients(settings.clients)?;
    let (listen_backlog, shorter) = limits::listen_backlog(settings.listen_backlog, clients)?;
    let theirs = Theirs::of(args)?;
    let to_loopback =
        theirs.as_ref().is_none_or(|theirs| theirs.address.is_ipv4() && theirs.address.ip().is_loopback());
    let sources = limits::sources(clients, to_loopback)?;
    let outputs = Outputs::open(&args.outputs)?;
    for remark in [fewer, shorter.filter(|_| theirs.is_none())].into_iter().flatten() {
        say(&format!("note: {remark}"));
    }
    let interrupt = Interrupt::listen()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start the clients", error))?;
    let lateness = Arc::new(Lateness::default());
    runtime.spawn(Arc::clone(&lateness).watch());
    let ground = Ground {
        settings: &settings,
        clients,
        sources: &sources,
        listen_backlog,
        theirs: theirs.as_ref(),
        runtime: &runtime,
        lateness: &lateness,
        interrupt: &interrupt,
        term,
    };
    let mut runs: Vec<Run> = Vec::new();
    for (name, policy) in &settings.policies {
        match ground.run(name, policy)? {
            Some(run) => runs.push(run),
            None => break,
        }
    }
    runtime.shutdown_background();
    let storm = report(&settings, clients, &runs)?;
    let counts = Runs { planned: settings.policies.len(), finished: runs.len() };
    conclude(&storm, counts, &assertions, outputs, RenderOptions::for_screen(&term.stdout, term))
}
