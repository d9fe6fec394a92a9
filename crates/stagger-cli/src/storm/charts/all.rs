use stagger_sim::storm::StormReport;

use super::super::chart::Chart;
use super::super::record::Records;
use super::{active, arrivals, attempts, raster, recovery, trade_off};

/// All pictures that there are of this storm, the most telling first.
pub(crate) fn charts(storm: &StormReport, records: &Records) -> Vec<Chart> {
    let charts = [
        arrivals::chart(storm),
        active::chart(storm),
        recovery::chart(storm),
        attempts::chart(storm),
        raster::chart(storm),
        trade_off::chart(storm, records),
    ];
    charts.into_iter().flatten().collect()
}
