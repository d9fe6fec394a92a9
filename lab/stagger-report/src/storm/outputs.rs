//! The flags of the outputs, and their targets, which are opened before anything is simulated.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{Target, open_directory};

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
            ("--output", Format::Html, &args.output),
            ("--json", Format::Json, &args.json),
            ("--csv", Format::Csv, &args.csv),
            ("--csv-series", Format::CsvSeries, &args.csv_series),
            ("--md", Format::Markdown, &args.md),
        ];
        let requested = requested.into_iter().filter_map(|(flag, format, path)| Some((flag, format, path.as_deref()?)));
        let to_stdout = requested.clone().filter(|(.., path)| *path == Path::new("-")).map(|(flag, ..)| flag);
        let to_stdout: Vec<&str> = to_stdout.collect();
        if let [first, second, ..] = to_stdout[..] {
            return Err(CliError::usage(format_args!(
                "{first} and {second} both write to standard output; write one of them to a file: {second}=FILE"
            )));
        }
        let open = |(_, format, path)| Ok((format, Target::open(path)?));
        let mut targets: Vec<(Format, Target)> = requested.map(open).collect::<Result<_, CliError>>()?;
        targets.sort_by_key(|(format, _)| *format);
        Ok(Self { targets, svg: args.svg.as_deref().map(open_directory).transpose()? })
    }

    /// Returns whether an output replaces the summary on standard output.
    pub fn uses_stdout(&self) -> bool {
        self.targets.iter().any(|(_, target)| matches!(target, Target::Stdout))
    }
}
