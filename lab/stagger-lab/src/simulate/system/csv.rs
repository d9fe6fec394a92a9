use super::document::Document;
use super::metric::metrics;
use stagger_report::storm::csv_text;
use stagger_terminal::output::error::CliError;

/// Returns the figures as CSV, one row per run. A value that does not exist is empty.
pub(super) fn figures(document: &Document) -> Result<Vec<u8>, CliError> {
    let heads = document.runs.first().map(|run| metrics(document, run)).unwrap_or_default();
    let heads = ["seed".to_owned()].into_iter().chain(heads.into_iter().map(|metric| metric.key));
    let rows = document.runs.iter().map(|run| {
        let values = metrics(document, run).into_iter().map(|metric| match metric.value {
            Some(_) if metric.key == "verdict" => metric.text(),
            value => value.map_or(String::new(), |value| value.to_string()),
        });
        [run.seed.to_string()].into_iter().chain(values).collect()
    });
    csv_text([heads.collect()].into_iter().chain(rows))
}

/// Returns the time series as CSV, one row per run and second.
pub(super) fn series(document: &Document) -> Result<Vec<u8>, CliError> {
    let mut heads = ["seed", "t_s", "requests", "goodput"].map(str::to_owned).to_vec();
    heads.extend(document.system.edges.iter().map(|edge| format!("{}/{}.attempts", edge.from, edge.to)));
    heads.extend(document.system.services.iter().map(|service| format!("{}.occupancy", service.name)));
    let mut rows = vec![heads];
    for run in &document.runs {
        for second in 0..run.requests.len() {
            let of = |counts: &[u64]| counts.get(second).copied().unwrap_or(0).to_string();
            let mut row = vec![run.seed.to_string(), second.to_string(), of(&run.requests), of(&run.goodput)];
            row.extend(run.edges.iter().map(|edge| of(&edge.attempts)));
            row.extend(run.services.iter().map(|of| of.occupancy.get(second).copied().unwrap_or(0).to_string()));
            rows.push(row);
        }
    }
    csv_text(rows)
}
