use stagger_sim::storm::{RunFigures, ScenarioSpec, StormReport};

use super::common::{RESOLUTION, by_policy, first_runs, limited_rows, line, simulated_line, with_limit_note};
use crate::page::Chart;
use stagger_terminal::plot::{Axis, Figure, Point, Shape, Spacing, Unit};

/// Shares of the clients for which the table has the recovery time.
const SHARES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Returns the chart of the share of recovered clients, by the time since the server is up.
pub(super) fn chart(storm: &StormReport) -> Option<Chart> {
    if !matches!(storm.scenario, ScenarioSpec::Reconnect(_)) {
        return None;
    }
    // The times of the rows of a sweep count from different ends of the outage.
    let down_for: Vec<f64> = storm.strategies.iter().map(|strategy| down_for(storm.scenario_of(strategy))).collect();
    let curves: Vec<(usize, &str, Vec<Point>)> = first_runs(storm)
        .take(limited_rows(storm))
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
    let thinned = |curve: &Vec<Point>| {
        let (stride, last) = (curve.len().div_ceil(2 * RESOLUTION).max(1), curve.len().saturating_sub(1));
        let kept = curve.iter().enumerate().filter(|(at, _)| at % stride == 0 || *at == last);
        Shape::Line(kept.map(|(_, point)| *point).collect())
    };
    let policies = by_policy(storm, &curves);
    let mut series = Vec::new();
    for shown in &policies {
        series.push(line(shown.subject.name, shown.nth, thinned(shown.data)));
    }
    for shown in &policies {
        series.extend(shown.simulated.map(|curve| simulated_line(shown.nth, thinned(curve))));
    }
    // Draw the points after all lines, so that no line hides them.
    for shown in &policies {
        let marks = [0.5, 0.99].iter().filter_map(|share| reached(shown.data, *share)).collect();
        series.push(line(shown.subject.name, shown.nth, Shape::Points(marks)));
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
