use std::borrow::Cow;

use stagger_sim::storm::StormReport;

use super::charts::charts;
use super::outputs::{Format, Outputs};
use super::results::Results;
use super::{csv, html, markdown, summary, svg};
use crate::output::error::CliError;
use crate::output::write::{command_line, print, to_json};
use crate::plot::RenderOptions;

/// Writes all requested outputs. The summary goes to standard output, unless another output does.
pub(crate) fn write(
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
        let bytes: Cow<'_, [u8]> = match format {
            Format::Html => html::page(storm, results, &charts, &document, &command_line()).into_bytes().into(),
            Format::Csv => csv::metrics(results)?.into(),
            Format::CsvSeries => csv::time_series(storm)?.into(),
            Format::Markdown => markdown::table(storm, results).into_bytes().into(),
            Format::Json => document.as_bytes().into(),
        };
        target.write(&bytes)?;
    }
    if uses_stdout { Ok(()) } else { print(summary::summary(storm, results, options).as_bytes()) }
}
