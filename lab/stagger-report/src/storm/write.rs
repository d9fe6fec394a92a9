//! Writes a report in the formats that were asked for, and ends the command with its assertions. The targets are opened
//! before anything is simulated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use csv::Writer;
use stagger_core::text::Outside;
use stagger_sim::storm::StormReport;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{Target, command_line, open_directory, print, say, to_json};
use stagger_terminal::plot::RenderOptions;
use stagger_terminal::plot::svg::{Page, document};

use super::assertion::Assertion;
use super::charts::{active, arrivals, attempts, raster, recovery, trade_off};
use super::html;
use super::measurements::{agreements, measurements, unreliable_runs};
use super::progress::Interrupt;
use super::results::{Results, describe};
use super::summary::{conclusion, seeds, summary};
use super::timeline::Timeline;
use crate::page::Chart;

/// Number of runs that were planned, and that finished.
#[derive(Clone, Copy, Debug)]
pub struct RunCount {
    pub planned: usize,
    pub finished: usize,
}

impl RunCount {
    /// Says which assertions failed and whether runs are missing, and returns the exit status.
    pub fn exit_code(self, failures: &[String], interrupt: &Interrupt) -> ExitCode {
        let Self { planned, finished } = self;
        failures.iter().for_each(|failure| say(&format!("assertion failed: {failure}")));
        if finished < planned {
            say(&format!("interrupted: {finished} of {planned} runs finished; the report contains only those"));
            return ExitCode::from(interrupt.exit_status());
        }
        if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Writes the outputs, checks the assertions, and returns the exit status.
pub fn finish(
    storm: &StormReport,
    runs: RunCount,
    interrupt: &Interrupt,
    assertions: &[Assertion],
    outputs: Outputs,
    options: RenderOptions,
) -> Result<ExitCode, CliError> {
    if runs.finished == 0 {
        say("interrupted before any run finished; nothing was written");
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    let results = Results::from_storm(storm);
    write(storm, &results, outputs, options)?;
    let asserted = results.assertion_targets();
    let failures: Vec<_> = assertions.iter().flat_map(|assertion| assertion.failures(&asserted)).collect();
    Ok(runs.exit_code(&failures, interrupt))
}

/// Writes all requested outputs.
fn write(storm: &StormReport, results: &Results<'_>, outputs: Outputs, options: RenderOptions) -> Result<(), CliError> {
    let document = to_json(storm)?;
    let needs_charts = outputs.svg.is_some() || outputs.targets.iter().any(|(format, _)| *format == Format::Html);
    let charts = if needs_charts { charts(storm, results) } else { Vec::new() };
    if let Some(directory) = &outputs.svg {
        write_charts(storm, results, &charts, directory)?;
    }
    outputs.write(
        |format| render(storm, results, &charts, &document, format, &command_line()),
        || summary(storm, results, options),
    )
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
        Format::Csv => csv_metrics(results)?,
        Format::CsvSeries => csv_series(storm)?,
        Format::Markdown => markdown(storm, results).into_bytes(),
        Format::Json => document.as_bytes().to_vec(),
    })
}

/// Returns all charts that the scenario supports, the most informative first.
fn charts(storm: &StormReport, results: &Results<'_>) -> Vec<Chart> {
    let charts =
        [arrivals(storm), active(storm), recovery(storm), attempts(storm), raster(storm), trade_off(storm, results)];
    charts.into_iter().flatten().collect()
}

/// Returns the metrics as CSV, one row per run. A value that does not exist is empty.
fn csv_metrics(results: &Results<'_>) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    let heads = ["strategy", "policy", "guards", "seed"].into_iter();
    let mut write = |row: Vec<String>| writer.write_record(row).map_err(csv_error);
    write(heads.chain(results.metrics.iter().map(|metric| metric.key)).map(str::to_owned).collect())?;
    for row in &results.rows {
        for run in &row.runs {
            let mut cells = vec![row.name.clone(), row.policy.clone(), row.guards.clone().unwrap_or_default()];
            cells.push(run.seed.to_string());
            let values = results.metrics.iter().map(|metric| metric.value(&run.figures));
            cells.extend(values.map(|value| value.map_or(String::new(), |value| value.to_string())));
            write(cells)?;
        }
    }
    into_bytes(writer)
}

/// Returns the time series as CSV, one row per run and bin.
fn csv_series(storm: &StormReport) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(["strategy", "seed", "t_s", "attempts", "successes"]).map_err(csv_error)?;
    for strategy in &storm.strategies {
        for run in &strategy.runs {
            let Some(timeline) = Timeline::from_figures(&run.figures) else {
                continue;
            };
            let bins = timeline.attempts.len().max(timeline.successes.len());
            for bin in 0..bins {
                let count = |series: &[f64]| series.get(bin).copied().unwrap_or(0.0).to_string();
                writer
                    .write_record([
                        &*strategy.name,
                        &run.seed.to_string(),
                        // Rounded to milliseconds, to hide the error of binary fractions.
                        &((bin as f64 * timeline.bin_s * 1e3).round() / 1e3).to_string(),
                        &count(&timeline.attempts),
                        &if timeline.successes.is_empty() { String::new() } else { count(&timeline.successes) },
                    ])
                    .map_err(csv_error)?;
            }
        }
    }
    into_bytes(writer)
}

