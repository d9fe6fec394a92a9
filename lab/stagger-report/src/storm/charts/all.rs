use stagger_sim::storm::StormReport;

use super::super::results::Results;
use super::{active, arrivals, attempts, raster, recovery, trade_off};
use crate::page::Chart;

/// Returns all charts that the scenario supports, the most informative first.
pub(crate) fn charts(storm: &StormReport, results: &Results<'_>) -> Vec<Chart> {
    let charts = [
        arrivals::chart(storm),
        active::chart(storm),
        recovery::chart(storm),
        attempts::chart(storm),
        raster::chart(storm),
        trade_off::chart(storm, results),
    ];
    charts.into_iter().flatten().collect()
}
