use stagger_sim::storm::Storm;

use super::charts::charts;
use super::outputs::Outputs;
use super::record::Records;
use super::{csv, html, markdown, summary, svg};
use crate::error::CliError;
use crate::output::{print, to_json};
use crate::plot::RenderOptions;

/// Writes everything that was asked for; what people read goes to standard output, unless something else does.
///
/// # Errors
/// Something cannot be written.
pub(crate) fn write(storm: &Storm, records: &Records, outputs: Outputs, look: RenderOptions) -> Result<(), CliError> {
    let takes_stdout = outputs.take_stdout();
    let Outputs { html, json, csv, csv_series, md, svg } = outputs;
    let document = to_json(storm)?;
    if svg.is_some() || html.is_some() {
        let charts = charts(storm, records);
        if let Some(directory) = svg {
            svg::write(storm, records, &charts, &directory)?;
        }
        if let Some(target) = html {
            target.write(html::page(storm, records, &charts, &document, &command_line()).as_bytes())?;
        }
    }
    if let Some(target) = csv {
        target.write(&csv::figures(records)?)?;
    }
    if let Some(target) = csv_series {
        target.write(&csv::series(storm)?)?;
    }
    if let Some(target) = md {
        target.write(markdown::table(storm, records).as_bytes())?;
    }
    if let Some(target) = json {
        target.write(document.as_bytes())?;
    }
    if takes_stdout { Ok(()) } else { print(summary::summary(storm, records, look).as_bytes()) }
}

/// What was typed, so that it can be typed again.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    // No word has a NUL byte, which is all that cannot be quoted.
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {words}")
}
