use stagger_sim::storm::StormReport;

use super::chart::Chart;
use super::observed::doubtful;
use super::outputs::Directory;
use super::record::{Records, described};
use super::summary::{runs, verdict};
use crate::error::CliError;
use crate::plot::svg::{Page, document};

/// Writes each picture into a file of its own.
///
/// # Errors
/// One cannot be written.
pub(crate) fn write(
    storm: &StormReport,
    records: &Records,
    charts: &[Chart],
    directory: &Directory,
) -> Result<(), CliError> {
    for chart in charts {
        let page = Page {
            title: chart.title.to_owned(),
            subject: described(&storm.scenario),
            remarks: [Some(chart.about.clone()), runs(records), verdict(storm, records)]
                .into_iter()
                .flatten()
                .chain(doubtful(storm))
                .filter(|remark| !remark.is_empty())
                .collect(),
        };
        directory.write(&format!("{}.svg", chart.slug), document(&page, &chart.figures).as_bytes())?;
    }
    Ok(())
}
