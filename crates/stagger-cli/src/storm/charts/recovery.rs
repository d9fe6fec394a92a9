use stagger_sim::storm::{RunFigures, ScenarioSpec, StormReport};

use super::super::chart::Chart;
use super::common::{MAX_LINES, RESOLUTION, first_runs, line, with_limit_note};
use crate::plot::{Axis, Figure, Point, Shape, Spacing, Unit};

/// Shares of the clients for which the table has the recovery time.
const SHARES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Returns the chart of the share of recovered clients, by the time since the server is up.
pub(crate) fn chart(storm: &StormReport) -> Option<Chart> {
    if !matches!(storm.scenario, ScenarioSpec::Reconnect(_)) {
        return None;
    }
    // The times of the rows of a sweep count from different ends of the outage.
    let down_for: Vec<f64> = storm.strategies.iter().map(|strategy| down_for(storm.scenario_of(strategy))).collect();
    let curves: Vec<(usize, &str, Vec<Point>)> = first_runs(storm)
        .take(MAX_LINES)
        .filter_map(|(nth, name, figures)| match figures {
            RunFigures::Reconnect(figures) => {
                let mut sum = 0.0;
                let share = |(bin, count): (usize, &u32)| {
                    sum += f64::from(*count);
                    Point { x: (bin + 1) as f64 * figures.bin_s - down_for[nth], y: sum / figures.clients as f64 }
                };
                let curve =
                    figures.connects.iter().enumerate().map(share).filter(|point| point.x > 0.0 && point.y > 0.0);
                Some((nth, name, curve.collect()))
            }
            _ => None,
        })
        .collect();
    let mut series = Vec::new();
    for (nth, name, curve) in &curves {
        let stride = curve.len().div_ceil(2 * RESOLUTION).max(1);
        let last = curve.len().saturating_sub(1);
        let thinned =
            curve.iter().enumerate().filter(|(at, _)| at % stride == 0 || *at == last).map(|(_, point)| *point);
        series.push(line(name, *nth, Shape::Line(thinned.collect())));
    }
    // Draw the points after all lines, so that no line hides them.
    for (nth, name, curve) in &curves {
        let marks = [0.5, 0.99].iter().filter_map(|share| reached(curve, *share)).collect();
        series.push(line(name, *nth, Shape::Points(marks)));
    }
    let mut heads = vec!["share of the clients".to_owned()];
    heads.extend(curves.iter().map(|(_, name, _)| format!("recovered after, {name}")));
    let row = |share: &f64| {
        let time = |(_, _, curve): &(usize, &str, Vec<Point>)| {
            reached(curve, *share)
                .map_or("never".to_owned(), |point| Unit::Seconds.label((point.x * 10.0).round() / 10.0))
        };
        [Unit::Share.label(*share)].into_iter().chain(curves.iter().map(time)).collect()
    };
    Some(Chart {
        slug: "recovery",
        title: "Recovery",
        caption: with_limit_note(
            "Share of the clients that have recovered, by the time since the server is up. Points mark 50% and 99%.",
            storm,
        ),
        figures: vec![Figure {
            title: "Recovered clients".to_owned(),
            description: "Share of the clients that have recovered, by the time since the server is up.".to_owned(),
            x: Axis::new("time since the server is up", Unit::Seconds).spaced(Spacing::Log),
            y: Axis::new("share of the clients", Unit::Share).including(0.0),
            series,
        }],
        logarithmic: Vec::new(),
        heads,
        rows: SHARES.iter().map(row).collect(),
    })
}

fn down_for(spec: &ScenarioSpec) -> f64 {
    match spec {
        ScenarioSpec::Reconnect(spec) => spec.down_for_s,
        _ => 0.0,
    }
}

fn reached(curve: &[Point], share: f64) -> Option<Point> {
    curve.iter().find(|point| point.y >= share).copied()
}
