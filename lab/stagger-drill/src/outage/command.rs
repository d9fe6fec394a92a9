//! The command `stagger drill outage`.

use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;

use stagger_report::metric::{failures, parse_conditions};
use stagger_report::storm::{Format, Interrupt, Outputs};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{Target, command_line, print, say, to_json};
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
    let (planned, finished) = (settings.policies.len(), policies.len());
    if finished == 0 {
        say("interrupted before any run finished; nothing was written");
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    let document = Document::new(Scenario::new(&settings), policies);
    write(&document, outputs, RenderOptions::for_screen(&term.stdout, term))?;
    let of = |policy: &PolicyEntry| failures(&policy.metrics(), &conditions, &format!("for {}, measured", policy.name));
    let failures: Vec<_> = document.policies.iter().flat_map(of).collect();
    failures.iter().for_each(|failure| say(&format!("assertion failed: {failure}")));
    if finished < planned {
        say(&format!("interrupted: {finished} of {planned} runs finished; the report contains only those"));
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes all requested outputs. The summary goes to standard output, unless another output does.
fn write(document: &Document, outputs: Outputs, options: RenderOptions) -> Result<(), CliError> {
    let uses_stdout = outputs.uses_stdout();
    let json = to_json(document)?;
    if let Some(directory) = outputs.svg {
        for chart in charts(document) {
            let remarks = [chart.caption].into_iter().chain(remarks(document)).collect();
            let page = Page { title: chart.title.to_owned(), subject: describe(document), remarks };
            let target = Target::open(&directory.join(format!("{}.svg", chart.slug)))?;
            target.write(svg_document(&page, &chart.figures).as_bytes())?;
        }
    }
    for (format, target) in outputs.targets {
        let bytes: Cow<'_, [u8]> = match format {
            Format::Html => page(document, &json, &command_line()).into_bytes().into(),
            Format::Csv => csv(document)?.into(),
            Format::CsvSeries => csv_series(document)?.into(),
            Format::Markdown => markdown(document).into_bytes().into(),
            Format::Json => json.as_bytes().into(),
        };
        target.write(&bytes)?;
    }
    if uses_stdout { Ok(()) } else { print(summary(document, options).as_bytes()) }
}
