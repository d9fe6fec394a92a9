use csv::Writer;
use serde_json::Value;
use stagger_sim::storm::StormReport;

use super::record::Records;
use super::sampled::Timeline;
use crate::error::CliError;

/// The figures, a line for each run; what never came to be is empty.
///
/// # Errors
/// It cannot be written.
pub(crate) fn figures(records: &Records) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    let heads = ["strategy", "policy", "guards", "seed"].into_iter();
    let mut write = |row: Vec<String>| writer.write_record(row).map_err(failed);
    write(heads.chain(records.measures.iter().map(|measure| measure.key)).map(str::to_owned).collect())?;
    for row in &records.rows {
        for run in &row.runs {
            let mut cells = vec![row.name.clone(), row.policy.clone(), row.guards.clone().unwrap_or_default()];
            let keys = ["seed"].into_iter().chain(records.measures.iter().map(|measure| measure.key));
            cells.extend(keys.map(|key| match run.get(key) {
                None | Some(Value::Null) => String::new(),
                Some(value) => value.to_string(),
            }));
            write(cells)?;
        }
    }
    finished(writer)
}

/// What happened in each bin of each run, a line for each.
///
/// # Errors
/// It cannot be written.
pub(crate) fn series(storm: &StormReport) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(["strategy", "seed", "t_s", "attempts", "successes"]).map_err(failed)?;
    for strategy in &storm.strategies {
        for run in &strategy.runs {
            let Some(timeline) = Timeline::of(&run.figures) else {
                continue;
            };
            let bins = timeline.attempts.len().max(timeline.successes.len());
            for bin in 0..bins {
                let count = |series: &[f64]| series.get(bin).copied().unwrap_or(0.0).to_string();
                writer
                    .write_record([
                        &*strategy.name,
                        &run.seed.to_string(),
                        // Tenths of a second, without what binary fractions put behind them.
                        &((bin as f64 * timeline.bin_s * 1e3).round() / 1e3).to_string(),
                        &count(&timeline.attempts),
                        &if timeline.successes.is_empty() { String::new() } else { count(&timeline.successes) },
                    ])
                    .map_err(failed)?;
            }
        }
    }
    finished(writer)
}

fn finished(writer: Writer<Vec<u8>>) -> Result<Vec<u8>, CliError> {
    writer.into_inner().map_err(|error| CliError::io("cannot write CSV", error.into_error()))
}

fn failed(error: csv::Error) -> CliError {
    CliError::io("cannot write CSV", error)
}
