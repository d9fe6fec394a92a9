use stagger_sim::storm::Storm;

use super::charts::charts;
use super::outputs::Outputs;
use super::results::Results;
use super::{csv, html, markdown, summary, svg};
use crate::error::CliError;
use crate::output::{print, to_json};
use crate::plot::Look;

/// Writes everything that was asked for; what people read goes to standard output, unless something else does.
///
/// # Errors
/// Something cannot be written.
pub(crate) fn write(storm: &Storm, results: &Results, outputs: Outputs, look: Look) -> Result<(), CliError> {
    let takes_stdout = outputs.take_stdout();
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
    if takes_stdout { Ok(()) } else { print(summary::summary(storm, results, look).as_bytes()) }
}

/// What was typed, so that it can be typed again.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // No word has a NUL byte, which is all that cannot be quoted.
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {words}")
}
