use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::super::summary::end_time;
use super::super::timeline::{Timeline, downsample, resample};
use super::common::{RESOLUTION_OF_MANY, ROWS, SHOWN_SHARE, Shown, by_policy, first_runs, of_one_policy};
use crate::page::Chart;
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Spacing, Span, Unit, Weight, corners};

/// Returns the chart of arrivals over time, one figure per policy, all on the same scale.
pub(super) fn chart(storm: &StormReport) -> Option<Chart> {
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
            "Attempts that arrive at the server per 100 ms, until 99.9% of all attempts have arrived. All charts use the \
                same scale."
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
