//! Charts of the attempts of clients: how many each makes, and when.

use stagger_sim::storm::{RunFigures, StormReport};
use stagger_terminal::plot::{Axis, Bar, Figure, Hue, Point, Series, Shape, Unit};

use super::common::{ROWS, SHOWN_SHARE, Shown, by_policy, first_runs, line, of_one_policy};
use crate::report::Chart;
use crate::storm::timeline::end_time;

/// Returns the chart of attempts per client, one figure per policy, all on the same scale.
pub(crate) fn attempts(storm: &StormReport) -> Option<Chart> {
    let counts: Vec<(usize, &str, Vec<f64>)> = first_runs(storm)
        .filter_map(|(nth, name, figures)| match figures {
            RunFigures::Reconnect(figures) => {
                let share = |count: &u64| *count as f64 / figures.clients as f64;
                Some((nth, name, figures.clients_by_attempts.iter().map(share).collect()))
            }
            _ => None,
        })
        .collect();
    // Servers that cannot tell clients apart know nothing of it.
    let max_attempts = counts.iter().map(|(_, _, shares)| shares.len()).max().filter(|max| *max > 0)?;
    let highest = counts.iter().flat_map(|(_, _, shares)| shares).copied().fold(0.0, f64::max);
    let bars = |shares: &Vec<f64>| {
        let bar = |(attempts, height): (usize, &f64)| Bar {
            left: attempts as f64 - 0.5,
            right: attempts as f64 + 0.5,
            height: *height,
        };
        Shape::Bars(shares.iter().enumerate().skip(1).map(bar).collect())
    };
    // Over the bars of what was measured, a point where the simulation has the end of its bar.
    let tops = |shares: &Vec<f64>| {
        let top = |(attempts, &y): (usize, &f64)| Point { x: attempts as f64, y };
        Shape::Points(shares.iter().enumerate().skip(1).map(top).collect())
    };
    let figure = |shown: &Shown<'_, Vec<f64>>| Figure {
        title: shown.subject.name.to_owned(),
        description: format!("Distribution of the attempts per client of {}.", shown.subject.name),
        x: Axis::new("attempts", Unit::Count).including(0.5).including(max_attempts as f64 - 0.5),
        y: Axis::new("share of the clients", Unit::Share).including(highest),
        series: match shown.simulated {
            None => of_one_policy(shown, bars),
            Some(simulated) => vec![line("measured", 0, bars(shown.data)), line("simulated", 1, tops(simulated))],
        },
    };
    let mut heads = vec!["attempts".to_owned()];
    heads.extend(counts.iter().map(|(_, name, _)| format!("share of the clients, {name}")));
    let row = |attempts: usize| {
        let share = |(_, _, shares): &(usize, &str, Vec<f64>)| {
            // The last row includes all larger numbers.
            let upto = if attempts == ROWS { shares.len() } else { attempts + 1 };
            let share: f64 = shares.get(attempts..upto.min(shares.len())).unwrap_or_default().iter().sum();
            format!("{:.2}%", share * 100.0)
        };
        let head = if attempts == ROWS { format!("{attempts} or more") } else { attempts.to_string() };
        [head].into_iter().chain(counts.iter().map(share)).collect()
    };
    Some(Chart {
        slug: "attempts",
        title: "Attempts per client",
        caption: "Attempts that a client makes until it reconnects or gives up. All charts use the same scale."
            .to_owned(),
        figures: by_policy(storm, &counts).iter().map(figure).collect(),
        logarithmic: Vec::new(),
        heads,
        rows: (1..max_attempts.min(ROWS + 1)).map(row).collect(),
    })
}

/// Maximum number of points in a figure. Beyond it, fewer clients are shown.
const DOTS: usize = 2_500;

/// Number of clients in the table.
const LISTED: usize = 12;

/// Returns the chart of the attempts of individual clients, which shows synchronization that sums hide.
pub(crate) fn raster(storm: &StormReport) -> Option<Chart> {
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
        caption: "One point per attempt and one row per client, for a sample of the clients. Synchronized clients \
            form columns. Rows of a simulation are above the measured ones."
            .to_owned(),
        figures: by_policy(storm, &samples).iter().map(figure).collect(),
        logarithmic: Vec::new(),
        heads,
        rows: (0..max_clients.min(LISTED)).map(row).collect(),
    })
}
