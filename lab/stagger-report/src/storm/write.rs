use stagger_sim::storm::StormReport;

use super::charts::charts;
use super::outputs::{Format, Outputs};
use super::results::Results;
use super::{csv, html, markdown, summary, svg};
use crate::page::Chart;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{command_line, print, to_json};
use stagger_terminal::plot::RenderOptions;

/// Writes all requested outputs. The summary goes to standard output, unless another output does.
pub(super) fn write(
    storm: &StormReport,
    results: &Results<'_>,
    outputs: Outputs,
    options: RenderOptions,
) -> Result<(), CliError> {
    let uses_stdout = outputs.uses_stdout();
    let Outputs { targets, svg } = outputs;
    let document = to_json(storm)?;
    let needs_charts = svg.is_some() || targets.iter().any(|(format, _)| *format == Format::Html);
    let charts = if needs_charts { charts(storm, results) } else { Vec::new() };
    if let Some(directory) = svg {
        svg::write(storm, results, &charts, &directory)?;
    }
    for (format, target) in targets {
        let bytes = render(storm, results, &charts, &document, format, &command_line())?;
        target.write(&bytes)?;
    }
    if uses_stdout { Ok(()) } else { print(summary::summary(storm, results, options).as_bytes()) }
}

/// Returns the document in one format; `command` is the command line that reproduces it.
pub fn rendered(storm: &StormReport, format: Format, command: &str) -> Result<Vec<u8>, CliError> {
    let results = Results::from_storm(storm);
    let charts = if format == Format::Html { charts(storm, &results) } else { Vec::new() };
    render(storm, &results, &charts, &to_json(storm)?, format, command)
}

fn render(
    storm: &StormReport,
    results: &Results<'_>,
    charts: &[Chart],
    document: &str,
    format: Format,
    command: &str,
) -> Result<Vec<u8>, CliError> {
    Ok(match format {
        Format::Html => html::page(storm, results, charts, document, command).into_bytes(),
        Format::Csv => csv::metrics(results)?,
        Format::CsvSeries => csv::time_series(storm)?,
        Format::Markdown => markdown::table(storm, results).into_bytes(),
        Format::Json => document.as_bytes().to_vec(),
    })
}