/// Returns rows as CSV.
pub fn csv_text(rows: impl IntoIterator<Item = Vec<String>>) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    rows.into_iter().try_for_each(|row| writer.write_record(row)).map_err(csv_error)?;
    into_bytes(writer)
}

fn into_bytes(writer: Writer<Vec<u8>>) -> Result<Vec<u8>, CliError> {
    writer.into_inner().map_err(|error| CliError::io("cannot write CSV", error.into_error()))
}

fn csv_error(error: csv::Error) -> CliError {
    CliError::io("cannot write CSV", error)
}

/// Returns the table as Markdown, with the best value of each column in bold.
fn markdown(storm: &StormReport, results: &Results<'_>) -> String {
    let mut out = markdown_text(&describe(storm)) + "\n\n";
    let heads: Vec<&str> = results.table_metrics().map(|metric| metric.heading).collect();
    out.push_str(&format!("| strategy | {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len())));
    for (name, cells) in results.table(results.table_metrics()) {
        let cells =
            cells.iter().map(|cell| if cell.is_best { format!("**{}**", cell.text) } else { cell.text.clone() });
        out.push_str(&format!("| {} | {} |\n", markdown_text(name), cells.collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
    for (name, policy, _) in results.policies() {
        out.push_str(&format!("- {}: `{policy}`\n", markdown_text(&name)));
    }
    for remark in [unreliable_runs(storm), agreements(storm), measurements(storm)].into_iter().flatten() {
        out.push_str(&format!("- {}\n", markdown_text(&remark)));
    }
    out
}

/// Escapes text so that it contains no markup. Line breaks become spaces, since they would end the table row.
pub fn markdown_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => out.extend(['\\', c]),
            c if !Outside::shows(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Writes each chart to a file of its own.
fn write_charts(
    storm: &StormReport,
    results: &Results<'_>,
    charts: &[Chart],
    directory: &Path,
) -> Result<(), CliError> {
    for chart in charts {
        let page = Page {
            title: chart.title.to_owned(),
            subject: describe(storm),
            remarks: [Some(chart.caption.clone()), seeds(results)]
                .into_iter()
                .flatten()
                .chain(conclusion(storm, results))
                .chain(unreliable_runs(storm))
                .filter(|remark| !remark.is_empty())
                .collect(),
        };
        let target = Target::open(&directory.join(format!("{}.svg", chart.slug)))?;
        target.write(document(&page, &chart.figures).as_bytes())?;
    }
    Ok(())
}

/// Output formats of a report, and where each goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write a self-contained HTML report to FILE; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Print all metrics and series as JSON (schema stagger.storm/1), or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,

    /// Print the metrics as CSV, one row per run, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub csv: Option<PathBuf>,

    /// Print the time series as CSV, one row per 100 ms, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub csv_series: Option<PathBuf>,

    /// Print the table as Markdown, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub md: Option<PathBuf>,

    /// Write each chart to DIR as an SVG file
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
}

/// A format of the report, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Html,
    Csv,
    CsvSeries,
    Markdown,
    Json,
}

/// Opened targets of the requested outputs.
#[derive(Debug, Default)]
pub struct Outputs {
    pub targets: Vec<(Format, Target)>,
    /// A directory that exists and is writable.
    pub svg: Option<PathBuf>,
}

impl Outputs {
    /// Opens the targets of all requested outputs.
    pub fn open(args: &OutputArgs) -> Result<Self, CliError> {
        let requested = [
            ("--output", "html", Format::Html, &args.output),
            ("--json", "json", Format::Json, &args.json),
            ("--csv", "csv", Format::Csv, &args.csv),
            ("--csv-series", "csv", Format::CsvSeries, &args.csv_series),
            ("--md", "md", Format::Markdown, &args.md),
        ];
        let requested = requested
            .into_iter()
            .filter_map(|(flag, ending, format, path)| Some((flag, ending, format, path.as_deref()?)));
        let to_stdout = requested.clone().filter(|(.., path)| *path == Path::new("-")).map(|(flag, ..)| flag);
        let to_stdout: Vec<&str> = to_stdout.collect();
        if let [first, second, ..] = to_stdout[..] {
            return Err(CliError::usage(format_args!(
                "{first} and {second} both write to standard output; write one of them to a file: {second}=FILE"
            )));
        }
        let open = |(flag, ending, format, path)| Ok((format, Target::open_as(flag, ending, path)?));
        let mut targets: Vec<(Format, Target)> = requested.map(open).collect::<Result<_, CliError>>()?;
        targets.sort_by_key(|(format, _)| *format);
        Ok(Self { targets, svg: args.svg.as_deref().map(open_directory).transpose()? })
    }

    /// Returns whether an output replaces the summary on standard output.
    fn uses_stdout(&self) -> bool {
        self.targets.iter().any(|(_, target)| matches!(target, Target::Stdout))
    }

    /// Writes each format as `render` returns it. The summary goes to standard output, unless a format does.
    pub fn write(
        self,
        render: impl Fn(Format) -> Result<Vec<u8>, CliError>,
        summary: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        let uses_stdout = self.uses_stdout();
        for (format, target) in self.targets {
            target.write(&render(format)?)?;
        }
        if uses_stdout { Ok(()) } else { print(summary().as_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(markdown_text("a|b<i>*c*\n[x](y)`z`"), "a\\|b&lt;i&gt;\\*c\\* \\[x\\](y)\\`z\\`");
    }
}
