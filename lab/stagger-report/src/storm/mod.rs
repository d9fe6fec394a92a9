//! The report of a storm: several policies in one scenario, simulated or measured.
//!
//! It is made from the simulator's document `stagger.storm/1`, over the metrics of its scenario, so no format can differ
//! from the JSON.

mod charts;
mod conclusion;
mod figures;
mod measurements;
mod outage;
#[cfg(test)]
mod samples;
mod subject;
mod timeline;

use stagger_sim::storm::StormReport;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::to_json;

use self::charts::{active, arrivals, attempts, raster, recovery, trade_off};
pub use self::figures::metrics_of;
pub use self::measurements::{unreliable, verdict_on};
pub use self::timeline::{SAMPLED_CLIENTS, downsample};
use crate::report::{Part, Report};

/// Returns the report of a storm.
pub fn report(storm: &StormReport) -> Result<Report, CliError> {
    let figures = figures::figures(storm);
    let charts =
        [arrivals(storm), active(storm), recovery(storm), attempts(storm), raster(storm), trade_off(storm, &figures)];
    let mut charts = charts.into_iter().flatten().map(Part::Chart);
    // The picture that shows most comes before the figures.
    let mut parts: Vec<Part> = [Part::Scenario].into_iter().chain(charts.next()).collect();
    parts.extend([
        Part::Figures,
        Part::Policies("Policies", figures::policies(storm)),
        Part::Answer,
        Part::Notes("How it was measured", measurements::measurements(storm)),
    ]);
    parts.extend(charts);
    Ok(Report {
        heading: if measurements::is_measured(storm) {
            "Retry storm, measured and simulated"
        } else {
            "Retry storm, simulated"
        },
        scenario: figures::describe(storm),
        seeds: figures::seeds(storm),
        answer: [conclusion::conclusion(storm, &figures), measurements::agreements(storm)].concat(),
        warnings: measurements::unreliable_runs(storm),
        parts,
        document: to_json(storm)?,
        figures,
    })
}
