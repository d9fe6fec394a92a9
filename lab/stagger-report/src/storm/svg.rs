use std::path::Path;

use stagger_sim::storm::StormReport;

use super::measurements::unreliable_runs;
use super::results::{Results, describe};
use super::summary::{conclusion, seeds};
use crate::page::Chart;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::target::Target;
use stagger_terminal::plot::svg::{Page, document};

/// Writes each chart to a file of its own.
pub(super) fn write(
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
