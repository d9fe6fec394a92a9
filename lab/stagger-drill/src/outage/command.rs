//! The command `stagger drill outage`.

use std::process::ExitCode;
use std::sync::Arc;

use stagger_report::condition::parse_conditions;
use stagger_report::output::{Outputs, RunCount, finish};
use stagger_report::progress::Interrupt;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::plot::RenderOptions;

use super::document::{Document, PolicyEntry, Scenario};
use super::report::{metrics, report};
use super::run::OutageDrill;
use super::settings::OutageSettings;
use crate::args::DrillArgs;
use crate::machine::TimerLag;

/// Runs `stagger drill outage`.
pub(crate) fn run(args: &DrillArgs, term: &Term) -> Result<ExitCode, CliError> {
    let settings = OutageSettings::new(args)?;
    let conditions = parse_conditions(&args.assert, &metrics())?;
    let outputs = Outputs::open(&args.outputs)?;
    let interrupt = Interrupt::install()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start the clients", error))?;
    let timer_lag = Arc::new(TimerLag::default());
    runtime.spawn(Arc::clone(&timer_lag).watch());
    let drill =
        OutageDrill { settings: &settings, runtime: &runtime, timer_lag: &timer_lag, interrupt: &interrupt, term };
    let mut policies: Vec<PolicyEntry> = Vec::new();
    for (name, policy) in &settings.policies {
        match drill.run(name, policy)? {
            Some(entry) => policies.push(entry),
            None => break,
        }
    }
    runtime.shutdown_background();
    let counts = RunCount { planned: settings.policies.len(), finished: policies.len() };
    let report = || report(&Document::new(Scenario::new(&settings), policies));
    finish(report, counts, &interrupt, &conditions, outputs, RenderOptions::for_screen(&term.stdout, term))
}
