use stagger_sim::storm::StormReport;

use super::charts::charts;
use super::outputs::Outputs;
use super::results::Results;
use super::{csv, html, markdown, summary, svg};
use crate::output::error::CliError;
use crate::output::write::{print, to_json};
use crate::plot::RenderOptions;

/// Writes all requested outputs. The summary goes to standard output, unless another output does.
pub(crate) fn write(
    storm: &StormReport,
    results: &Results<'_>,
    outputs: Outputs,
    options: RenderOptions,
) -> Result<(), CliError> {
    let uses_stdout = outputs.uses_stdout();
    let Outputs { html, json, csv, csv_series, md, svg } = outputs;
    let document = to_json(storm)?;
    if svg.is_some() || html.is_some() {
        let charts = charts(storm, results);
        if let Some(directory) = svg {
            svg::write(storm, results, &charts, &directory)?;
        }
        if let Some(target) = html {
            target.write(html::page(storm, results, &charts, &document, &command_line()).as_bytes())?;
        }
    }
    if let Some(target) = csv {
        target.write(&csv::metrics(results)?)?;
    }
    if let Some(target) = csv_series {
        target.write(&csv::time_series(storm)?)?;
    }
    if let Some(target) = md {
        target.write(markdown::table(storm, results).as_bytes())?;
    }
    if let Some(target) = json {
        target.write(document.as_bytes())?;
    }
    if uses_stdout { Ok(()) } else { print(summary::summary(storm, results, options).as_bytes()) }
}

/// Returns the command line, quoted so that it can be pasted into a shell.
fn command_line() -> String {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Fails only for NUL bytes, which an argument cannot contain.
    let args = shlex::try_join(args.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {args}")
}
