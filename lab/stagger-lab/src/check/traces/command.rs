use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use stagger_traces::{Analyzer, Report};

use super::report::text;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{print, to_json};
use stagger_terminal::plot::RenderOptions;

/// Output of `stagger check --traces FILE --json`: schema `stagger.traces/1`.
///
/// Lengths of time are in nanoseconds. Later versions of the schema may add fields; existing fields keep their names and meanings.
#[derive(Serialize)]
struct Document<'a> {
    /// Always `stagger.traces/1`.
    schema: &'static str,
    /// The names of the files.
    files: Vec<String>,
    #[serde(flatten)]
    report: &'a Report,
}

/// Reads the files one after the other, and prints what they tell together.
pub(crate) fn run(files: &[PathBuf], as_json: bool, term: &Term) -> Result<ExitCode, CliError> {
    let mut analyzer = Analyzer::new();
    for file in files {
        read(&mut analyzer, file)?;
    }
    let report = analyzer.finish();
    let names: Vec<_> = files.iter().map(|file| name(file)).collect();
    let printed = if as_json {
        to_json(&Document { schema: "stagger.traces/1", files: names, report: &report })?
    } else {
        text(&names, &report, RenderOptions::for_screen(&term.stdout, term))
    };
    print(printed.as_bytes())?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

fn read(analyzer: &mut Analyzer, file: &Path) -> Result<(), CliError> {
    let reader: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(|error| CliError::io(format_args!("cannot open {}", file.display()), error))?)
    };
    analyzer.read(reader).map_err(|error| {
        let place = format!("{}:{}:{}", name(file), error.line(), error.column());
        CliError::io(format_args!("cannot read {place}"), io::Error::new(error.kind(), error.to_string()))
    })
}
