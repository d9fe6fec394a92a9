use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::super::chart::Chart;
use super::super::summary::end_time;
use super::super::timeline::{Timeline, downsample, resample};
use super::common::{RESOLUTION, ROWS, SHOWN_SHARE, first_runs, line};
use crate::plot::{Axis, Figure, Hue, Point, Series, Shape, Spacing, Span, Unit};

/// Returns the chart of arrivals over time, one figure per strategy, all on the same scale.
pub(crate) fn chart(storm: &StormReport) -> Option<Chart> {
    let until = end_time(storm, SHOWN_SHARE);
    let timelines: Vec<(usize, &str, Timeline)> = first_runs(storm)
        .filter_map(|(nth, name, figures)| Some((nth, name, Timeline::from_figures(figures)?)))
        .collect();
    let bin_s = timelines.first()?.2.bin_s;
    let max = timelines.iter().flat_map(|(_, _, timeline)| &timeline.attempts).copied().fold(0.0, f64::max);
    let servers: Vec<(f64, (f64, f64))> =
        storm.strategies.iter().map(|strategy| server(storm.scenario_of(strategy))).collect::<Option<_>>()?;
    let max = servers.iter().map(|(capacity, _)| capacity * bin_s).fold(max, f64::max);
    let figure = |spacing: Spacing, (nth, name, timeline): &(usize, &str, Timeline)| {
        let (capacity, down) = servers[*nth];
        let lowest = if spacing == Spacing::Log { 1.0 } else { 0.0 };
        let mut series = Vec::new();
        if down.1 > down.0 {
            let ends = [down.0, down.1.min(until)].map(|x| Span { x, low: lowest, high: max });
            series.push(Series::light("server down", Hue::INK, Shape::Band(ends.to_vec())));
        }
        let ends = [0.0, until].map(|x| Point { x, y: capacity * bin_s });
        series.push(line(name, *nth, Shape::Steps(downsample(&timeline.attempts, bin_s, until, RESOLUTION))));
        series.push(Series::light("server capacity", Hue::INK, Shape::Line(ends.to_vec())));
        let peak = timeline.attempts.iter().copied().fold(0.0, f64::max);
        Figure {
            title: (*name).to_owned(),
            description: format!(
                "Attempts of {name} over time, with a peak of {} in 100 ms.",
                Unit::Count.label(peak.round())
            ),
            x: Axis::new("time", Unit::Seconds).including(0.0).including(until),
            y: Axis::new("attempts in 100ms", Unit::Count).spaced(spacing).including(lowest).including(max),
            series,
        }
    };
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
        figures: timelines.iter().map(|timeline| figure(Spacing::Linear, timeline)).collect(),
        logarithmic: timelines.iter().map(|timeline| figure(Spacing::Log, timeline)).collect(),
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
