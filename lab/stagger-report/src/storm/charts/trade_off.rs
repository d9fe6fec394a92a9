//! The chart that compares policies: load of the server against recovery of the clients.

use stagger_sim::storm::{Metric, MetricValue, RunReport, ScenarioSpec, StormReport, StrategyReport};
use stagger_terminal::plot::{Axis, Figure, Point, Series, Shape};

use super::common::{line, simulated_line};
use crate::report::{Chart, Figures};
use crate::storm::figures::unit;
use crate::storm::subject::{name_of_curve, subjects};

/// Returns the chart of server load against client recovery time, one point per run.
pub(crate) fn trade_off(storm: &StormReport, figures: &Figures) -> Option<Chart> {
    let (cost, time) = axes(&storm.scenario)?;
    let value = |metric: &Metric, run: &RunReport| metric.value(&run.figures).map(MetricValue::as_f64);
    let points = |row: &StrategyReport| -> Vec<Point> {
        row.runs.iter().filter_map(|run| Some(Point { x: value(time, run)?, y: value(cost, run)? })).collect()
    };
    // The values of the last swept setting form a curve. Guards do not: there is nothing between two of them.
    let mut families: Vec<(&str, Vec<Point>)> = Vec::new();
    let mut simulations: Vec<(usize, Vec<Point>)> = Vec::new();
    let policies = subjects(storm);
    for policy in &policies {
        let row = &storm.strategies[policy.row];
        let family = if policy.simulated.is_some() { policy.name } else { name_of_curve(row) };
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, curve)) => curve.extend(points(row)),
            None => families.push((family, points(row))),
        }
        simulations.extend(policy.simulated.map(|row| (families.len() - 1, points(&storm.strategies[row]))));
    }
    // One point has nothing to be compared with.
    if families.iter().map(|(_, points)| points.len()).sum::<usize>() < 2 {
        return None;
    }
    let mut series: Vec<Series> = Vec::new();
    if families.len() < policies.len() {
        let lines = families.iter().enumerate();
        series.extend(lines.map(|(nth, (name, curve))| line(name, nth, Shape::Line(curve.clone()))));
    }
    series
        .extend(families.iter().enumerate().map(|(nth, (name, curve))| line(name, nth, Shape::Points(curve.clone()))));
    series.extend(simulations.into_iter().map(|(nth, points)| simulated_line(nth, Shape::Points(points))));
    let columns = [figures.of(time.key), figures.of(cost.key)];
    let row = |(at, row): (usize, &StrategyReport)| {
        [row.name.clone()].into_iter().chain(columns.iter().map(|column| column[at].text.clone())).collect()
    };
    Some(Chart {
        slug: "trade-off",
        title: "Trade-off between server load and recovery",
        caption: "Lower is better for the server, further left is better for the clients. Runs that never recover are \
            not shown."
            .to_owned(),
        figures: vec![Figure {
            title: format!("{} by {}", cost.heading, time.heading),
            description: format!("{} of each policy by {}.", cost.heading, time.heading),
            x: Axis::new(time.heading, unit(time)).including(0.0),
            // Labels of counts are whole.
            y: Axis::new(cost.heading, unit(cost)).including(0.0).including(1.0),
            series,
        }],
        logarithmic: Vec::new(),
        heads: vec!["policy".to_owned(), time.heading.to_owned(), cost.heading.to_owned()],
        rows: storm.strategies.iter().enumerate().map(row).collect(),
    })
}

/// Returns the metrics of the server's load and of the clients' time.
fn axes(spec: &ScenarioSpec) -> Option<(&'static Metric, &'static Metric)> {
    let (cost, time) = match spec {
        ScenarioSpec::Reconnect(_) => ("peak_1s", "recovered_p99_s"),
        ScenarioSpec::Fluid(_) => ("peak_1s", "t99_s"),
        ScenarioSpec::Outage(_) => ("amplification", "recovery_s"),
        ScenarioSpec::Occ(_) => ("calls_per_client", "time_s"),
        _ => return None,
    };
    let metric = |key: &str| spec.metrics().iter().find(|metric| metric.key == key);
    Some((metric(cost)?, metric(time)?))
}

#[cfg(test)]
mod tests {
    use stagger_sim::storm::{Better, Importance, Quantity};

    use super::*;
    use crate::storm::samples::every_scenario;

    #[test]
    fn the_axes_are_in_every_table() {
        for spec in every_scenario() {
            let (cost, time) = axes(&spec).unwrap();
            assert_eq!((cost.importance, time.importance), (Importance::Primary, Importance::Primary), "{spec:?}");
            assert_eq!((cost.better, time.better, time.quantity), (Better::Lower, Better::Lower, Quantity::Seconds));
        }
    }
}
