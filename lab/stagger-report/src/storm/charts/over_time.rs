//! Charts of a storm over time: attempts that arrive, connections or successes, and recovery.

use stagger_sim::storm::{RunFigures, ScenarioSpec, StormReport};
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Spacing, Span, Unit, Weight, corners};

use super::common::{
    RESOLUTION, RESOLUTION_OF_MANY, ROWS, SHOWN_SHARE, Shown, by_policy, first_runs, limited_rows, line, of_one_policy,
    simulated_line, with_limit_note,
};
use crate::report::Chart;
use crate::storm::timeline::{Timeline, downsample, end_time, resample};

/// Returns the chart of arrivals over time, one figure per policy, all on the same scale.
pub(crate) fn arrivals(storm: &StormReport) -> Option<Chart> {
    let until = end_time(storm, SHOWN_SHARE);
    let timelines: Vec<(usize, &str, Timeline)> = first_runs(storm)
        .filter_map(|(nth, name, figures)| Some((nth, name, Timeline::from_figures(figures)?)))
        .collect();
    let bin_s = timelines.first()?.2.bin_s;
    let max = timelines.iter().flat_map(|(_, _, timeline)| &timeline.attempts).copied().fold(0.0, f64::max);
    let servers: Vec<(f64, (f64, f64))> =
        storm.strategies.iter().map(|strategy| server(storm.scenario_of(strategy))).collect::<Option<_>>()?;
    let max = servers.iter().map(|(capacity, _)| capacity * bin_s).fold(max, f64::max);
    let figure = |spacing: Spacing, shown: &Shown<'_, Timeline>| {
        let (name, (capacity, down)) = (shown.subject.name, servers[shown.subject.row]);
        let lowest = if spacing == Spacing::Log { 1.0 } else { 0.0 };
        let mut series = Vec::new();
        if down.1 > down.0 {
            let ends = [down.0, down.1.min(until)].map(|x| Span { x, low: lowest, high: max });
            series.push(Series::light("server down", Hue::INK, Shape::Band(ends.to_vec())));
        }
        let steps = |timeline: &Timeline| downsample(&timeline.attempts, bin_s, until, RESOLUTION_OF_MANY);
        let curves = of_one_policy(shown, |timeline| Shape::Steps(steps(timeline)));
        if let (Spacing::Linear, Some(top)) = (spacing, curves.last()) {
            let spans = corners(&steps(shown.data)).into_iter().map(|Point { x, y }| Span { x, low: lowest, high: y });
            series.push(Series {
                name: None,
                weight: Weight::Light,
                shape: Shape::Band(spans.collect()),
                ..top.clone()
            });
        }
        series.extend(curves);
        let ends = [0.0, until].map(|x| Point { x, y: capacity * bin_s });
        series.push(Series::light("server capacity", Hue::INK, Shape::Line(ends.to_vec())));
        let peak = shown.data.attempts.iter().copied().fold(0.0, f64::max);
        Figure {
            title: name.to_owned(),
            description: format!(
                "Attempts of {name} over time, with a peak of {} in 100 ms.",
                Unit::Count.label(peak.round())
            ),
            x: Axis::new("time", Unit::Seconds).including(0.0).including(until),
            y: Axis::new("attempts in 100ms", Unit::Count).spaced(spacing).including(lowest).including(max),
            series,
        }
    };
    let policies = by_policy(storm, &timelines);
    let width = until / ROWS as f64;
    let columns: Vec<Vec<f64>> =
        timelines.iter().map(|(_, _, t)| resample(&t.attempts, t.bin_s, until, ROWS)).collect();
    let mut heads = vec!["from".to_owned(), "to".to_owned()];
    heads.extend(timelines.iter().map(|(_, name, _)| format!("attempts of {name}")));
    let row = |at: usize| {
        let ends = [at, at + 1].map(|at| Unit::Seconds.label((at as f64 * width * 1e3).round() / 1e3));
        ends.into_iter().chain(columns.iter().map(|column| Unit::Count.label(column[at].round()))).collect()
    };
    Some(Chart {
        slug: "arrivals",
        title: "Attempts over time",
        caption:
            "Attempts that arrive at the server per 100 ms, until 99.9% of all attempts have arrived. All charts use \
             the same scale."
                .to_owned(),
        figures: policies.iter().map(|shown| figure(Spacing::Linear, shown)).collect(),
        logarithmic: policies.iter().map(|shown| figure(Spacing::Log, shown)).collect(),
        heads,
        rows: (0..ROWS).map(row).collect(),
    })
}

/// Returns the capacity of the server, and the start and the end of its outage.
const fn server(spec: &ScenarioSpec) -> Option<(f64, (f64, f64))> {
    match spec {
        ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec) => Some((spec.rate, (0.0, spec.down_for_s))),
        ScenarioSpec::Outage(spec) => Some((spec.capacity, (spec.start_s, spec.start_s + spec.duration_s))),
        _ => None,
    }
}

/// Bins per second.
const TENTHS: usize = 10;

/// Returns the chart of open connections, or of successful requests, over time.
pub(crate) fn active(storm: &StormReport) -> Option<Chart> {
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
                // Bins of 100 ms are too noisy. An incomplete last second would look like a drop.
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
            series: if is_common { [target_line].into_iter().chain(lines).collect() } else { lines.collect() },
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

/// Shares of the clients for which the table has the recovery time.
const SHARES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Returns the chart of the share of recovered clients, by the time since the server is up.
pub(crate) fn recovery(storm: &StormReport) -> Option<Chart> {
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
        let time = |(_, _, curve): &(usize, &str, Vec<Point>)| match reached(curve, *share) {
            Some(point) => Unit::Seconds.label((point.x * 10.0).round() / 10.0),
            None => "never".to_owned(),
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
