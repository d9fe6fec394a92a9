use core::time::Duration;

use super::brief::{brief, span};
use super::clients::Client;
use super::forecast::{Distribution, Forecast, Row};
use super::verdict::Verdict;
use crate::plot::{Axis, Bar, Figure, Hue, Point, Series, Shape, Spacing, Span, Unit, Weight};

/// How the waits of individual clients are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientStyle {
    /// A mark at each retry, where lines would overlap.
    Marks,
    /// A mark at each retry and a line from one to the next.
    Lines,
}

/// Returns the plot of the delay before each retry: its range, its median and the draws of a few clients.
pub(crate) fn envelope(forecast: &Forecast, clients: &[Client], client_style: ClientStyle, spacing: Spacing) -> Figure {
    let drawn: Vec<_> = clients.iter().map(|client| client.delays.clone()).collect();
    let sentence = |row: &Row| format!("retry {}: {}, median {}", row.retry, range(row.delay), brief(row.delay.p50));
    Figure {
        title: "Delay before each retry".to_owned(),
        description: describe("The delay before each retry", forecast, sentence),
        x: Axis::new("retry", Unit::Count),
        y: seconds("delay", spacing),
        series: fan(forecast, |row| row.delay, &drawn, client_style),
    }
}

/// Returns the plot of the total wait up to each retry: its range, its median and the draws of a few clients.
pub(crate) fn waited(forecast: &Forecast, clients: &[Client], client_style: ClientStyle, spacing: Spacing) -> Figure {
    let drawn: Vec<_> = clients.iter().map(|client| client.elapsed().collect()).collect();
    let sentence =
        |row: &Row| format!("retry {}: {}, median {}", row.retry, range(row.elapsed), brief(row.elapsed.p50));
    Figure {
        title: "Total wait up to each retry, without the duration of attempts".to_owned(),
        description: describe("The total wait up to each retry", forecast, sentence),
        x: Axis::new("retry", Unit::Count),
        y: seconds("total wait", spacing),
        series: fan(forecast, |row| row.elapsed, &drawn, client_style),
    }
}

/// Returns the histogram of the drawn delays of all retries over the deciles of the forecast.
pub(crate) fn tenths(verdict: &Verdict) -> Figure {
    let mut counts = [0.0; 10];
    for fit in verdict.checks.iter().filter_map(|check| check.fit.as_ref()) {
        for (count, more) in counts.iter_mut().zip(fit.decile_counts()) {
            *count += more;
        }
    }
    let level = counts.iter().sum::<f64>() / 10.0;
    let bars = counts.iter().enumerate().map(|(i, height)| Bar {
        left: i as f64 / 10.0,
        right: (i + 1) as f64 / 10.0,
        height: *height,
    });
    let ends = [Point { x: 0.0, y: level }, Point { x: 1.0, y: level }];
    let texts: Vec<String> = counts.iter().map(f64::to_string).collect();
    Figure {
        title: "Drawn delays by decile of the forecast".to_owned(),
        description: format!(
            "Number of drawn delays in each decile of the forecast, shortest first: {}; {level} are expected in each.",
            texts.join(", ")
        ),
        x: Axis::new(SHARE_LABEL, Unit::Share),
        y: Axis::new("draws", Unit::Count),
        series: vec![
            Series {
                name: Some("drawn".to_owned()),
                shape: Shape::Bars(bars.collect()),
                hue: Hue::Sky,
                weight: Weight::Light,
            },
            Series {
                name: Some("forecast".to_owned()),
                shape: Shape::Line(ends.to_vec()),
                hue: Hue::Vermilion,
                weight: Weight::Strong,
            },
        ],
    }
}

/// The label of the axis with the cumulative probability of the forecast.
const SHARE_LABEL: &str = "cumulative share of delays, forecast";

/// Maximum number of retries in one plot.
const MAX_CURVES: usize = 6;

/// Returns the plot of the difference between the distributions of drawn delays and forecast, with its tolerance.
pub(crate) fn distance(verdict: &Verdict) -> Figure {
    let fits = || verdict.checks.iter().filter_map(|check| Some((check.retry, check.fit.as_ref()?)));
    let allowed = fits().map(|(_, fit)| fit.critical_distance(verdict.threshold)).fold(0.0, f64::max);
    let ends = [0.0, 1.0].map(|x| Span { x, low: -allowed, high: allowed });
    let mut series = vec![Series {
        name: Some("within tolerance".to_owned()),
        shape: Shape::Band(ends.to_vec()),
        hue: Hue::Sky,
        weight: Weight::Light,
    }];
    series.extend(fits().take(MAX_CURVES).enumerate().map(|(i, (retry, fit))| {
        let start = Point { x: 0.0, y: 0.0 };
        let steps = fit.deviations().enumerate().map(|(i, y)| Point { x: (i + 1) as f64 / 100.0, y });
        Series {
            name: Some(format!("retry {retry}")),
            shape: Shape::Steps([start].into_iter().chain(steps).collect()),
            hue: Hue::nth(i),
            weight: Weight::Light,
        }
    }));
    Figure {
        title: "Drawn delays compared with the forecast".to_owned(),
        description: format!("Difference between the drawn delays and their forecast: {}.", verdict.text),
        x: Axis::new(SHARE_LABEL, Unit::Share),
        y: Axis::new("cumulative share, drawn minus forecast", Unit::Share),
        series,
    }
}

/// Returns range, median and clients, as both plots over the retries show them.
fn fan(
    forecast: &Forecast,
    distribution: impl Fn(&Row) -> Distribution,
    clients: &[Vec<Duration>],
    client_style: ClientStyle,
) -> Vec<Series> {
    let rows = &forecast.rows;
    let x = |row: &Row| f64::from(row.retry);
    let band = rows.iter().map(|row| Span {
        x: x(row),
        low: distribution(row).min.as_secs_f64(),
        high: distribution(row).max.as_secs_f64(),
    });
    let median = rows.iter().map(|row| Point { x: x(row), y: distribution(row).p50.as_secs_f64() });
    let mut series = vec![
        Series {
            name: Some("min to max".to_owned()),
            shape: Shape::Band(band.collect()),
            hue: Hue::Sky,
            weight: Weight::Light,
        },
        Series {
            name: Some("median".to_owned()),
            shape: Shape::Line(median.collect()),
            hue: Hue::Ink,
            weight: Weight::Strong,
        },
    ];
    for (i, lengths) in clients.iter().enumerate() {
        let places = rows.iter().zip(lengths).map(|(row, length)| Point { x: x(row), y: length.as_secs_f64() });
        let places: Vec<Point> = places.collect();
        let path = |name, shape| Series { name, shape, hue: Hue::nth(i), weight: Weight::Light };
        if client_style == ClientStyle::Lines {
            series.push(path(None, Shape::Line(places.clone())));
        }
        series.push(path(Some("drawn clients".to_owned()), Shape::Points(places)));
    }
    series
}

fn seconds(label: &str, spacing: Spacing) -> Axis {
    let axis = Axis::new(label, Unit::Seconds).spaced(spacing);
    match spacing {
        Spacing::Linear => axis.including(0.0),
        Spacing::Log => axis,
    }
}

fn range(distribution: Distribution) -> String {
    span(distribution.min, distribution.max)
}

fn describe(what: &str, forecast: &Forecast, sentence: impl Fn(&Row) -> String) -> String {
    let rows: Vec<String> = forecast.rows.iter().map(sentence).collect();
    format!("{what}, min to max. {}.", rows.join("; "))
}
