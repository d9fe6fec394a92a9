use csv::Writer;
use stagger_sim::storm::StormReport;

use super::results::Results;
use super::timeline::Timeline;
use stagger_terminal::output::error::CliError;

/// Returns the metrics as CSV, one row per run. A value that does not exist is empty.
pub(super) fn metrics(results: &Results<'_>) -> Result<Vec<u8>, CliError> {
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
pub(super) fn time_series(storm: &StormReport) -> Result<Vec<u8>, CliError> {
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
