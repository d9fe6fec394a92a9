use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::super::summary::end_time;
use super::super::timeline::{Timeline, downsample};
use super::common::{
    RESOLUTION, ROWS, SHOWN_SHARE, by_policy, first_runs, limited_rows, line, simulated_line, with_limit_note,
};
use crate::page::Chart;
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Unit};

/// Bins per second.
const TENTHS: usize = 10;

/// Returns the chart of open connections, or of successful requests, over time.
pub(super) fn chart(storm: &StormReport) -> Option<Chart> {
    let until = end_time(storm, SHOWN_SHARE);
    let (title, label, is_sum) = match &storm.scenario {
        ScenarioSpec::Reconnect(_) => ("Connections over time", "connected clients", true),
        ScenarioSpec::Outage(_) => ("Successful requests over time", "successful requests in 1s", false),
        _ => return None,
    };
    let targets: Vec<f64> = storm.strategies.iter().map(|strategy| target(storm.scenario_of(strategy))).collect();
    let target = targets.iter().copied().fold(0.0, f64::max);
    // The rows of a sweep over the clients or the rate have no common target.
    let is_common = targets.iter().all(|other| other.total_cmp(&target).is_eq());
    let series: Vec<(usize, &str, (f64, Vec<f64>))> = first_runs(storm)
        .take(limited_rows(storm))
        .filter_map(|(nth, name, figures)| {
            let timeline = Timeline::from_figures(figures)?;
            let (mut levels, mut bin_s) = (timeline.successes, timeline.bin_s);
            let bins = (until / bin_s).ceil() as usize;
            if !is_sum {
                // Bins of 100 ms are too noisy. An incomplete last second would options like a drop.
                levels = levels.chunks_exact(TENTHS).map(|second| second.iter().sum()).collect();
                bin_s *= TENTHS as f64;
            } else {
                let mut sum = 0.0;
                levels.iter_mut().for_each(|level| {
                    sum += *level;
                    *level = sum;
                });
                // Connected clients stay connected.
                levels.resize(bins.max(levels.len()), sum);
            }
            Some((nth, name, (bin_s, levels)))
        })
        .collect();
    let curve = |(bin_s, levels): &(f64, Vec<f64>)| Shape::Line(downsample(levels, *bin_s, until, RESOLUTION));
    let policies = by_policy(storm, &series);
    let lines = policies.iter().map(|shown| line(shown.subject.name, shown.nth, curve(shown.data)));
    let simulated = policies.iter().filter_map(|shown| Some(simulated_line(shown.nth, curve(shown.simulated?))));
    let lines = lines.chain(simulated);
    let ends = Shape::Line([0.0, until].map(|x| Point { x, y: target }).to_vec());
    let target_line = Series::light(if is_sum { "all clients" } else { "request rate" }, Hue::INK, ends);
    let mut heads = vec!["time".to_owned()];
    heads.extend(series.iter().map(|(_, name, _)| format!("{label}, {name}")));
    let row = |at: usize| {
        let time = (at + 1) as f64 * until / ROWS as f64;
        let level = |(_, _, (bin_s, levels)): &(usize, &str, (f64, Vec<f64>))| {
            let bin = ((time / bin_s).round() as usize).saturating_sub(1);
            Unit::Count.label(levels.get(bin).copied().unwrap_or(0.0))
        };
        let time = Unit::Seconds.label((time * 1e3).round() / 1e3);
        [time].into_iter().chain(series.iter().map(level)).collect()
    };
    Some(Chart {
        slug: "active",
        title,
        caption: with_limit_note("", storm),
        figures: vec![Figure {
            title: title.to_owned(),
            description: format!("{title}, up to {}.", Unit::Count.label(target)),
            x: Axis::new("time", Unit::Seconds).including(0.0).including(until),
            y: Axis::new(label, Unit::Count).including(0.0),
            series: is_common.then_some(target_line).into_iter().chain(lines).collect(),
        }],
        logarithmic: Vec::new(),
        heads,
        rows: (0..ROWS).map(row).collect(),
    })
}

/// Returns the number of clients, or of requests per second, that are served when all is well.
const fn target(spec: &ScenarioSpec) -> f64 {
    match spec {
        ScenarioSpec::Reconnect(spec) => spec.clients as f64,
        ScenarioSpec::Outage(spec) => spec.rate,
        _ => 0.0,
    }
}
