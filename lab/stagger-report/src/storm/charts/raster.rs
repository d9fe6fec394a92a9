use stagger_sim::storm::{RunFigures, StormReport};

use super::super::summary::end_time;
use super::common::{SHOWN_SHARE, Shown, by_policy, first_runs, line};
use crate::page::Chart;
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Unit};

/// Maximum number of points in a figure. Beyond it, fewer clients are shown.
const DOTS: usize = 2_500;

/// Number of clients in the table.
const LISTED: usize = 12;

/// Returns the chart of the attempts of individual clients, which shows synchronization that sums hide.
pub(super) fn chart(storm: &StormReport) -> Option<Chart> {
    let until = end_time(storm, SHOWN_SHARE);
    let samples: Vec<(usize, &str, &[Vec<f64>])> = first_runs(storm)
        .filter_map(|(nth, name, figures)| match figures {
            RunFigures::Reconnect(figures) if !figures.sample_s.is_empty() => Some((nth, name, &*figures.sample_s)),
            _ => None,
        })
        .collect();
    samples.first()?;
    // The rows above `floor`, with at most this number of points.
    let dots = |clients: &[Vec<f64>], floor: usize, mut room: usize| {
        let shown = clients.iter().take_while(|times| {
            let fits = times.len() <= room;
            room = room.saturating_sub(times.len());
            fits
        });
        let dots = shown.enumerate().flat_map(|(client, times)| {
            let early = times.iter().take_while(|time| **time <= until);
            early.map(move |time| Point { x: *time, y: (floor + client) as f64 + 1.0 })
        });
        Shape::Points(dots.collect())
    };
    let figure = |shown: &Shown<'_, &[Vec<f64>]>| Figure {
        title: shown.subject.name.to_owned(),
        description: format!("Times of the attempts of individual clients of {}.", shown.subject.name),
        x: Axis::new("time", Unit::Seconds).including(0.0).including(until),
        y: Axis::new("client", Unit::Count).including(0.0),
        series: match shown.simulated {
            None => vec![Series { name: None, ..line("", shown.nth, dots(shown.data, 0, DOTS)) }],
            Some(simulated) => vec![
                Series::strong("measured", Hue::nth(0), dots(shown.data, 0, DOTS / 2)),
                Series::strong("simulated", Hue::nth(1), dots(simulated, shown.data.len(), DOTS / 2)),
            ],
        },
    };
    let mut heads = vec!["client".to_owned()];
    heads.extend(samples.iter().map(|(_, name, _)| format!("attempts of {name}")));
    let row = |client: usize| {
        let times = |(_, _, clients): &(usize, &str, &[Vec<f64>])| {
            let times = clients.get(client).map_or(&[][..], Vec::as_slice);
            let shown: Vec<String> =
                times.iter().take(8).map(|time| Unit::Seconds.label((time * 100.0).round() / 100.0)).collect();
            shown.join(" ") + if times.len() > 8 { " ..." } else { "" }
        };
        [(client + 1).to_string()].into_iter().chain(samples.iter().map(times)).collect()
    };
    let max_clients = samples.iter().map(|(_, _, clients)| clients.len()).max().unwrap_or(0);
    Some(Chart {
        slug: "raster",
        title: "Attempts of individual clients",
        caption: "One point per attempt and one row per client, for a sample of the clients. Synchronized clients form columns. \
                  Rows of a simulation are above the measured ones."
            .to_owned(),
        figures: by_policy(storm, &samples).iter().map(figure).collect(),
        logarithmic: Vec::new(),
        heads,
        rows: (0..max_clients.min(LISTED)).map(row).collect(),
    })
}
