//! The command `stagger drill outage`.

use std::process::ExitCode;
use std::sync::Arc;

use stagger_report::metric::{failures, parse_conditions};
use stagger_report::storm::{Format, Interrupt, Outputs, RunCount};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{Target, command_line, say, to_json};
use stagger_terminal::plot::RenderOptions;
use stagger_terminal::plot::svg::{Page, document as svg_document};

use super::charts::{charts, page};
use super::document::{Document, PolicyEntry, Scenario};
use super::report::{csv, csv_series, describe, markdown, remarks, summary};
use super::run::OutageDrill;
use super::settings::OutageSettings;
use crate::args::DrillArgs;
use crate::machine::TimerLag;

/// Runs `stagger drill outage`.
pub(crate) fn run(args: &DrillArgs, term: &Term) -> Result<ExitCode, CliError> {
    let settings = OutageSettings::new(args)?;
    // The names of the figures do not depend on the run.
    let conditions = parse_conditions(&args.assert, &PolicyEntry::default().metrics())?;
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
    if counts.finished == 0 {
        say("interrupted before any run finished; nothing was written");
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    let document = Document::new(Scenario::new(&settings), policies);
    write(&document, outputs, RenderOptions::for_screen(&term.stdout, term))?;
    let of = |policy: &PolicyEntry| failures(&policy.metrics(), &conditions, &format!("for {}, measured", policy.name));
    let failures: Vec<_> = document.policies.iter().flat_map(of).collect();
    Ok(counts.exit_code(&failures, &interrupt))
}

/// Writes all requested outputs.
fn write(document: &Document, outputs: Outputs, options: RenderOptions) -> Result<(), CliError> {
    let json = to_json(document)?;
    if let Some(directory) = &outputs.svg {
        for chart in charts(document) {
            let remarks = [chart.caption].into_iter().chain(remarks(document)).collect();
            let page = Page { title: chart.title.to_owned(), subject: describe(document), remarks };
            let target = Target::open(&directory.join(format!("{}.svg", chart.slug)))?;
            target.write(svg_document(&page, &chart.figures).as_bytes())?;
        }
    }
    let render = |format| {
        Ok(match format {
            Format::Html => page(document, &json, &command_line()).into_bytes(),
            Format::Csv => csv(document)?,
            Format::CsvSeries => csv_series(document)?,
            Format::Markdown => markdown(document).into_bytes(),
            Format::Json => json.clone().into_bytes(),
        })
    };
    outputs.write(render, || summary(document, options))
}
