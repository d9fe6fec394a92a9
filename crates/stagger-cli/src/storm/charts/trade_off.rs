use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::super::chart::Chart;
use super::super::measure::{Measure, Quantity};
use super::super::record::Records;
use super::parts::line;
use crate::plot::{Axis, Figure, Point, Series, Shape, Unit};

/// What a strategy costs the server against what it costs the clients, a point for each run.
pub(crate) fn chart(storm: &StormReport, records: &Records) -> Option<Chart> {
    let (cost, time) = match &storm.scenario {
        ScenarioSpec::Reconnect(_) => ("peak_1s", "recovered_p99_s"),
        ScenarioSpec::Fluid(_) => ("peak_1s", "t99_s"),
        ScenarioSpec::Outage(_) => ("amplification", "recovery_s"),
        ScenarioSpec::Occ(_) => ("calls_per_client", "time_s"),
        _ => return None,
    };
    let find = |key: &str| records.measures.iter().find(|measure| measure.key == key);
    let (cost, time) = (find(cost)?, find(time)?);
    let points = |row: &super::super::record::Record| -> Vec<Point> {
        row.runs.iter().filter_map(|run| Some(Point { x: time.read(run)?, y: cost.read(run)? })).collect()
    };
    // Strategies that differ in one setting are a curve; guards are nothing that there could be something between.
    let mut families: Vec<(&str, Vec<Point>)> = Vec::new();
    for row in &records.rows {
        let swept = row.name.rsplit_once(", ").filter(|(_, setting)| setting.contains('='));
        let family = swept.map_or(&*row.name, |(family, _)| family);
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, curve)) => curve.extend(points(row)),
            None => families.push((family, points(row))),
        }
    }
    let curves = families.iter().enumerate().filter(|_| families.len() < records.rows.len());
    let mut series: Vec<Series> =
        curves.map(|(nth, (name, curve))| line(name, nth, Shape::Line(curve.clone()))).collect();
    series
        .extend(families.iter().enumerate().map(|(nth, (name, curve))| line(name, nth, Shape::Points(curve.clone()))));
    let columns = [records.column(time), records.column(cost)];
    let row = |(at, row): (usize, &super::super::record::Record)| {
        [row.name.clone()].into_iter().chain(columns.iter().map(|column| column[at].text.clone())).collect()
    };
    Some(Chart {
        slug: "trade-off",
        title: "What it costs the server and the clients",
        about: "Better is lower, and further to the left. Who never recovers is not in the picture.".to_owned(),
        figures: vec![Figure {
            title: format!("{} by {}", cost.heading, time.heading),
            description: format!("{} of each strategy by {}.", cost.heading, time.heading),
            x: Axis::new(time.heading, unit(time)).including(0.0),
            y: Axis::new(cost.heading, unit(cost)).including(0.0),
            series,
        }],
        logarithmic: Vec::new(),
        heads: vec!["strategy".to_owned(), time.heading.to_owned(), cost.heading.to_owned()],
        rows: records.rows.iter().enumerate().map(row).collect(),
    })
}

const fn unit(measure: &Measure) -> Unit {
    match measure.quantity {
        Quantity::Seconds => Unit::Seconds,
        Quantity::Share => Unit::Share,
        _ => Unit::Count,
    }
}
