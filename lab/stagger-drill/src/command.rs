//! The command `stagger drill`.

use std::process::ExitCode;
use std::sync::Arc;

use stagger_core::Policy;
use stagger_report::condition::parse_conditions;
use stagger_report::output::{Outputs, RunCount, finish};
use stagger_report::progress::Interrupt;
use stagger_report::storm;
use stagger_sim::storm::ScenarioSpec;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::say;
use stagger_terminal::plot::RenderOptions;

use super::args::{CommandClients, DrillArgs, DrillScenario, Settings};
use super::drill::{Drill, RunError};
use super::machine::TimerLag;
use super::observed::Run;
use super::report::report;
use super::server::ExternalServer;
use super::{command_clients, limits, outage};

/// Runs `stagger drill`.
pub fn run(args: &DrillArgs, term: &Term) -> Result<ExitCode, CliError> {
    args.check()?;
    if args.scenario == DrillScenario::Outage {
        return outage::run(args, term);
    }
    let settings = Settings::new(args)?;
    // The names of the metrics depend on the kind of the scenario alone, so any scenario of it will do.
    let any = stagger_sim::reconnect::ReconnectScenario::builder(1).build().map_err(CliError::usage)?;
    let conditions = parse_conditions(&args.assert, &storm::metrics_of(&ScenarioSpec::from(&any), true))?;
    let command_clients = settings.command_clients.as_ref();
    // A relay in front of the clients' own server has a second connection for each.
    let connections_per_client = match command_clients {
        Some(CommandClients { server: Some(_), .. }) => 2,
        _ => 1,
    };
    let (clients, clients_note) = limits::clients(settings.clients, connections_per_client)?;
    let (listen_backlog, backlog_note) = limits::listen_backlog(settings.listen_backlog, clients)?;
    let external = ExternalServer::from_args(args)?;
    let to_loopback = match &external {
        Some(external) => external.address.is_ipv4() && external.address.ip().is_loopback(),
        None => true,
    };
    // Clients of a command choose their addresses themselves.
    let sources = limits::sources(clients, to_loopback && command_clients.is_none())?;
    let outputs = Outputs::open(&args.outputs)?;
    if let Some(note) = clients_note {
        say(&format!("note: {note}"));
    }
    // The listen backlog of an external server is not ours.
    if let Some(note) = backlog_note
        && external.is_none()
    {
        say(&format!("note: {note}"));
    }
    let interrupt = Interrupt::install()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start the clients", error))?;
    let timer_lag = Arc::new(TimerLag::default());
    runtime.spawn(Arc::clone(&timer_lag).watch());
    let drill = Drill {
        settings: &settings,
        clients,
        sources: &sources,
        listen_backlog,
        external: external.as_ref(),
        command_clients,
        runtime: &runtime,
        timer_lag: &timer_lag,
        interrupt: &interrupt,
        term,
    };
    let mut runs: Vec<Run> = Vec::new();
    for (name, policy) in &settings.policies {
        match run_policy(&drill, name, policy)? {
            Some(run) => runs.push(run),
            None => break,
        }
    }
    runtime.shutdown_background();
    let counts = RunCount { planned: settings.policies.len(), finished: runs.len() };
    let report = || storm::report(&report(&settings, clients, &runs)?);
    finish(report, counts, &interrupt, &conditions, outputs, RenderOptions::for_screen(&term.stdout, term))
}

/// Runs the drill with one policy; returns `None` if it was interrupted.
fn run_policy(drill: &Drill<'_>, name: &str, policy: &Policy) -> Result<Option<Run>, CliError> {
    let run = match drill.command_clients {
        Some(clients) => command_clients::run(drill, clients, name, policy),
        None => drill.run_own_clients(name, policy),
    };
    match run {
        Ok(run) => Ok(Some(run)),
        Err(RunError::Interrupted) => Ok(None),
        Err(RunError::Failed(error)) => Err(error),
    }
}
