//! Writes a report in the formats that were asked for, and ends the command with its assertions. The targets are opened
//! before anything is simulated.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{Target, command_line, open_directory, print, say};
use stagger_terminal::plot::RenderOptions;
use stagger_terminal::plot::svg::{Page, document};

use crate::condition::{Condition, failures};
use crate::progress::Interrupt;
use crate::report::{Part, Report};
use crate::{page, text};

/// Number of runs that were planned, and that finished.
#[derive(Clone, Copy, Debug)]
pub struct RunCount {
    pub planned: usize,
    pub finished: usize,
}

/// Writes the outputs, checks the assertions, and returns the exit status. The report is that of the runs that finished,
/// which an interrupt may have made fewer.
pub fn finish(
    report: impl FnOnce() -> Result<Report, CliError>,
    RunCount { planned, finished }: RunCount,
    interrupt: &Interrupt,
    conditions: &[Condition],
    outputs: Outputs,
    options: RenderOptions,
) -> Result<ExitCode, CliError> {
    if finished == 0 {
        say("interrupted before any run finished; nothing was written");
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    let report = report()?;
    outputs.write(&report, options)?;
    let failures = failures(&report.figures, conditions);
    failures.iter().for_each(|failure| say(&format!("assertion failed: {failure}")));
    if finished < planned || interrupt.is_requested() {
        say(&format!("interrupted: {finished} of {planned} runs finished; the report contains only those"));
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    /// Returns the report in one format; `command` is the command line that reproduces it.
    pub fn rendered(&self, format: Format, command: &str) -> Result<Vec<u8>, CliError> {
        Ok(match format {
            Format::Html => page::page(self, command).into_bytes(),
            Format::Csv => text::csv(&self.figures)?,
            Format::Markdown => text::markdown(self).into_bytes(),
            Format::Json => self.document.as_bytes().to_vec(),
        })
    }

    /// Returns the report for a terminal.
    pub fn text(&self, options: RenderOptions) -> String {
        text::terminal(self, options)
    }

    /// Writes each picture to a file of a directory.
    fn write_pictures(&self, directory: &Path) -> Result<(), CliError> {
        let write = |name: &str, svg: &str| Target::open(&directory.join(format!("{name}.svg")))?.write(svg.as_bytes());
        for part in &self.parts {
            match part {
                Part::Graph(graph) => write("graph", &graph.document())?,
                Part::Map(map, _) => write("frontier", &map.document())?,
                Part::Chart(chart) => {
                    let remarks = [&chart.caption, &self.seeds].into_iter().chain(&self.answer).chain(&self.warnings);
                    let page = Page {
                        title: chart.title.to_owned(),
                        subject: self.scenario.clone(),
                        remarks: remarks.filter(|remark| !remark.is_empty()).cloned().collect(),
                    };
                    write(chart.slug, &document(&page, &chart.figures))?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Output formats of a report, and where each goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write a self-contained HTML report to FILE; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Print all metrics and series as JSON or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,

    /// Print the metrics as CSV, one row per run, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub csv: Option<PathBuf>,

    /// Print the table as Markdown, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub md: Option<PathBuf>,

    /// Write each chart to DIR as an SVG file
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
}

impl OutputArgs {
    /// Returns whether a format goes to standard output.
    pub fn uses_stdout(&self) -> bool {
        let paths = [&self.output, &self.json, &self.csv, &self.md];
        paths.into_iter().flatten().any(|path| path == Path::new("-"))
    }
}

/// A format of the report, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Html,
    Csv,
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

    /// Writes the report. The text goes to standard output, unless a format does.
    fn write(self, report: &Report, options: RenderOptions) -> Result<(), CliError> {
        let uses_stdout = self.uses_stdout();
        if let Some(directory) = &self.svg {
            report.write_pictures(directory)?;
        }
        let command = command_line();
        for (format, target) in self.targets {
            target.write(&report.rendered(format, &command)?)?;
        }
        if uses_stdout { Ok(()) } else { print(report.text(options).as_bytes()) }
    }
}
