use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::super::chart::Chart;
use super::super::sampled::{Timeline, points};
use super::super::summary::until;
use super::parts::{NEARLY_EVERY, RESOLUTION, ROWS, TOLD_APART, about, firsts, line};
use crate::plot::{Axis, Figure, Hue, Point, Series, Shape, Unit, Weight};

/// Bins of a second.
const TENTHS: usize = 10;

/// Connections that are up, or requests that succeed, over time.
pub(crate) fn chart(storm: &StormReport) -> Option<Chart> {
    let until = until(storm, NEARLY_EVERY);
    let (title, label, target, is_sum) = match &storm.scenario {
        ScenarioSpec::Reconnect(scene) => ("Connections over time", "connected clients", scene.clients as f64, true),
        ScenarioSpec::Outage(scene) => ("Successes over time", "successes in 1s", scene.rate, false),
        _ => return None,
    };
    let series: Vec<(usize, &str, f64, Vec<f64>)> = firsts(storm)
        .take(TOLD_APART)
        .filter_map(|(nth, name, figures)| {
            let timeline = Timeline::of(figures)?;
            let (mut levels, mut bin_s) = (timeline.successes, timeline.bin_s);
            let bins = (until / bin_s).ceil() as usize;
            if !is_sum {
                // In tenths of a second chance would hide everything else; a second that is not whole would look like a fall.
                levels = levels.chunks_exact(TENTHS).map(|second| second.iter().sum()).collect();
                bin_s *= TENTHS as f64;
            } else {
                let mut sum = 0.0;
                levels.iter_mut().for_each(|level| {
                    sum += *level;
                    *level = sum;
                });
                // Who is connected stays so.
                levels.resize(bins.max(levels.len()), sum);
            }
            Some((nth, name, bin_s, levels))
        })
        .collect();
    let lines = series
        .iter()
        .map(|(nth, name, bin_s, levels)| line(name, *nth, Shape::Line(points(levels, *bin_s, until, RESOLUTION))));
    let ends = [0.0, until].map(|x| Point { x, y: target });
    let aim = Series {
        name: Some(if is_sum { "all clients" } else { "what is asked for" }.to_owned()),
        shape: Shape::Line(ends.to_vec()),
        hue: Hue::Ink,
        weight: Weight::Light,
    };
    let mut heads = vec!["at".to_owned()];
    heads.extend(series.iter().map(|(_, name, _, _)| format!("{label}, {name}")));
    let row = |at: usize| {
        let time = (at + 1) as f64 * until / ROWS as f64;
        let level = |(_, _, bin_s, levels): &(usize, &str, f64, Vec<f64>)| {
            let bin = ((time / bin_s).round() as usize).saturating_sub(1);
            Unit::Count.label(levels.get(bin).copied().unwrap_or(0.0))
        };
        let time = Unit::Seconds.label((time * 1e3).round() / 1e3);
        [time].into_iter().chain(series.iter().map(level)).collect()
    };
    Some(Chart {
        slug: "active",
        title,
        about: about("", storm),
        figures: vec![Figure {
            title: title.to_owned(),
            description: format!("{title}, up to {}.", Unit::Count.label(target)),
            x: Axis::new("time", Unit::Seconds).including(0.0).including(until),
            y: Axis::new(label, Unit::Count).including(0.0),
            series: [aim].into_iter().chain(lines).collect(),
        }],
        logarithmic: Vec::new(),
        heads,
        rows: (0..ROWS).map(row).collect(),
    })
}
